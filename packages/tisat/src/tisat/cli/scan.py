"""``tisat scan``: the alarms of one file by models that learn from the same file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.alarm import AlarmOutputs
from tisat.cli.machines import read_machine
from tisat.cli.options import How, Period, Rule, RuleSet, reading_text, reads_files, rule_of
from tisat.cli.output import JsonFlag, training_reported
from tisat.cli.output_files import Overwrite
from tisat.registry import DEFAULT
from tisat.utils.types import Params


@reads_files
def scan(
    file: Annotated[str, typer.Argument(help="A file, mostly normal.", metavar="FILE")],
    budget: Annotated[str | None, typer.Option(help="False alarms you accept, 1/day unless given.")] = None,
    detector: Annotated[str, typer.Option(help="A name of `tisat detectors`.")] = DEFAULT,
    rule: Rule = None,
    rule_set: RuleSet = None,
    period: Period = None,
    outputs: AlarmOutputs = AlarmOutputs(),
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Raise the alarms of a file where no stretch is known to be normal: learn from and score the same rows, in blocks.

    Each block is scored by a model of the others; rows that stand out are left out of training. It looks back: for what is to come, fit a
    model with `tisat fit --contaminated`.
    """
    from tisat.watch.scan import scan_series

    outputs.check([file], overwrite=overwrite)
    settings: Params = {} if period is None else {"period": period}
    if rule is not None or rule_set:
        settings["rule"] = rule_of(rule, rule_set)
    series = read_machine(file, how or {}, verb="scan")
    with training_reported():
        result, whole, expected = scan_series(
            series, budget=budget, detector=detector, expected=outputs.html is not None, **settings
        )
    command = f"tisat scan {shlex.quote(Path(file).name)} --budget {shlex.quote(result.calibration.budget)}"
    outputs.write(result, whole, expected, f"{command}{reading_text(how)}")
    outputs.report(result, series.name, [*series.notes, *result.calibration.notes], json=json)

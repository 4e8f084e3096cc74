"""``tisat scan``: the alarms of one file by models that learn from the same file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.alarm import PICTURES, document_of, show_alarms
from tisat.cli.machines import read_machines
from tisat.cli.options import How, Period, Rule, RuleSet, reading_text, reads_files, rule_of
from tisat.cli.output import JsonFlag, print_json, training_reported
from tisat.cli.output_files import Overwrite, check_outputs, save_figure
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
    out: Annotated[Path | None, typer.Option(help="Write the alarms here: .csv, .parquet or .jsonl.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw them here: .png, .svg or .pdf.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page here to look at, zoom and send on: one file, no network.")
    ] = None,
    shown: Annotated[int, typer.Option("--show-channels", help="Channels to draw and to name.", min=0)] = 3,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Raise the alarms of a file where no stretch is known to be normal: learn from and score the same rows, in blocks.

    Each block is scored by a model of the others; rows that stand out are left out of training. It looks back: for what is to come, fit a
    model with `tisat fit --contaminated`.
    """
    from tisat.errors import InputError, ParameterError
    from tisat.watch.scan import scan_series

    check_outputs({"--out": out, "--picture": picture, "--html": html}, inputs=[file], overwrite=overwrite)
    if picture is not None and picture.suffix.lower() not in PICTURES:
        raise ParameterError(f"--picture must end in {', '.join(PICTURES)}. Got {str(picture)!r} instead.")
    machines = read_machines([file], dict(how or {}))
    if len(machines) != 1:
        raise InputError(f"tisat scan must be given the file of one machine. Got {len(machines)} in {file!r}.")
    settings: Params = {} if period is None else {"period": period}
    if rule is not None or rule_set:
        settings["rule"] = rule_of(rule, rule_set)
    series = next(iter(machines.values()))
    with training_reported():
        result, whole, expected = scan_series(
            series, budget=budget, detector=detector, expected=html is not None, **settings
        )
    if out is not None:
        result.write(out)
    if picture is not None:
        save_figure(result.plot(whole, channels=shown), picture)
    if html is not None:
        from tisat.persistence.model_file import write_bytes
        from tisat.plotting.alarm_page import alarm_page

        command = f"tisat scan {shlex.quote(Path(file).name)} --budget {shlex.quote(result.calibration.budget)}{reading_text(how)}"
        write_bytes(html, alarm_page(result, whole, expected=expected, command=command).encode())
    if json:
        print_json(document_of(result))
        return
    show_alarms(result, series.name, [*series.notes, *result.calibration.notes], shown=shown)
    if html is not None:
        typer.echo(f"page written to {html}", err=True)

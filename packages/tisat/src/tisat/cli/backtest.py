"""``tisat backtest``: what alarms would have been raised in the past, by models fitted again and again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.machines import read_machine
from tisat.cli.options import How, Period, Rule, RuleSet, reading_text, reads_files, rule_of
from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_outputs
from tisat.registry import DEFAULT
from tisat.utils.types import Params


@reads_files
def backtest(
    file: Annotated[str, typer.Argument(help="A file of history.", metavar="FILE")],
    train: Annotated[str, typer.Option(help="History each model is fitted on: 14d, '5000 rows'.")] = "14d",
    refit: Annotated[
        str, typer.Option(help="How long each model is used before the next one: 7d, '2000 rows'.")
    ] = "7d",
    budget: Annotated[str | None, typer.Option(help="False alarms you accept, 1/day unless given.")] = None,
    what_if: Annotated[
        list[str] | None, typer.Option(help="Another budget to count alarms at; give it again for more.")
    ] = None,
    detector: Annotated[str, typer.Option(help="A name of `tisat detectors`.")] = DEFAULT,
    rule: Rule = None,
    rule_set: RuleSet = None,
    period: Period = None,
    html: Annotated[Path | None, typer.Option(help="Write one HTML page here.")] = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Walk forward through history: fit on the rows before, raise the alarms of the rows after, fit again."""
    check_outputs({"--html": html}, inputs=[file], overwrite=overwrite)
    from tisat.persistence.model_file import write_bytes
    from tisat.plotting.backtest_page import backtest_page
    from tisat.watch.walk_forward import backtest as walk

    settings: Params = {} if period is None else {"period": period}
    if rule is not None or rule_set:
        settings["rule"] = rule_of(rule, rule_set)
    series = read_machine(file, how or {}, verb="backtest")
    result = walk(series, train=train, refit=refit, budget=budget, budgets=what_if, detector=detector, **settings)
    if html is not None:
        said = f"tisat backtest {shlex.quote(file)} --train {shlex.quote(train)} --refit {shlex.quote(refit)}"
        write_bytes(
            html,
            backtest_page(result, command=f"{said} --budget {shlex.quote(result.budget)}{reading_text(how)}").encode(),
        )
    if json:
        print_json(
            {"budget": result.budget, "answer": result.answer, "counts": result.counts, "steps": result.to_rows()}
        )
        return
    columns, rows = result.table()
    print_table(f"{result.name or file}: fitted on {train}, used for {refit}", columns, rows, note=result.answer)

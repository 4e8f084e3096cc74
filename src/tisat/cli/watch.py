"""``tisat watch``: rows on standard input, verdicts on standard output, for as long as rows come."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer


def watch(
    model: Annotated[Path, typer.Option(help="A fitted detector, as written by tisat fit.")],
    budget: Annotated[str, typer.Option(help="False alarms you can bear: 1/day, 3/week, '1/1000 instants', 0.001.")],
    rule: Annotated[str, typer.Option(help="excess, threshold or paper.")] = "excess",
    method: Annotated[str, typer.Option(help="auto, bootstrap, empirical, weibull, exact or paper.")] = "auto",
    period: Annotated[
        str | None, typer.Option(help="Sampling period, such as '1 min', if the model's data had no timestamps.")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="Keep the state here, and go on from it if it is there.")] = None,
    every: Annotated[int, typer.Option(help="Lines between two states.", min=1)] = 100,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write verdicts to this file instead of standard output; with --state each line is then judged exactly once, whatever happens."
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="The input does not begin again after a restart: pass over nothing.")
    ] = False,
    name: Annotated[str, typer.Option(help="The entity, as alarms call it.")] = "",
) -> None:
    """Judge rows as they come: csv or JSON lines in, one verdict a row as JSON lines out.

    `tail -n +1 -F telemetry.csv | tisat watch --model m.tisat --budget 1/day --state m.state --output verdicts.jsonl`
    """
    from tisat.base import load
    from tisat.errors import CalibrationWarning
    from tisat.online.monitor import Monitor
    from tisat.online.watching import watch as run

    detector = load(model)
    note: dict[str, Any] = {"lines": 0, "bytes": 0, "header": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        if state is not None and state.is_file():
            monitor, note = Monitor.restore_with_note(detector, state)
            typer.echo(f"going on after line {note['lines']} ({monitor.rows} rows)", err=True)
        else:
            monitor = Monitor(detector, false_alarms=budget, rule=rule, method=method, period=period, name=name)
    for warning in caught:
        typer.echo(f"note: {warning.message}", err=True)
    typer.echo(str(monitor.calibration), err=True)
    if output is not None:
        if note["lines"] == 0 or not output.exists():
            output.write_bytes(b"")
        with output.open("r+b") as file:
            file.truncate(note["bytes"])
    with nullcontext(sys.stdout.buffer) if output is None else output.open("ab") as target:
        lines = iter(sys.stdin) if live else islice(sys.stdin, note["lines"], None)
        run(
            monitor,
            lines,
            target,
            state=state,
            every=every,
            header=note["header"],
            seen=note["lines"],
            written=note["bytes"],
            report=lambda sentence: typer.echo(f"refused, {sentence}", err=True),
        )

"""``tisat serve replay``: stored rows or files through a service nobody listens to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tisat.cli._options import Budget
from tisat.cli._output import JsonFlag
from tisat.cli.serve import _needs, app


@app.command("replay")
def replay(
    files: Annotated[list[str] | None, typer.Argument(help="Files, folders or patterns; without them the rows that --data has kept.", metavar="[FILE...]")] = None,
    model: Annotated[Path | None, typer.Option(help="A model, as written by tisat fit.")] = None,
    data: Annotated[Path | None, typer.Option(help="The folder of a service, which may be running; it is only read.")] = None,
    budget: Budget = None,
    entity: Annotated[str | None, typer.Option(help="The column of a long table that says which machine a row is of.")] = None,
    match: Annotated[str, typer.Option(help="Of --data: only entities of this pattern.")] = "*",
    start: Annotated[str | None, typer.Option(help="Of --data: from this time on, such as 2026-11-16T08:00Z.")] = None,
    stop: Annotated[str | None, typer.Option(help="Of --data: before this time.")] = None,
    json: JsonFlag = False,
) -> None:  # fmt: skip
    """What would have been alarmed: rows through a shadow of the service. Nothing is sent, nothing is kept.

    `tisat serve replay --model plant.tisat --data watch/ --budget 1/week`
    """
    _needs()
    import msgspec

    from tisat.cli._output import print_json
    from tisat.errors import InputError
    from tisat.many import find_machines
    from tisat.reading.clock import read_time
    from tisat.serve.replay import of_series, replay, stored
    from tisat.watch import Watch

    if model is None or (not files) == (data is None):
        raise InputError(
            "tisat serve replay must be given --model, and either files or --data with a service's folder."
        )
    watch = Watch.load(model, budget=budget)
    if data is not None:
        span = {
            name: None if text is None else float(read_time(text).value) * 1e-9
            for name, text in (("start", start), ("stop", stop))
        }
        rows: Any = stored(data, match=match, **span)
    else:
        told = {**watch.reading, "entity": entity}
        rows = of_series(machine.read(told) for machine in find_machines(files or [], told))
    alarms, counts = replay(watch, rows)
    if json:
        print_json({"alarms": [msgspec.to_builtins(one) for one in alarms], "rows": counts})
        return
    for one in alarms:
        from tisat.serve.sinks.message import say_moment

        lasted = "still on" if one.cleared is None else f"{one.cleared - one.raised:.0f} s"
        typer.echo(
            f"{say_moment(one.raised)}  {one.entity}  {one.sort}  {one.ratio:.2f} x threshold, {lasted}: {one.kind} {one.why}".rstrip()
        )
    known = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()) if word not in ("saves", "enrolled"))
    typer.echo(f"{len(alarms)} alarm{'s' * (len(alarms) != 1)} at {watch.calibration.budget}; rows: {known or 'none'}")

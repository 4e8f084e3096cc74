"""``tisat serve token|backup|restore|export|upgrade|move|replay``: what somebody does to a service's folder, beside it or while it is stopped."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tisat.cli.options import Budget
from tisat.cli.output import JsonFlag, print_json
from tisat.cli.output_files import Overwrite, check_folder
from tisat_serve.cli.serve import _needs, _say, app

Folder = Annotated[Path, typer.Option("--data", help="The folder of the service.")]


@app.command("token")
def token(
    data: Folder,
    name: Annotated[str, typer.Option(help="Whose it is; the author of what is done with it.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="Needed for a new one: read, ingest, label (mark alarms, with read) or admin (everything); again for more."
        ),
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="Accept it no more.")] = False,
) -> None:
    """Make a token, or end one. It is shown once; only its hash is kept. A running service follows at once."""
    _needs()
    from tisat.errors import InputError
    from tisat.utils.near_names import meant_file
    from tisat_serve.security import end_token, make_token
    from tisat_serve.store import Store

    if not data.is_dir():
        hint = meant_file(data) or f" For a new service make it first: mkdir {shlex.quote(str(data))}."
        raise InputError(f"--data must be the folder of a service. Folder not found: {str(data)!r}.{hint}")
    with Store(data, beside=True) as store:
        if end:
            end_token(store, name, time.time())
            _say(f"the token {name!r} is ended; a running service refuses it from now on")
            if not store.read("SELECT 1 FROM tokens WHERE ended IS NULL"):
                _say(
                    "no token is in force: a service that other machines can reach refuses everything until you make one"
                )
        else:
            first = not store.read("SELECT 1 FROM tokens WHERE ended IS NULL")
            typer.echo(make_token(store, name, list(scope or []), time.time()))
            _say("keep it: it is not shown again. A running service takes it from now on")
            if first:
                _say(
                    "it is the only one in force: from now on every request needs a token, those of this machine too. Make one with --scope label for "
                    "who looks at the console (read: without marking alarms) and one with --scope read for a scrape of /metrics, sent as Authorization: Bearer"
                )


@app.command("backup")
def backup(data: Folder, out: Annotated[Path, typer.Option(help="The file to write.")]) -> None:
    """Everything in one file, while the service runs."""
    from tisat_serve.folder import backup as upkeep

    typer.echo(f"{upkeep.backup(data, out)} bytes written to {out}")


@app.command("restore")
def restore(data: Folder, source: Annotated[Path, typer.Argument(help="A backup.", metavar="BACKUP")]) -> None:
    """Put a backup into an empty folder."""
    from tisat_serve.folder import backup as upkeep

    upkeep.restore(source, data)
    typer.echo(f"{source} is in {data}")


@app.command("export")
def export(
    data: Folder,
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    normal: Annotated[
        bool,
        typer.Option(
            "--normal", help="Leave out rows of alarms and of maintenance windows that are not to be learned from."
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """History as Parquet, one file an entity, for tisat fit; rows of alarms have label 1."""
    from tisat_serve.folder import backup as upkeep

    check_folder("--out", out, inputs=[data], overwrite=overwrite)
    for name, rows in upkeep.export(data, out, normal=normal):
        typer.echo(f"{name}\t{rows} rows")


@app.command("upgrade")
def upgrade(
    data: Annotated[Path, typer.Argument(help="The folder of a service that is stopped.", metavar="FOLDER")],
    model: Annotated[Path, typer.Option(help="The model of the group; it may be one that an earlier version wrote.")],
    group: Annotated[str, typer.Option(help="The group, where there are several.")] = "",
) -> None:
    """Take a folder of an earlier version along: labels, ledger and budgets stay; an unreadable model is fitted again on kept rows.

    `tisat serve upgrade watch/ --model plant.tisat`
    """
    _needs()
    from tisat_serve.folder.upgrade import upgrade

    for sentence in upgrade(data, model, group=group):
        typer.echo(sentence)


@app.command("move")
def move(
    entities: Annotated[list[str], typer.Argument(help="The entities.", metavar="ENTITY...")],
    source: Annotated[Path, typer.Option("--from", help="The folder that has them; its service must be stopped.")],
    target: Annotated[Path, typer.Option("--to", help="The folder that is to have them; its service must be stopped.")],
) -> None:
    """Move entities with their state, history, alarms and labels to another shard; it continues with them to the bit.

    `tisat serve move pump-7 --from watch-1/ --to watch-2/`
    """
    _needs()
    from tisat_serve.cluster.shards import move

    for name, rows in move(entities, source, target):
        typer.echo(f"{name}\t{rows} rows of history moved")


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

    from tisat.batch import find_machines
    from tisat.errors import InputError
    from tisat.watch import Watch
    from tisat_serve.folder.replay import replay, rows_of_series, stored_rows

    if model is None or (not files) == (data is None):
        raise InputError(
            "tisat serve replay must be given --model, and either files or --data with a service's folder."
        )
    if model.is_dir():
        raise InputError(
            f"--model of replay must be one model, of the machines that --match names. Got the folder {str(model)!r}: "
            f"tisat serve replay --model {model / 'NAME.tisat'} --match NAME."
        )
    watch = Watch.load(model, budget=budget)
    if data is not None:
        rows: Any = stored_rows(data, match=match, start=_seconds(start), stop=_seconds(stop))
    else:
        told = {**watch.reading, "entity": entity}
        rows = rows_of_series(machine.read(told) for machine in find_machines(files or [], told))
    alarms, counts = replay(watch, rows)
    if json:
        print_json({"alarms": [msgspec.to_builtins(alarm) for alarm in alarms], "rows": counts})
        return
    for alarm in alarms:
        from tisat_serve.sinks.moments import say_moment

        lasted = "still on" if alarm.cleared is None else f"{alarm.cleared - alarm.raised:.0f} s"
        typer.echo(
            f"{say_moment(alarm.raised)}  {alarm.entity}  {alarm.sort}  {alarm.ratio:.2f} x threshold, {lasted}: {alarm.kind} {alarm.why}".rstrip()
        )
    known = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()) if word not in ("saves", "enrolled"))
    typer.echo(f"{len(alarms)} alarm{'s' * (len(alarms) != 1)} at {watch.calibration.budget}; rows: {known or 'none'}")


def _seconds(text: str | None) -> float | None:
    """A time as typed, in seconds since 1970 or on the entities' own clock."""
    from tisat.io.timestamps import read_time

    if text is None:
        return None
    moment = read_time(text)
    return float(moment.value) * (1e-9 if moment.dates else 1.0)

"""``tisat serve``: the watch as a service. Thin: what it does is in :mod:`tisat.serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli._options import Budget

app = typer.Typer(
    help="The watch as a service: rows in over HTTP, alarms out, and a console that shows the budget.",
    invoke_without_command=True,
    no_args_is_help=True,
)
Data = Annotated[Path, typer.Option(help="The folder that holds everything; made where it is not there.")]


@app.callback()
def serve(
    ctx: typer.Context,
    model: Annotated[Path | None, typer.Option(help="A model, as written by tisat fit.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder that holds everything; made where it is not there.")
    ] = None,
    budget: Budget = None,
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine only with a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8765,
    lateness: Annotated[
        str | None, typer.Option(help="Wait so long for late rows before judging, such as '2 min'.")
    ] = None,
    silent_after: Annotated[
        str | None, typer.Option(help="An entity without rows for so long is an alarm, such as '10 min'.")
    ] = None,
) -> None:
    """Watch entities whose rows come in over HTTP.

    `tisat serve --model plant.tisat --data watch/`
    """
    if ctx.invoked_subcommand is not None:
        return
    from tisat._extras import require
    from tisat.errors import InputError

    for module in ("starlette", "uvicorn", "msgspec", "prometheus_client"):
        require(module, whose="tisat serve")
    if model is None or data is None:
        raise InputError("tisat serve must be given --model and --data. Make a model with tisat fit.")
    from tisat.reading.durations import seconds_of
    from tisat.serve.api.app import make_app
    from tisat.serve.group import Group
    from tisat.serve.running import check_listening, listen, running
    from tisat.serve.security import Tokens
    from tisat.watch import Watch

    watch = Watch.load(model, budget=budget)
    group = Group(
        "main",
        watch,
        lateness=0.0 if lateness is None else seconds_of(lateness, whose="--lateness"),
        silent_after=None if silent_after is None else seconds_of(silent_after, whose="--silent-after"),
    )
    typer.echo(str(watch.calibration), err=True)
    with running(data, [group]) as service:
        tokens = Tokens(service.engine.store)
        check_listening(host, tokens)
        if service.engine.replayed:
            typer.echo(f"{service.engine.replayed} rows of the log judged again", err=True)

        def ready(url: str) -> None:
            service.settings.url = service.settings.url or url
            typer.echo(f"listening on {url} ({len(service.engine.cells)} entities)", err=True)

        listen(make_app(service, tokens), host=host, port=port, ready=ready)

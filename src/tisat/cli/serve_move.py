"""``tisat serve move``: an entity from one shard to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.serve import _needs, app


@app.command("move")
def move(
    entities: Annotated[list[str], typer.Argument(help="The entities.", metavar="ENTITY...")],
    source: Annotated[Path, typer.Option("--from", help="The folder that has them; its service must be stopped.")],
    target: Annotated[Path, typer.Option("--to", help="The folder that is to have them; its service must be stopped.")],
) -> None:
    """Move entities with their state, history, alarms and labels to another shard; it goes on with them to the bit.

    `tisat serve move pump-7 --from watch-1/ --to watch-2/`
    """
    _needs()
    from tisat.serve.shards import move

    for name, rows in move(entities, source, target):
        typer.echo(f"{name}\t{rows} rows of history moved")

"""``tisat suggest``: which detectors are worth a try on a file, and why."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tisat.cli._machines import read_machines
from tisat.cli._options import reads_files, typed
from tisat.cli._output import JsonFlag, print_json


@reads_files
def suggest(
    file: Annotated[
        str, typer.Argument(help="A file of nominal rows; of a folder the first is looked at.", metavar="FILE")
    ],
    json: JsonFlag = False,
    how: dict[str, Any] | None = None,
) -> None:
    """Look at a file and say which detectors are worth a try, and why."""
    from tisat.suggestions import suggest as look_and_say

    machines = read_machines([file], how or {})
    name, series = next(iter(machines.items()))
    found = look_and_say(series)
    if json:
        print_json({"series": name, **found.to_json()})
        return
    more = f" (the first of {len(machines)} machines)" if len(machines) > 1 else ""
    typer.echo(f"{name}{more}:\n{found}\n\nnext: {found.detectors[0].command.replace('FILE', file + typed(how))}")

"""``tisat compare``: detectors side by side on a file of normal rows, without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.machines import read_machine
from tisat.cli.options import How, Period, reads_files
from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_outputs, save_figure
from tisat.utils.types import Params


@reads_files
def compare(
    file: Annotated[str, typer.Argument(help="A file of normal rows.", metavar="FILE")],
    detector: Annotated[
        list[str] | None,
        typer.Option(
            help="A name of `tisat detectors`; give it again for more. Those of `tisat suggest` unless given."
        ),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="False alarms you accept, 1/day unless given.")] = None,
    faults: Annotated[int, typer.Option(help="Faults that are put in, over seven kinds.", min=1)] = 21,
    period: Period = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the comparison here: .png, .svg or .pdf.")] = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Compare detectors on a file of normal rows: the budget on rows they have not seen, injected faults found, the cost.

    There are no labels to be had: faults of seven kinds are put into the end of the file, one at a time. One is found where an alarm is raised
    that is not there without it, or where an alarm that is on names a channel of it. It says how detectors do on these.
    """
    from tisat.detectors.compared import compare as side_by_side

    check_outputs({"--picture": picture}, inputs=[file], overwrite=overwrite)
    settings: Params = {} if period is None else {"period": period}
    series = read_machine(file, how or {}, verb="compare")
    result = side_by_side(series, detector or None, budget=budget, n_faults=faults, **settings)
    if picture is not None:
        save_figure(result.plot(), picture)
    if json:
        print_json(result.to_json())
        return
    columns, rows = result.table()  # a column for each detector: a terminal is rarely as wide as all the kinds
    names, *lines = zip(columns, *rows, strict=True)
    print_table(f"{result.name or file}: {result.answer}", names, lines, note=result.note)

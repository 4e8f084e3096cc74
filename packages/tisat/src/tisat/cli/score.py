"""``tisat score``: the scores of a file, one for each row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.machines import Where, reading_of, refuse_failed
from tisat.cli.options import How, IgnoreExtra, Model, reads_files
from tisat.cli.output import JsonFlag, print_json
from tisat.cli.output_files import Overwrite, check_outputs


@reads_files
def score(
    files: Annotated[
        list[str], typer.Argument(help="Files, folders or patterns such as 'plant/*.csv'.", metavar="FILE...")
    ],
    model: Model,
    out: Annotated[
        Path, typer.Option(help="Write the scores here: .parquet or .csv; of many machines, a folder for one csv each.")
    ],
    points: Annotated[
        bool, typer.Option("--points", help="Write what the score is made of, too: one column a channel or point.")
    ] = False,
    ignore_extra: IgnoreExtra = False,
    where: Where = Where(),
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Score every row of a file: higher is more anomalous; empty while warming up and at unusable rows."""
    from tisat.batch import ScoreEach, find_machines
    from tisat.errors import DataFileError, InputError, SeriesError

    if not out.is_dir():
        check_outputs({"--out": out}, inputs=[*files, model], overwrite=overwrite)
    machines = find_machines(files, {**reading_of(model), **(how or {})})
    many = len(machines) > 1 or out.is_dir()
    if many:
        if out.suffix:
            raise InputError(
                f"--out must be a folder for the scores of {len(machines)} machines. Got {str(out)!r} instead."
            )
        out.mkdir(exist_ok=True)
        targets = {f"--out ({machine.name})": out / f"{Path(machine.name).name}.csv" for machine in machines}
        check_outputs(targets, inputs=[*files, model], overwrite=overwrite)
    elif out.suffix not in (".csv", ".parquet"):
        raise DataFileError(f"The scores must go to a .parquet or .csv file. Got {str(out)!r} instead.")
    job = ScoreEach(str(model), str(out), whole=not many, points=points, ignore_extra=ignore_extra, how=how or {})
    found = (where if many else Where(engine="inline")).rows(job, machines)
    for note in dict.fromkeys(note for one in found for note in one.get("notes", ())):
        typer.echo(f"note: {note}", err=True)
    if found[0]["trouble"] and not many:
        raise SeriesError(found[0]["trouble"])
    if json:
        print_json(found if many else found[0])
    else:
        for one in found:
            if not one["trouble"]:
                typer.echo(
                    f"{one['rows']:,} rows, {one['scored']:,} scored, {one['over']:,} over the normal level {one['normal_level']:.4g} "
                    f"(99 in 100 normal rows are below); written to {one['scores']}"
                )
    refuse_failed(found, "scored")

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
    statistic: Annotated[
        bool,
        typer.Option(
            "--statistic", help="Write what alarms are raised on, instead of the score of each row by itself."
        ),
    ] = False,
    centred: Annotated[
        bool,
        typer.Option(
            "--centred",
            help="Score each row by what lies round it, too: for rankings of a whole file, never for alarms.",
        ),
    ] = False,
    train: Annotated[
        Path | None, typer.Option(help="With --centred: a file of normal rows, whose windows are compared, too.")
    ] = None,
    ignore_extra: IgnoreExtra = False,
    where: Where = Where(),
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Score every row of a file: higher is more anomalous; empty while warming up and at unusable rows."""
    from tisat.batch import ScoreEach, find_machines
    from tisat.errors import DataFileError, InputError, ParameterError, SeriesError

    if train is not None and not centred:
        raise ParameterError("--train must come with --centred. Got it without.", parameter="train")
    if points and (statistic or centred):
        raise ParameterError("--points must come without --statistic and --centred. Got both.", parameter="points")
    if statistic and centred:
        raise ParameterError(
            "--centred must come without --statistic. Got both: alarms are raised on no centred score.",
            parameter="centred",
        )
    if not out.is_dir():
        check_outputs({"--out": out}, inputs=[*files, model, *([train] if train else [])], overwrite=overwrite)
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
    job = ScoreEach(
        str(model), str(out), whole=not many, points=points, ignore_extra=ignore_extra, how=how or {},
        statistic=statistic, centred=centred, train=None if train is None else str(train),
    )  # fmt: skip
    rows = (where if many else Where(engine="inline")).rows(job, machines)
    for note in dict.fromkeys(note for result in rows for note in result.get("notes", ())):
        typer.echo(f"note: {note}", err=True)
    if rows[0]["trouble"] and not many:
        raise SeriesError(rows[0]["trouble"])
    if json:
        print_json(rows if many else rows[0])
    else:
        for result in (row for row in rows if not row["trouble"]):
            level = f"{result['over']:,} over the normal level {result['normal_level']:.4g} (99 in 100 normal rows are below)"
            if centred:
                level = "by what lies round each row: to rank rows, not to raise alarms"
            elif statistic:
                level = f"{result['over']:,} over the calibrated threshold {result['normal_level']:.4g}"
            typer.echo(f"{result['rows']:,} rows, {result['scored']:,} scored, {level}; written to {result['scores']}")
    refuse_failed(rows, "scored")

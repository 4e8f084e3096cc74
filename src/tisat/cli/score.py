"""``tisat score``: the scores of a file, one a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from tisat.cli._machines import Jobs, each, model_of, read_machines, reading_of
from tisat.cli._options import IgnoreExtra, Model, reads_files
from tisat.cli._output import JsonFlag, print_json

if TYPE_CHECKING:
    from tisat.series import Series


def _write(columns: dict[str, Any], out: Path) -> None:
    import pyarrow as pa

    from tisat.errors import DataFileError

    table = pa.table(columns)
    if out.suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, out)
    elif out.suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(table, out)
    else:
        raise DataFileError(f"The scores must go to a .parquet or .csv file. Got {str(out)!r} instead.")


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
    jobs: Jobs = 1,
    json: JsonFlag = False,
    how: dict[str, Any] | None = None,
) -> None:
    """Score every row of a file: higher is more anomalous; empty while warming up and at unusable rows."""
    from tisat.errors import InputError

    machines = read_machines(files, {**reading_of(model), **(how or {})})
    many = len(machines) > 1 or out.is_dir()
    if many:
        if out.suffix:
            raise InputError(
                f"--out must be a folder for the scores of {len(machines)} machines. Got {str(out)!r} instead."
            )
        out.mkdir(exist_ok=True)
    tasks = [
        (model, series, out / f"{Path(name).name}.csv" if many else out, points, ignore_extra)
        for name, series in machines.items()
    ]
    found = each(_score_one, tasks, jobs=jobs)
    for note in dict.fromkeys(note for one in machines.values() for note in one.notes):
        typer.echo(f"note: {note}", err=True)
    if json:
        print_json(found if many else found[0])
    else:
        for one in found:
            typer.echo(
                f"{one['rows']:,} rows, {one['scored']:,} scored, {one['over']:,} over the nominal level {one['nominal_level']:.4g} "
                f"(99 in 100 nominal rows are below); written to {one['scores']}"
            )


def _score_one(model: Path, read: Series, out: Path, points: bool, ignore_extra: bool) -> dict[str, Any]:
    import pyarrow as pa

    from tisat.watch import Watch

    detector = Watch.load(model_of(model, read.name)).detector
    series = detector.check_series(read, ignore_extra=ignore_extra)
    found = detector.points(series)
    scores = detector.aggregate(found)
    columns: dict[str, Any] = {}
    if series.timestamps is not None:
        columns["timestamp"] = series.timestamps
    columns["score"] = pa.array(scores, from_pandas=True)
    if series.labels is not None:
        columns["is_anomaly"] = series.labels.astype(np.int8)
    if points:
        names = detector.channels_ if detector.points_are_channels else [str(i) for i in range(found.shape[1])]
        columns |= {f"point {name}": pa.array(found[:, i], from_pandas=True) for i, name in enumerate(names)}
    _write(columns, out)
    level = detector.nominal_level()
    over = int((np.nan_to_num(scores, nan=-np.inf) > level).sum())
    scored = int(np.isfinite(scores).sum())
    return {"scores": str(out), "rows": len(series), "scored": scored, "nominal_level": level, "over": over}

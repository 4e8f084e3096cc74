"""``tisat score``: the scores of a file, one a row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tisat.cli._options import IgnoreExtra, Model, reads_files
from tisat.cli._output import JsonFlag, print_json


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
    file: Annotated[Path, typer.Argument(help="A csv or parquet file.", metavar="FILE")],
    model: Model,
    out: Annotated[Path, typer.Option(help="Write the scores here: .parquet or .csv.")],
    points: Annotated[
        bool, typer.Option("--points", help="Write what the score is made of, too: one column a channel or point.")
    ] = False,
    ignore_extra: IgnoreExtra = False,
    json: JsonFlag = False,
    how: dict[str, Any] | None = None,
) -> None:
    """Score every row of a file: higher is more anomalous; empty while warming up and at unusable rows."""
    import pyarrow as pa

    from tisat.watch import Watch

    watch = Watch.load(model)
    detector = watch.detector
    read = watch.read(file, **(how or {}))
    for note in read.notes:
        typer.echo(f"note: {note}", err=True)
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
    scored = int(np.isfinite(scores).sum())
    level = detector.nominal_level()
    over = int((np.nan_to_num(scores, nan=-np.inf) > level).sum())
    summary = {"scores": str(out), "rows": len(series), "scored": scored, "nominal_level": level, "over": over}
    if json:
        print_json(summary)
    else:
        typer.echo(
            f"{len(series):,} rows, {scored:,} scored, {over:,} over the nominal level {level:.4g} "
            f"(99 in 100 nominal rows are below); written to {out}"
        )

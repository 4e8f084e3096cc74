"""Read a csv or parquet file, or a folder of them, as named series.

* wide: an optional time column, channels, an optional label column (``is_anomaly``, ``label``): one series;
* long: ``unique_id, ds, y`` (and more channels, and a label): one series for each ``unique_id``;
* ``NAME.labels.csv`` beside ``NAME.csv`` or ``NAME.test.csv``, where these have no label column: one 0 or 1 for each row, or
  the columns ``start`` and ``stop`` of the intervals that are anomalous, in rows or as dates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from tisat.errors import DataFileError, TisatError
from tisat.events import check_events, labels_from_events
from tisat.io.compression import SUFFIXES, named_once, problem
from tisat.io.files import stem_of
from tisat.io.time_columns import arrow_times
from tisat.series import Series
from tisat.utils.near_names import meant_file
from tisat.utils.types import Params

# Of labels in a file of their own: what its name ends in, and its columns where it has intervals.
ENDING = ".labels"
EDGES = ("start", "stop")


def files_of(path: str | Path) -> list[Path]:
    """The tables a path means: itself, those of a folder, or those of a glob such as ``plant/*.csv``, sorted."""
    root = Path(path)
    if root.is_file():
        return [root]
    if root.is_dir():
        files = sorted(file for file in root.glob("*") if file.is_file() and file.name.lower().endswith(SUFFIXES))
        if not files:
            raise DataFileError(
                f"The folder {str(root)!r} must hold csv, xlsx, jsonl or parquet files. There are none."
            )
        return files
    if any(sign in str(path) for sign in "*?["):
        files = sorted(file for name in glob(str(path), recursive=True) if (file := Path(name)).is_file())
        if not files:
            raise DataFileError(f"The pattern {str(path)!r} must match files. It matches none.")
        return files
    raise DataFileError(
        f"File not found: {str(root)!r}. The data must be a file, a folder or a pattern such as 'data/*.csv'."
        f"{meant_file(root)}"
    )


def read_series(path: str | Path, **how: object) -> dict[str, Series]:
    """Every series in a file, a folder of files or the files of a glob, by name, whole.

    Parameters
    ----------
    path : file, folder or glob
        Whatever :meth:`tisat.Series.read` reads; wide, or long with the columns ``unique_id, ds, y``.
    **how
        As for :meth:`tisat.Series.read`: ``time``, ``label``, ``entity`` (the column that names the series of a long
        table, ``unique_id`` where there is one), ``delimiter`` and the others.

    Returns
    -------
    series : dict of name to Series
        The name is the file's stem, or in a long table the ``unique_id``.

    Examples
    --------
    >>> read_series("plant/*.csv")  # doctest: +SKIP
    """
    files = files_of(path)
    reading: Params = {**how, "find_entity": True}
    rows = files if len(files) == 1 else [one for one in files if not is_label_file(one)]
    return named_once(path, rows, lambda file: Series.read_all(file, **reading))


def is_label_file(file: Path) -> bool:
    """Whether a file holds labels of another one, by its name."""
    return stem_of(file).endswith(ENDING)


def with_labels(series: Mapping[str, Series], path: str | Path) -> dict[str, Series]:
    """The series with the labels of the files beside them."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    labelled = dict(series)
    for file in sorted(one for one in folder.glob(f"*{ENDING}.*") if is_label_file(one)):
        base = stem_of(file).removesuffix(ENDING)
        name = next((one for one in (f"{base}.test", base) if one in labelled), None)
        if name is None:
            continue  # of a file that was not asked for
        labelled[name] = replace(labelled[name], labels=_labels(file, labelled[name]))
    return labelled


def _labels(file: Path, series: Series) -> Any:
    import pyarrow.csv as pc

    try:
        table = pc.read_csv(file)
    except Exception as error:  # pyarrow has a dozen of its own
        raise problem(file, "be a csv file with a header", f"{str(error)[:120]!r}") from None
    names = {str(name).strip().lower(): k for k, name in enumerate(table.column_names)}
    if all(edge in names for edge in EDGES):
        edges = [_edge_rows(file, table.column(names[edge]).to_pylist(), series) for edge in EDGES]
        try:
            events = check_events(np.column_stack(edges), whose=f"{file.name}", length=len(series))
        except TisatError as error:
            raise DataFileError(f"{file}: {error}") from None
        return labels_from_events(events, length=len(series))
    if table.num_columns != 1:
        raise problem(file, "have one column of 0 and 1, or the columns start and stop", ", ".join(table.column_names))
    labels = np.asarray(table.column(0).to_pylist())
    if len(labels) != len(series) or not np.isin(labels, (0, 1)).all():
        raise problem(file, f"hold one 0 or 1 for each of the {len(series)} rows", f"{len(labels)} values")
    return labels.astype(bool)


def _edge_rows(file: Path, edges: list[object], series: Series) -> Any:
    """The rows that edges mean: rows as they are, or the first row at or after a date."""
    if all(isinstance(edge, int) for edge in edges):
        return np.asarray(edges, dtype=np.int64)
    import pyarrow as pa

    if series.timestamps is None:
        raise problem(file, "say start and stop in rows where the series has no time", f"{str(edges[0])!r}")
    moments = arrow_times(pa.array(edges), name="start and stop").values
    if moments.dtype.kind != series.timestamps.dtype.kind:
        raise problem(file, "say start and stop as the series says its time", f"{str(edges[0])!r}")
    return np.searchsorted(series.timestamps, moments)

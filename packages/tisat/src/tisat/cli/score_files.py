"""Labels and scores from files: csv, txt, parquet, npy or npz, one file or a folder with one file for each series.

A table may be long (``unique_id`` names the series). The wanted column is the one asked for, or one with a usual name, or the only one there is.
This module does not know what is done with the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat.errors import DataFileError, InputError
from tisat.io.columns import LABEL_NAMES, TIME_NAMES, label_flags
from tisat.io.compression import named_once, open_numpy, problem
from tisat.io.files import ENTITY, stem_of
from tisat.io.missing_values import is_number, spellings
from tisat.io.time_columns import arrow_times
from tisat.utils.near_names import meant_file
from tisat.utils.types import AnyArray, Array

if TYPE_CHECKING:
    import pyarrow as pa

    from tisat.series import Series

SUFFIXES = (".csv", ".txt", ".csv.gz", ".txt.gz", ".parquet", ".npy", ".npz")
SCORE_NAMES = ("score", "scores", "y_score", "anomaly_score", "statistic")
LABELS = (*LABEL_NAMES, "y_true", "y")
NAMED = 5  # series that an error names
NUMBERS = "be a numpy array of numbers"


@dataclass(frozen=True)
class Column:
    """One column of one series, with its clock where the file has one."""

    values: Array  # (T,)
    timestamps: AnyArray | None  # (T,)


def _table(file: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if file.suffix == ".parquet":
            return parquet.read_table(file)
        words = csv.ConvertOptions(null_values=spellings(), strings_can_be_null=True)
        table = csv.read_csv(file, convert_options=words)
        try:  # a file of bare numbers has no header: its first row was taken for one
            [float(name) for name in table.column_names]
        except ValueError:
            return table
        return csv.read_csv(file, read_options=csv.ReadOptions(autogenerate_column_names=True), convert_options=words)
    except (pa.ArrowException, OSError) as error:
        raise problem(file, "be a readable table", repr(str(error)[:150])) from None


def _numbers(file: Path, column: pa.ChunkedArray, name: str) -> Array:
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except (pa.ArrowException, ValueError):
        cells = column.to_pylist() if str(column.type).endswith("string") else []
        row = next((row for row, cell in enumerate(cells) if cell is not None and not is_number(cell)), None)
        got = str(column.type) if row is None else repr(cells[row][:40])
        raise problem(file, f"hold numbers in column {name!r}", got, row=row) from None


def _clock(file: Path, column: pa.ChunkedArray, name: str) -> AnyArray:
    try:
        return arrow_times(column.combine_chunks(), name=name).values
    except InputError as error:
        raise problem(file, f"hold dates or seconds in column {name!r}", repr(str(error))) from None


def _choose(file: Path, names: Sequence[str], wanted: str | None, known: Sequence[str], what: str) -> str:
    if wanted is not None:
        if wanted not in names:
            raise problem(file, f"have a column {wanted!r}", ", ".join(names))
        return wanted
    usual = next((name for name in names if name.lower() in known), None)
    columns = [name for name in names if name.lower() not in (*TIME_NAMES, ENTITY)]
    if usual is None and len(columns) != 1:
        raise problem(
            file, f"have one column of {what}, or name it with --{what.removesuffix('s')}-column", ", ".join(names)
        )
    return usual if usual is not None else columns[0]


def _vector(file: Path, array: Any, what: str, name: str = "") -> Column:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        where = f" in {name!r}" if name else ""
        raise problem(file, f"hold one-dimensional {what}{where}", f"shape {array.shape} of {array.dtype}")
    return Column(array.astype(np.float64), None)


def _archive(file: Path, wanted: str | None, known: Sequence[str], what: str) -> dict[str, Column]:
    """The array with the wanted or a usual name; where there is none, every array is the series of its name."""
    with open_numpy(file, NUMBERS) as archive:
        names = list(getattr(archive, "files", ()))
        if wanted is not None and wanted not in names:
            raise problem(file, f"have an array {wanted!r}", ", ".join(names) or "none")
        usual = wanted or next((name for name in names if name.lower() in known), None)
        arrays = {name: archive[name] for name in ([usual] if usual else names)}
    if not arrays:
        raise problem(file, f"hold {what}", "no array")
    return {
        stem_of(file) if name == usual else name: _vector(file, array, what, name) for name, array in arrays.items()
    }


def _read_file(file: Path, wanted: str | None, known: Sequence[str], what: str) -> dict[str, Column]:
    if file.suffix == ".npy":
        with open_numpy(file, NUMBERS) as array:
            return {stem_of(file): _vector(file, array, what)}
    if file.suffix == ".npz":
        return _archive(file, wanted, known, what)
    table = _table(file)
    names = [str(name) for name in table.column_names]
    chosen = _choose(file, names, wanted, known, what)
    values = _numbers(file, table.column(chosen), chosen)
    time = next((name for name in names if name.lower() in TIME_NAMES and name != chosen), None)
    stamps = None if time is None else _clock(file, table.column(time), time)
    if ENTITY not in names:
        return {stem_of(file): Column(values, stamps)}
    entities = np.asarray(table.column(ENTITY).to_numpy()).astype(str)
    columns = {}
    for entity in dict.fromkeys(entities.tolist()):
        rows = entities == entity
        columns[entity] = Column(values[rows], None if stamps is None else stamps[rows])
    return columns


def _read(path: Path, wanted: str | None, known: Sequence[str], what: str) -> dict[str, Column]:
    if not path.exists():
        raise DataFileError(f"File not found: {str(path)!r}. The {what} must be a file or a folder.{meant_file(path)}")
    if path.is_file():
        if not path.name.endswith(SUFFIXES):
            raise problem(path, "end in .csv, .txt, .parquet, .npy or .npz", repr(path.suffix))
        return _read_file(path, wanted, known, what)
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name.endswith(SUFFIXES))
    if not files:
        raise DataFileError(
            f"The folder {str(path)!r} must hold csv, parquet, npy or npz files of {what}. There are none."
        )
    return named_once(path, files, lambda file: _read_file(file, wanted, known, what))


@dataclass(frozen=True)
class ScoredSeries:
    """Labels and scores of the same series, in one order."""

    names: list[str]
    labels: list[Array]
    scores: list[Array]
    timestamps: list[AnyArray] | None  # only where every series has a clock


def _first_few(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def read_labels(path: Path, label_column: str | None) -> dict[str, Series]:
    """Labels without values, by the name of the series: a series of each with its labels as the only channel."""
    from tisat.series import Series

    found = _read(path, label_column, LABELS, "labels")
    return {
        name: Series(
            one.values, timestamps=one.timestamps, labels=label_flags(one.values, "label", told=True), name=name
        )
        for name, one in found.items()
    }


def read_scored(labels: Path, scores: Path, *, label_column: str | None, score_column: str | None) -> ScoredSeries:
    """Labels and scores paired by the name of the series (the file's stem, or ``unique_id``); a single pair needs no common name."""
    truth = _read(labels, label_column, LABELS, "labels")
    scored = _read(scores, score_column, SCORE_NAMES, "scores")
    if len(truth) == len(scored) == 1:
        pairs = {next(iter(scored)): (next(iter(truth.values())), next(iter(scored.values())))}
    else:
        unlabelled = sorted(set(scored) - set(truth))
        unscored = sorted(set(truth) - set(scored))
        if unlabelled or unscored:
            gaps = ((unlabelled, "labels"), (unscored, "scores"))
            missing = "; ".join(f"{_first_few([*map(repr, names)])} without {what}" for names, what in gaps if names)
            raise DataFileError(f"The labels and scores must name the same series. Got {missing}.")
        pairs = {name: (truth[name], scored[name]) for name in truth}
    uneven = {
        name: f"{len(y.values)} and {len(s.values)}" for name, (y, s) in pairs.items() if len(y.values) != len(s.values)
    }
    if uneven:
        lengths = [*uneven.values()] if len(uneven) == 1 else [f"{name!r} {both}" for name, both in uneven.items()]
        whose = f"series {next(iter(uneven))!r}" if len(uneven) == 1 else f"{len(uneven)} series"
        raise DataFileError(
            f"The labels and scores of {whose} must have the same length. Got {_first_few(lengths)} instead."
        )
    clocks = [y.timestamps if y.timestamps is not None else s.timestamps for y, s in pairs.values()]
    clocks_known = [clock for clock in clocks if clock is not None]
    return ScoredSeries(
        names=list(pairs),
        labels=[y.values for y, _ in pairs.values()],
        scores=[s.values for _, s in pairs.values()],
        timestamps=clocks_known if len(clocks_known) == len(clocks) else None,
    )

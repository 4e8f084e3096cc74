"""Bring your own: a csv or parquet file, or a folder of them, as named series or as a data set.

Layouts, told apart by the columns and the file names:

* wide: an optional time column, channels, an optional label column (``is_anomaly``, ``label``): one series;
* long: ``unique_id, ds, y`` (and more channels, and a label): one series for each ``unique_id``;
* ``NAME.train.csv`` beside ``NAME.test.csv``, as TimeEval has it: the two splits of one entity;
* ``NAME.npz`` with the arrays ``train`` (T, C), ``test`` (T, C) and ``labels`` (T,): the two splits of one entity;
* ``NAME.labels.csv`` beside ``NAME.csv`` or ``NAME.test.csv``, where these have no label column: one 0 or 1 for each row, or
  the columns ``start`` and ``stop`` of the intervals that are anomalous, in rows or as dates;
* ``..._tr_N_1st_M.csv``, as TSB-AD has it: the first N rows are the training split, the rest the test split.

Where neither says how to split, ``train`` must. This module does not know the published benchmarks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from tisat._validation import check_integer, check_real
from tisat.datasets.base import Dataset, Entity
from tisat.datasets.cards import Card
from tisat.datasets.rows import series_of
from tisat.datasets.splits import split_tail
from tisat.errors import DataFileError, ParameterError, TisatError
from tisat.events import check_events, events_from_labels, labels_from_events
from tisat.reading.files import stem_of
from tisat.reading.packing import SUFFIXES, named_once, open_numpy, problem
from tisat.reading.times import arrow_times
from tisat.series import Series

SPLITS = ("train", "test")
ARRAYS = ".npz"
# Of labels in a file of their own: what its name ends in, and its columns where it has intervals.
ENDING = ".labels"
EDGES = ("start", "stop")
TSB_AD = re.compile(r"_tr_(\d+)_1st_(-?\d+)$")


def files_of(path: str | Path) -> list[Path]:
    """The tables a path means: itself, those of a folder, or those of a glob such as ``plant/*.csv``, sorted."""
    root = Path(path)
    if root.is_file():
        return [root]
    if root.is_dir():
        found = sorted(file for file in root.glob("*") if file.is_file() and file.name.lower().endswith(SUFFIXES))
        if not found:
            raise DataFileError(
                f"The folder {str(root)!r} must hold csv, xlsx, jsonl or parquet files. There are none."
            )
        return found
    if any(sign in str(path) for sign in "*?["):
        found = sorted(file for name in glob(str(path), recursive=True) if (file := Path(name)).is_file())
        if not found:
            raise DataFileError(f"The pattern {str(path)!r} must match files. It matches none.")
        return found
    raise DataFileError(
        f"The data {str(root)!r} must be a file, a folder or a pattern such as 'data/*.csv'. There is none."
    )


def read_series(path: str | Path, **how: Any) -> dict[str, Series]:
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
    """
    files = files_of(path)
    rows = files if len(files) == 1 else [one for one in files if not is_label_file(one)]
    return named_once(path, rows, lambda file: Series.read_all(file, **{**how, "find_entity": True}))


def is_label_file(file: Path) -> bool:
    """Whether a file holds labels of another one, by its name."""
    return stem_of(file).endswith(ENDING)


def with_labels(series: Mapping[str, Series], path: str | Path) -> dict[str, Series]:
    """The series with the labels of the files beside them."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    found = dict(series)
    for file in sorted(one for one in folder.glob(f"*{ENDING}.*") if is_label_file(one)):
        base = stem_of(file).removesuffix(ENDING)
        name = next((one for one in (f"{base}.test", base) if one in found), None)
        if name is None:
            continue  # of a file that was not asked for
        found[name] = replace(found[name], labels=_labels(file, found[name]))
    return found


def _labels(file: Path, series: Series) -> Any:
    import pyarrow.csv as pc

    try:
        table = pc.read_csv(file)
    except Exception as error:  # pyarrow has a dozen of its own
        raise problem(file, "be a csv file with a header", f"{str(error)[:120]!r}") from None
    names = {str(name).strip().lower(): k for k, name in enumerate(table.column_names)}
    if all(edge in names for edge in EDGES):
        edges = [_rows(file, table.column(names[edge]).to_pylist(), series) for edge in EDGES]
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


def _rows(file: Path, edges: list[Any], series: Series) -> Any:
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


def _arrays_of(path: str | Path) -> list[Path]:
    """The .npz files a path means; none where it means tables."""
    root = Path(path)
    if root.is_dir():
        return sorted(root.glob(f"*{ARRAYS}"))
    found = [root] if root.is_file() else [Path(name) for name in sorted(glob(str(path), recursive=True))]
    return found if found and all(file.suffix == ARRAYS for file in found) else []


def _read_arrays(file: Path) -> tuple[Series, Series]:
    """The two splits of an entity from a .npz file with the arrays train (T, C), test (T, C) and labels (T,)."""
    with open_numpy(file, "be a whole .npz file of numbers") as arrays:
        held = list(getattr(arrays, "files", ()))
        if any(name not in held for name in ("train", "test", "labels")):
            raise problem(file, "hold the arrays train, test and labels", f"{', '.join(held) or 'none'}")
        train, test, labels = (arrays[name] for name in ("train", "test", "labels"))
    name = file.stem
    return series_of(file, train, name=name), series_of(file, test, labels=labels, name=name)


def _split(series: Series, train: float | int | None) -> tuple[Series, Series]:
    """Train and test by the file's name (TSB-AD), else by ``train``: a share of the rows, or their number."""
    match = TSB_AD.search(series.name)
    if match is not None:
        rows = check_integer(int(match[1]), "tr", f"the file name {series.name!r}", minimum=1, maximum=len(series) - 1)
        head, tail = series[:rows], series[rows:]
    elif train is None:
        raise ParameterError(
            f"The 'train' parameter of load must say how many rows of {series.name!r} are for training (a share such as "
            f"0.5, or a number), since neither NAME.train.csv nor NAME_tr_N_1st_M.csv does. Got None instead. To look at a file as it is: tisat look FILE."
        )
    elif isinstance(train, float):
        share = check_real(train, "train", "load", above=0, below=1)
        head, tail = split_tail(series, rows=len(series) - round(share * len(series)))
    else:
        rows = check_integer(train, "train", "load", minimum=1, maximum=len(series) - 1)
        head, tail = series[:rows], series[rows:]
    return head.without_labels(), tail


def _given(series: Series) -> Series:
    return series


def _card(path: Path, pairs: dict[str, tuple[Series, Series]]) -> Card:
    """What can be said of files nobody described."""
    first = next(iter(pairs.values()))[0]
    labels = [test.labels for _, test in pairs.values() if test.labels is not None]
    unknown = "not stated"
    return Card(
        name=path.name,
        title=path.name,
        folder=path.name,
        description="Your own files.",
        source=str(path),
        paper=unknown,
        licence=unknown,
        obtain=unknown,
        channels=first.n_channels,
        period=math.nan if first.period is None else first.period,
        clock="The median step of the timestamps, where there are any.",
        train_rows=sum(len(train) for train, _ in pairs.values()),
        test_rows=sum(len(test) for _, test in pairs.values()),
        entities=len(pairs),
        events=sum(len(events_from_labels(y)) for y in labels),
        anomalous_percent=100 * float(np.mean(np.concatenate(labels))) if labels else math.nan,
        event="A maximal run of ones in the label column.",
        problems=(),
        rows={name: (len(train), len(test)) for name, (train, test) in pairs.items()},
        files=(),
        download=(),
        channel_names=first.channels,
    )


def read_dataset(path: str | Path, *, train: float | int | None = None, **how: Any) -> Dataset:
    """Your own files as a data set; :func:`tisat.datasets.load` calls it when given a path instead of a name.

    Parameters
    ----------
    path, **how
        As for :func:`read_series`.
    train : float in (0, 1) or int >= 1, optional
        The share or number of rows at the start of each series that are the training split, where names do not tell.
    """
    arrays = _arrays_of(path)
    whole = {} if arrays else with_labels(read_series(path, **how), path)
    pairs: dict[str, tuple[Series, Series]] = {file.stem: _read_arrays(file) for file in arrays}
    for name, series in whole.items():
        base, _, split = name.rpartition(".")
        if split in SPLITS and base:
            other = f"{base}.{SPLITS[split == 'train']}"
            if other not in whole:
                raise DataFileError(
                    f"The files of {str(path)!r} must come in pairs. {name!r} is there without {other!r}."
                )
            pairs[base] = (whole[f"{base}.train"].without_labels(), whole[f"{base}.test"])
        else:
            pairs[name] = _split(series, train)
    named = {name: (replace(a, name=name), replace(b, name=name)) for name, (a, b) in pairs.items()}
    return Dataset(
        card=_card(Path(path), named),
        entities=tuple(
            Entity(name=name, period=a.period, read_train=partial(_given, a), read_test=partial(_given, b))
            for name, (a, b) in named.items()
        ),
    )

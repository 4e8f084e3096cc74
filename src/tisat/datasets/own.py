"""Bring your own: a csv or parquet file, or a folder of them, as named series or as a data set.

Layouts, told apart by the columns and the file names:

* wide: an optional time column, channels, an optional label column (``is_anomaly``, ``label``): one series;
* long: ``unique_id, ds, y`` (and more channels, and a label): one series for each ``unique_id``;
* ``NAME.train.csv`` beside ``NAME.test.csv``, as TimeEval has it: the two splits of one entity;
* ``..._tr_N_1st_M.csv``, as TSB-AD has it: the first N rows are the training split, the rest the test split.

Where neither says how to split, ``train`` must. This module does not know the published benchmarks.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tisat._validation import check_integer, check_labels, check_real
from tisat.datasets.base import Dataset, Entity
from tisat.datasets.cards import Card
from tisat.datasets.rows import series_of
from tisat.datasets.splits import split_tail
from tisat.errors import DataFileError, ParameterError
from tisat.events import events_from_labels
from tisat.reading.clock import Times
from tisat.reading.columns import LABEL_NAMES, TIME_NAMES, choose
from tisat.reading.tables import arrow_times, first_lines, gather, open_table, parquet_schema, problem
from tisat.series import TEXT_SUFFIXES, Series

ENTITY = "unique_id"
SPLITS = ("train", "test")
TSB_AD = re.compile(r"_tr_(\d+)_1st_(-?\d+)$")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet")


def _stem(file: Path) -> str:
    longest_first = sorted(SUFFIXES, key=len, reverse=True)
    return next((file.name.removesuffix(suffix) for suffix in longest_first if file.name.endswith(suffix)), file.stem)


def _columns(file: Path) -> list[str]:
    if file.suffix == ".parquet":
        return list(parquet_schema(file)[0].names)
    return next(iter(first_lines(file, count=1)), [])


def _read_long(file: Path, *, time: str | None, label: str | None) -> dict[str, Series]:
    """The series of a long table, in the order in which their names first appear."""
    import pyarrow as pa

    schema, batches, rows = open_table(file)
    time = choose(list(schema), time, TIME_NAMES)
    label = choose(list(schema), label, LABEL_NAMES)
    channels = [column for column in schema if column not in (ENTITY, time, label)]
    text = next((column for column in channels if not schema[column]), None)
    if not channels or text is not None:
        raise problem(
            file, f"hold numbers beside {ENTITY}", f"text in column {text!r}" if text else "no column of values"
        )
    values, others = gather(batches, rows=rows, numeric=channels)
    encoded = others[ENTITY].cast(pa.string()).dictionary_encode()
    if encoded.null_count:
        raise problem(
            file,
            f"name a series in column {ENTITY!r}",
            "an empty cell",
            row=int(np.argmax(np.asarray(encoded.is_null()))),
        )
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    times = None if time is None else arrow_times(others[time], name=time)
    labels = None if label is None else check_labels(np.asarray(others[label].cast(pa.float64())), label, str(file))
    found: dict[str, Series] = {}
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        picked = order[edges[code] : edges[code + 1]]
        first, stop = int(picked[0]), int(picked[-1]) + 1
        # The usual case is one series after another: then a view, not a copy.
        mine = slice(first, stop) if stop - first == len(picked) else picked
        found[name] = series_of(
            file,
            values[mine],
            timestamps=None if times is None else _rows(times, mine),
            labels=None if labels is None else labels[mine],
            channels=tuple(channels),
            name=name,
        )
    return found


def _rows(times: Times, which: slice | npt.NDArray[np.int64]) -> Times:
    return replace(times, values=times.values[which], offsets=None if times.offsets is None else times.offsets[which])


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(file for file in path.glob("*") if file.is_file() and file.name.endswith(SUFFIXES))
    if not found:
        raise DataFileError(f"The folder {str(path)!r} must hold csv or parquet files. There are none.")
    return found


def read_series(path: str | Path, *, time: str | None = None, label: str | None = None) -> dict[str, Series]:
    """Every series in a file or a folder of files, by name, whole.

    Parameters
    ----------
    path : file or folder
        csv, txt (with a header; also .gz) or parquet; wide, or long with the columns ``unique_id, ds, y``.
    time, label : str, optional
        The columns that hold them, where they are not called as in :meth:`tisat.Series.from_table`.

    Returns
    -------
    series : dict of name to Series
        The name is the file's stem, or in a long table the ``unique_id``.
    """
    root = Path(path)
    if not root.exists():
        raise DataFileError(f"The data {str(root)!r} must be a file or a folder. There is neither.")
    found: dict[str, Series] = {}
    for file in _files(root):
        if ENTITY in _columns(file):
            more = _read_long(file, time=time, label=label)
        else:
            more = {_stem(file): Series.read(file, time=time, label=label, name=_stem(file))}
        twice = next((name for name in more if name in found), None)
        if twice is not None:
            raise DataFileError(
                f"The files of {str(root)!r} must name a series once. Got {twice!r} again in {file.name!r}."
            )
        found |= more
    return found


def _split(series: Series, train: float | int | None) -> tuple[Series, Series]:
    """Train and test by the file's name (TSB-AD), else by ``train``: a share of the rows, or their number."""
    match = TSB_AD.search(series.name)
    if match is not None:
        rows = check_integer(int(match[1]), "tr", f"the file name {series.name!r}", minimum=1, maximum=len(series) - 1)
        head, tail = series[:rows], series[rows:]
    elif train is None:
        raise ParameterError(
            f"The 'train' parameter of load must say how many rows of {series.name!r} are for training (a share such as "
            f"0.5, or a number), since neither NAME.train.csv nor NAME_tr_N_1st_M.csv does. Got None instead."
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


def read_dataset(
    path: str | Path, *, train: float | int | None = None, time: str | None = None, label: str | None = None
) -> Dataset:
    """Your own files as a data set; :func:`tisat.datasets.load` calls it when given a path instead of a name.

    Parameters
    ----------
    path, time, label
        As for :func:`read_series`.
    train : float in (0, 1) or int >= 1, optional
        The share or number of rows at the start of each series that are the training split, where names do not tell.
    """
    whole = read_series(path, time=time, label=label)
    pairs: dict[str, tuple[Series, Series]] = {}
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

"""Read a user's own files as a data set of two splits.

Layouts, recognised by the columns and the file names, besides those of :mod:`tisat.datasets.user_files`:

* ``NAME.train.csv`` beside ``NAME.test.csv``, as TimeEval has it: the two splits of one entity;
* ``NAME.npz`` with the arrays ``train`` (T, C), ``test`` (T, C) and ``labels`` (T,): the two splits of one entity;
* ``..._tr_N_1st_M.csv``, as TSB-AD has it: the first N rows are the training split, the rest the test split.

Otherwise ``train`` gives the split. This module does not know the published benchmarks.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from glob import glob
from pathlib import Path

import numpy as np

from tisat.datasets.splits import split_tail
from tisat.datasets.user_files import read_series, with_labels
from tisat.errors import DataFileError, ParameterError
from tisat.events import events_from_labels
from tisat.io.compression import open_numpy, problem
from tisat.series import Series
from tisat.utils.validation import check_integer, check_real
from tisat_bench.datasets.base import Dataset, Entity
from tisat_bench.datasets.cards import Card
from tisat_bench.datasets.rows import series_of

SPLITS = ("train", "test")
ARRAYS = ".npz"
TSB_AD = re.compile(r"_tr_(\d+)_1st_(-?\d+)$")


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
        raise ParameterError.about(
            "train",
            f"must say how many rows of {series.name!r} are for training (a share such as 0.5, or a number), since neither NAME.train.csv nor NAME_tr_N_1st_M.csv does. Got None instead. To look at a file as it is: tisat look FILE.",
            whose="load",
        )
    elif isinstance(train, float):
        share = check_real(train, "train", "load", above=0, below=1)
        head, tail = split_tail(series, rows=len(series) - round(share * len(series)))
    else:
        rows = check_integer(train, "train", "load", minimum=1, maximum=len(series) - 1)
        head, tail = series[:rows], series[rows:]
    return head.without_labels(), tail


def _unchanged(series: Series) -> Series:
    return series


def _card(path: Path, pairs: dict[str, tuple[Series, Series]]) -> Card:
    """Make the card of a user's own files."""
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


def read_dataset(path: str | Path, *, train: float | int | None = None, **how: object) -> Dataset:
    """Your own files as a data set.

    :func:`tisat_bench.datasets.load` calls it when given a path instead of a name.

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
    series_pairs = {name: (replace(a, name=name), replace(b, name=name)) for name, (a, b) in pairs.items()}
    return Dataset(
        card=_card(Path(path), series_pairs),
        entities=tuple(
            Entity(name=name, period=a.period, read_train=partial(_unchanged, a), read_test=partial(_unchanged, b))
            for name, (a, b) in series_pairs.items()
        ),
    )

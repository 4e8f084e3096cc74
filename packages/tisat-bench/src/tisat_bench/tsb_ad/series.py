"""The series of TSB-AD that are there: its own files, or rebuilt from the raw data sets and checked.

MSL, SMAP and SMD there are the *test* files of the publishers (a univariate MSL or SMAP series is the first column), UCR series are
whole files with the last anomalous row left out, NAB series lack one row and the last row of each event. A raw file is taken for a
listed series only where rows, first anomalous row, anomalous rows and events all agree and no other raw file fits, and each raw
file is taken once. Two univariate series fit but are other columns than the first (:data:`OTHER_COLUMN`). Two things cannot be
checked so: which of UCR's variants (plain, noisy, distorted) a series is, and whether NAB's missing row is the first or
the last. Univariate SMD series are single channels, unknown which, and are not rebuilt.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tisat.errors import DataFileError
from tisat.events import events_from_labels
from tisat.io.compression import open_numpy
from tisat.utils.types import Array, Flags
from tisat_bench.datasets.cards import card
from tisat_bench.datasets.loading import data_root, labels, load
from tisat_bench.tsb_ad.lists import FOLDER, Benchmark, ListedSeries

# An isolation forest on the first column has a VUS-PR of .183 and .831 there; published are .079 and .038. Of 21 others 19 agree within .02.
OTHER_COLUMN = ("140_MSL_id_1_Sensor_tr_530_1st_630.csv", "144_MSL_id_5_Sensor_tr_1525_1st_4590.csv")


@dataclass(frozen=True)
class FoundSeries:
    """A listed series whose values are there."""

    listed: ListedSeries
    source: str  # "TSB-AD's file", or the raw file it was rebuilt from
    read: Callable[[], tuple[Array, Flags]]  # values (T, C) and labels (T,)


@dataclass(frozen=True)
class RawSeries:
    """A raw series with the labels it has in TSB-AD's form."""

    source: str
    labels: Flags
    values: Callable[[], Array]

    def fits(self, listed: ListedSeries) -> bool:
        """Whether rows, onset, anomalous rows and events are those of the list."""
        return _facts(self.labels) == (listed.rows, listed.onset, listed.anomalous_rows, listed.events)


def _facts(flags: Flags) -> tuple[int, int, int, int]:
    events = events_from_labels(flags)
    return len(flags), int(events[0][0]) if len(events) else -1, int(flags.sum()), len(events)


def _read_own(file: Path, listed: ListedSeries, *, univariate: bool) -> tuple[Array, Flags]:
    """The values and labels of TSB-AD's own file, rows with missing values left out as its program does."""
    with file.open(newline="", encoding="utf-8") as lines:
        rows = csv.reader(lines)
        header = next(rows, [])
        if len(header) < 2 or header[-1] != "Label":
            raise DataFileError(f"The file {str(file)!r} must have values and a last column 'Label'. Got {header!r}.")
        try:
            table = np.array([[float(cell or "nan") for cell in row] for row in rows], dtype=np.float64)
        except ValueError as error:
            raise DataFileError(f"The file {str(file)!r} must hold numbers in equal rows. Got {error}.") from None
    table = table[~np.isnan(table).any(axis=1)]
    values, flags = table[:, :-1], table[:, -1] > 0
    if univariate and values.shape[1] != 1:
        raise DataFileError(f"The file {str(file)!r} must have one channel. Got {values.shape[1]} instead.")
    if len(flags) != listed.rows or int(flags.sum()) != listed.anomalous_rows:
        raise DataFileError(
            f"The file {str(file)!r} must have {listed.rows} rows, {listed.anomalous_rows} of them anomalous, as published. "
            f"Got {len(flags)} and {int(flags.sum())} instead."
        )
    return values, flags


def _test_values(name: str, data: str | Path | None, entity: str, *, univariate: bool) -> Array:
    whole = load(name, data, entities=[entity], telemetry_only=None if name == "smd" else univariate)
    return np.asarray(whole[entity].test.values, dtype=np.float64)


def _test_files(name: str, data: str | Path | None, *, univariate: bool) -> Iterator[RawSeries]:
    if (name == "smd" and univariate) or not (data_root(data) / card(name).folder).is_dir():
        return
    known = set(load(name, data).names)
    for entity, flags in labels(name, data).items():
        if entity in known:
            values = partial(_test_values, name, data, entity, univariate=univariate)
            yield RawSeries(f"{name} {entity}", flags, values)


def _read_arrays(file: Path) -> tuple[Array, Flags]:
    with open_numpy(file, "be a whole .npz file with the arrays train, test and labels") as held:
        train, test, flags = (np.asarray(held[name]) for name in ("train", "test", "labels"))
    values = np.concatenate([train, test]).astype(np.float64).reshape(len(train) + len(test), -1)
    return values, np.concatenate([np.zeros(len(train), dtype=bool), flags > 0])


def _first_rows(file: Path, rows: int) -> Array:
    return _read_arrays(file)[0][:rows]


def _whole_files(folder: Path, *, drop: int) -> Iterator[RawSeries]:
    for file in sorted(folder.glob("*.npz")):
        flags = _read_arrays(file)[1]
        shorter = flags & np.append(flags[1:], False)  # events end a row earlier there
        kept = len(flags) - drop
        yield RawSeries(f"{folder.name} {file.stem}", shorter[:kept], partial(_first_rows, file, kept))


def _raw(dataset: str, data: str | Path | None, *, univariate: bool) -> list[RawSeries]:
    if dataset in ("MSL", "SMAP", "SMD"):
        return list(_test_files(dataset.lower(), data, univariate=univariate))
    if dataset in ("UCR", "NAB") and univariate:
        return list(_whole_files(data_root(data) / dataset, drop=int(dataset == "NAB")))
    return []


def _read_raw(raw: RawSeries) -> tuple[Array, Flags]:
    return raw.values(), raw.labels


def find_series(benchmark: Benchmark, data: str | Path | None = None) -> tuple[FoundSeries, ...]:
    """Find the listed series that are there, TSB-AD's own files first.

    Parameters
    ----------
    benchmark : Benchmark
    data : folder, optional
        Looked for are ``TSB-AD-M/FILE`` (or ``-U``), ``tsb-ad/TSB-AD-M/FILE`` and ``tsb-ad/FILE``; then the raw data sets.

    Returns
    -------
    tuple of FoundSeries
        In the order of the list. Values are read by :attr:`FoundSeries.read`.
    """
    root = data_root(data)
    raw = {name: _raw(name, data, univariate=benchmark.univariate) for name in {s.dataset for s in benchmark.series}}
    series, used_files = [], set()
    for listed in benchmark.series:
        places = (root / benchmark.title, root / FOLDER / benchmark.title, root / FOLDER)
        own = next((place / listed.file for place in places if (place / listed.file).is_file()), None)
        if own is not None:
            read = partial(_read_own, own, listed, univariate=benchmark.univariate)
            series.append(FoundSeries(listed, "TSB-AD's file", read))
            continue
        if listed.file in OTHER_COLUMN:
            continue
        fitting = [one for one in raw[listed.dataset] if one.fits(listed)]
        if len(fitting) == 1 and fitting[0].source not in used_files:
            used_files.add(fitting[0].source)
            series.append(FoundSeries(listed, f"rebuilt from {fitting[0].source}", partial(_read_raw, fitting[0])))
    return tuple(series)

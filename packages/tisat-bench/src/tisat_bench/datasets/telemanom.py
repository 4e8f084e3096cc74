"""MSL and SMAP, the telemetry of a rover and a satellite, as the telemanom repository lays them out.

``train/*.npy`` and ``test/*.npy`` hold one array a channel: column 0 is the telemetry value, the rest one-hot commands.
``labeled_anomalies.csv`` names the spacecraft and the anomalous intervals, both ends included. Facts and known
problems are on the cards. This module does not know where the folder lies.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tisat.events import labels_from_events
from tisat.io.compression import open_numpy, problem
from tisat.series import Series
from tisat.utils.types import AnyFloats, Flags
from tisat_bench.datasets.base import Dataset, entities_of
from tisat_bench.datasets.cards import Card
from tisat_bench.datasets.rows import check_rows, regular_clock

LABELS = "labeled_anomalies.csv"
COLUMNS = ("chan_id", "spacecraft", "anomaly_sequences", "class", "num_values")


@dataclass(frozen=True)
class Channel:
    """One channel of ``labeled_anomalies.csv``, its rows merged."""

    length: int  # rows in test
    events: tuple[tuple[int, int], ...]  # [start, stop)


def _intervals(text: str, length: int) -> tuple[tuple[int, int], ...] | None:
    """``[[first, last], ...]`` as half-open intervals within the length, or None where it is anything else."""
    try:
        pairs = json.loads(text)
        found = tuple((int(first), int(last) + 1) for first, last in pairs)
    except (ValueError, TypeError):
        return None
    return found if all(0 <= start < stop <= length for start, stop in found) else None


def read_channels(folder: Path, card: Card) -> dict[str, Channel]:
    """The channels of one spacecraft.

    A channel with several rows (P-2) has the events of all of them.
    """
    file = folder / LABELS
    if not file.is_file():
        raise problem(file, "exist", "no such file")
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise problem(file, "be text in UTF-8", f"a byte that is not, at position {error.start}") from None
    header = next(csv.reader(lines[:1]), [])
    if tuple(header) != COLUMNS:
        raise problem(file, f"begin with the columns {', '.join(COLUMNS)}", f"{', '.join(header)[:80]!r}", line=1)
    channels: dict[str, Channel] = {}
    for row, line in enumerate(lines[1:]):
        cells = next(csv.reader([line]), [])
        if len(cells) != len(COLUMNS):
            raise problem(file, f"have {len(COLUMNS)} cells in each row", f"{len(cells)}", row=row, line=row + 2)
        name, spacecraft, text, _, count = cells
        if not count.isdigit():
            raise problem(file, "hold a whole number in column 'num_values'", f"{count!r}", row=row, line=row + 2)
        intervals = _intervals(text, int(count))
        if intervals is None:
            raise problem(
                file,
                f"hold intervals [[first, last], ...] within 0 to {int(count) - 1} in column 'anomaly_sequences'",
                f"{text[:60]!r}",
                row=row,
                line=row + 2,
            )
        if spacecraft.lower() != card.name:
            continue
        before = channels.get(name, Channel(int(count), ()))
        if before.length != int(count):
            raise problem(file, f"give {name} the same num_values in every row", count, row=row, line=row + 2)
        channels[name] = Channel(int(count), before.events + intervals)
    return channels


def read_array(folder: Path, card: Card, channel: str, split: str, *, telemetry_only: bool, strict: bool) -> AnyFloats:
    """One array, memory-mapped; or the telemetry column alone, copied out."""
    file = folder / split / f"{channel}.npy"
    if not file.is_file():
        raise problem(file, "exist", "no such file")
    with open_numpy(file, "be a whole .npy array of numbers", mode="r") as opened:
        array: AnyFloats = opened
    if array.ndim != 2 or array.shape[1] != card.channels or array.dtype not in (np.float32, np.float64):
        raise problem(file, f"hold a (rows, {card.channels}) array of floats", f"shape {array.shape} of {array.dtype}")
    check_rows(file, len(array), card, channel, split, strict=strict)
    good = np.isfinite(array).all(axis=1)
    if not good.all():
        raise problem(file, "hold finite numbers", "another value", row=int(np.argmin(good)))
    return np.array(array[:, :1]) if telemetry_only else array


def _series(folder: Path, card: Card, channel: str, split: str, *, telemetry_only: bool, strict: bool) -> Series:
    array = read_array(folder, card, channel, split, telemetry_only=telemetry_only, strict=strict)
    labels = None
    if split == "test":
        known = read_channels(folder, card)[channel]
        labels = labels_from_events(known.events, length=known.length)
        if len(labels) != len(array):
            must = f"give {channel} as many num_values as test/{channel}.npy has rows, {len(array)}"
            raise problem(folder / LABELS, must, f"{len(labels)}")
    names = ("telemetry", *(f"command-{c}" for c in range(1, array.shape[1])))
    return Series(array, timestamps=regular_clock(len(array), card), channels=names, labels=labels, name=channel)


def labels(folder: Path, card: Card, *, strict: bool) -> dict[str, Flags]:
    """The test labels of every channel of the spacecraft, in the order of the card."""
    channels = read_channels(folder, card)
    for name, known in channels.items():
        check_rows(folder / LABELS, known.length, card, name, "test", strict=strict)
    found = {name: labels_from_events(known.events, length=known.length) for name, known in channels.items()}
    order = [*(name for name in card.rows if name in found), *(name for name in found if name not in card.rows)]
    return {name: found[name] for name in order}


def dataset(folder: Path, card: Card, *, telemetry_only: bool, strict: bool) -> Dataset:
    """Every labelled channel whose two arrays are there."""
    labelled = list(labels(folder, card, strict=strict))
    arrays = {name: [folder / split / f"{name}.npy" for split in ("train", "test")] for name in labelled}
    whole = [name for name in labelled if all(file.is_file() for file in arrays[name])]
    read = partial(_series, folder, card, telemetry_only=telemetry_only, strict=strict)
    missing = tuple(name for name in dict.fromkeys([*card.rows, *labelled]) if name not in whole)
    return Dataset(card=card, entities=entities_of(card, whole, read), missing=missing)

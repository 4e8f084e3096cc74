"""SMD, the Server Machine Dataset: 28 machines, four folders of text files.

``train/``, ``test/``, ``test_label/`` and ``interpretation_label/`` each hold ``machine-G-I.txt``. Facts and known
problems are on the card. This module does not know where the folder lies, and does not scale anything.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from tisat.io.compression import problem
from tisat.io.tables import read_numbers
from tisat.series import Series
from tisat.utils.types import Array, Flags
from tisat_bench.datasets.base import Attribution, Dataset, entities_of
from tisat_bench.datasets.cards import Card
from tisat_bench.datasets.rows import check_binary, check_rows, regular_clock, series_of

ATTRIBUTION = re.compile(r"(\d+)-(\d+):(\d+(?:,\d+)*)")


def _machines(folder: Path) -> list[str]:
    """The machines with files in a folder, in the order 1-1, 1-2, ... 3-10, 3-11."""
    return sorted(
        (file.stem for file in folder.glob("*.txt")), key=lambda name: [part.zfill(9) for part in name.split("-")]
    )


def read_values(folder: Path, card: Card, machine: str, split: str, *, strict: bool) -> Array:
    """The values of one split of one machine, (T, 38)."""
    file = folder / split / f"{machine}.txt"
    values = read_numbers(file, names=[str(c) for c in range(card.channels)])
    check_rows(file, len(values), card, machine, split, strict=strict)
    return values


def read_labels(folder: Path, card: Card, machine: str, *, strict: bool) -> Flags:
    """The test labels of one machine."""
    file = folder / "test_label" / f"{machine}.txt"
    labels = check_binary(file, read_numbers(file, names=["label"])[:, 0])
    check_rows(file, len(labels), card, machine, "test", strict=strict)
    return labels


def read_interpretation(folder: Path, card: Card, machine: str) -> tuple[Attribution, ...]:
    """The channels an expert contributing, event by event.

    Channels count from 0 here and from 1 in the file.
    """
    file = folder / "interpretation_label" / f"{machine}.txt"
    if not file.is_file():
        raise problem(file, "exist", "no such file")
    must = "hold 'start-stop:channel,channel,...' in each row, channels from 1"
    attributions = []
    for row, raw in enumerate(file.read_bytes().splitlines()):
        text = raw.decode("ascii", errors="replace").strip()
        match = ATTRIBUTION.fullmatch(text)
        if match is None:
            raise problem(file, must, f"{text[:60]!r}", row=row, line=row + 1)
        start, stop = int(match[1]), int(match[2])
        channels = tuple(int(channel) - 1 for channel in match[3].split(","))
        if start >= stop or min(channels) < 0 or max(channels) >= card.channels:
            raise problem(file, f"{must} to {card.channels}", f"{text[:60]!r}", row=row, line=row + 1)
        attributions.append(Attribution((start, stop), channels))
    return tuple(attributions)


def _series(folder: Path, card: Card, machine: str, split: str, *, strict: bool) -> Series:
    values = read_values(folder, card, machine, split, strict=strict)
    labels = read_labels(folder, card, machine, strict=strict) if split == "test" else None
    if labels is not None and len(labels) != len(values):
        must = f"have one row for each of the {len(values)} rows of test/{machine}.txt"
        raise problem(folder / "test_label" / f"{machine}.txt", must, f"{len(labels)} rows")
    file = folder / split / f"{machine}.txt"
    return series_of(file, values, timestamps=regular_clock(len(values), card), labels=labels, name=machine)


def labels(folder: Path, card: Card, *, strict: bool) -> dict[str, Flags]:
    """The test labels of every machine that has them."""
    return {machine: read_labels(folder, card, machine, strict=strict) for machine in _machines(folder / "test_label")}


def dataset(folder: Path, card: Card, *, strict: bool) -> Dataset:
    """Every machine whose train and test are there."""
    labelled, train, test = (_machines(folder / part) for part in ("test_label", "train", "test"))
    whole = [machine for machine in labelled if machine in train and machine in test]
    names = list(dict.fromkeys([*card.rows, *labelled, *train, *test]))
    attribution = {name: partial(read_interpretation, folder, card, name) for name in whole}
    entities = entities_of(card, whole, partial(_series, folder, card, strict=strict))
    return Dataset(
        card=card,
        entities=tuple(replace(one, read_interpretation=attribution[one.name]) for one in entities),
        missing=tuple(machine for machine in names if machine not in whole),
    )

"""PSM, Pooled Server Metrics: ``train.csv``, ``test.csv`` and ``test_label.csv``.

26 columns, of which the first, ``timestamp_(min)``, is the time and 25 are values; empty cells stay NaN. Facts
and known problems are on the card. This module does not know where the folder lies.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from tisat.io.compression import problem
from tisat.io.dialect import Format
from tisat.io.tables import count_lines, first_lines, gather, text_batches
from tisat.series import Series
from tisat.utils.types import Array, Flags
from tisat_bench.datasets.base import Dataset, entities_of
from tisat_bench.datasets.cards import Card
from tisat_bench.datasets.rows import check_binary, check_rows, regular_clock, series_of

NAME = "psm"  # the one entity
TIME = "timestamp_(min)"
MINUTE = 60.0


def _read(file: Path, columns: tuple[str, ...]) -> tuple[Array | None, Array]:
    """The minutes (None where the file has no such column) and the named columns."""
    if not file.is_file():
        raise problem(file, "exist", "no such file")
    header = next(iter(first_lines(file, count=1)), [])
    if header not in ([TIME, *columns], list(columns)):
        raise problem(
            file, f"begin with the columns {TIME}, {columns[0]} to {columns[-1]}", f"{','.join(header)[:60]!r}", line=1
        )
    rows = count_lines(file)
    table, _ = gather(text_batches(file, Format(tuple(header)), numeric=header), rows=rows, numeric=header)
    if not len(table):
        raise problem(file, "have rows below its header", "none")
    if header[0] != TIME:
        return None, table
    return np.ascontiguousarray(table[:, 0]), table[:, 1:]


def _series(folder: Path, card: Card, name: str, split: str, *, strict: bool) -> Series:
    file = folder / f"{split}.csv"
    minutes, values = _read(file, card.channel_names)
    check_rows(file, len(values), card, name, split, strict=strict)
    labels = None
    if split == "test":
        label_file = folder / "test_label.csv"
        label_minutes, column = _read(label_file, ("label",))
        if len(column) != len(values):
            raise problem(
                label_file, f"have one row for each of the {len(values)} rows of test.csv", f"{len(column)} rows"
            )
        if minutes is not None and label_minutes is not None and not np.array_equal(minutes, label_minutes):
            row = int(np.argmax(minutes != label_minutes))
            must = f"give the minute of test.csv, {minutes[row]:g}"
            raise problem(label_file, must, f"{label_minutes[row]:g}", row=row, line=row + 2)
        labels = check_binary(label_file, column[:, 0], header=1)
    return series_of(
        file,
        values,
        timestamps=regular_clock(len(values), card) if minutes is None else minutes * MINUTE,
        channels=card.channel_names,
        labels=labels,
        name=name,
    )


def labels(folder: Path, card: Card, *, strict: bool) -> dict[str, Flags]:
    """The test labels, which need ``test_label.csv`` alone."""
    file = folder / "test_label.csv"
    found = check_binary(file, _read(file, ("label",))[1][:, 0], header=1)
    check_rows(file, len(found), card, NAME, "test", strict=strict)
    return {NAME: found}


def dataset(folder: Path, card: Card, *, strict: bool) -> Dataset:
    """The one entity, where its files are there."""
    if not all((folder / file).is_file() for file in ("train.csv", "test.csv", "test_label.csv")):
        return Dataset(card=card, entities=(), missing=(NAME,))
    return Dataset(card=card, entities=entities_of(card, [NAME], partial(_series, folder, card, strict=strict)))

"""Check the rows of published files: their number, and labels of 0 and 1.

It does not read files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.errors import DataFileError, InputError
from tisat.io.compression import problem
from tisat.series import Series
from tisat.utils.types import Array, Flags
from tisat_bench.datasets.cards import Card


def check_rows(file: Path, rows: int, card: Card, entity: str, split: str, *, strict: bool) -> None:
    """Refuse a file that has not the rows its publisher gave it (where ``strict``, and where they are known)."""
    published = card.rows.get(entity, (None, None))[split == "test"]
    if strict and published is not None and rows != published:
        raise problem(
            file,
            f"have the {published} rows its publisher gave it (pass strict=False to take it as it is)",
            f"{rows} rows",
        )


def check_binary(file: Path, column: Array, *, header: int = 0) -> Flags:
    """Labels as booleans; anything but 0 and 1 is refused with its row."""
    labels: Flags = column == 1
    wrong = ~(labels | (column == 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise problem(file, "hold only 0 and 1", f"{column[row]:g}", row=row, line=row + header + 1)
    return labels


def regular_clock(rows: int, card: Card) -> Array:
    """Seconds from the first row, for files that are sampled regularly and carry no timestamps."""
    return np.arange(rows, dtype=np.float64) * card.period


def series_of(file: Path, values: npt.NDArray[Any], **parts: Any) -> Series:
    """A series, whose complaints name the file it came from."""
    try:
        return Series(values, **parts)
    except InputError as error:
        raise DataFileError(f"{file}: {error}") from None

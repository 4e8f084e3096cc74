"""Alarms read back from the tables that :meth:`Alarms.write` makes, as the mask that evaluation wants."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.errors import DataFileError


def _rows(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as text:
            return list(csv.DictReader(text))
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    if file.suffix == ".parquet":
        import pyarrow.parquet as parquet

        rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
        return rows
    raise DataFileError(f"A table of alarms must end in .csv, .parquet or .jsonl. Got {str(file)!r} instead.")


def read_active(path: str | Path, *, length: int) -> npt.NDArray[np.bool_]:
    """Where the alarms of a table were on, over ``length`` instants: from ``raised`` up to ``cleared`` (empty: to the end)."""
    file = Path(path)
    if not file.is_file():
        raise DataFileError(f"The table of alarms {str(file)!r} must be a file. There is no such file.")
    try:
        rows = _rows(file)
    except (ValueError, OSError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"The table of alarms {str(file)!r} could not be read: {error}") from None
    active = np.zeros(length, dtype=np.bool_)
    for number, row in enumerate(rows):
        try:
            raised = int(row["raised"])
            cleared = length if row.get("cleared") in (None, "") else int(row["cleared"])
        except (KeyError, TypeError, ValueError):
            raise DataFileError(
                f"The table of alarms {str(file)!r} must have instants in 'raised' and 'cleared'. Row {number} has not."
            ) from None
        if not 0 <= raised < cleared <= length:
            raise DataFileError(
                f"The alarms of {str(file)!r} must lie within the {length} instants of the series. "
                f"Got [{raised}, {cleared}) at row {number} instead."
            )
        active[raised:cleared] = True
    return active

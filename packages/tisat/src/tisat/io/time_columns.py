"""Time columns of tables: one or two columns of dates, clock times or numbers, as moments in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tisat.errors import SeriesError
from tisat.io.arrow_arrays import plain
from tisat.io.dates import ISO, DateReader, guess_format
from tisat.io.time_zones import in_zone
from tisat.io.timestamps import OFFSET, Times, offset_minutes, read_times, times_of
from tisat.utils.types import AnyArray, Flags

_OF_DAY = re.compile(r"\d{1,2}[:.]\d{2}([:.]\d{2}([.,]\d+)?)?(\s*[AaPp]\.?[Mm]\.?)?")
DEDUPS = ("first", "last", "mean")


def arrow_times(column: Any, *, name: str = "time") -> Times:
    """An arrow column as times: dates in UTC beside the offset they were written with, or numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    try:
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            local = pc.local_timestamp(column).cast(pa.timestamp("ns"))
            utc = column.cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))
            values = plain(utc)
            ahead = plain(local) - values
            minutes = np.nan_to_num(ahead / np.timedelta64(1, "m")).round()  # 0 where the time is not known
            return Times(values, minutes.astype(np.int16))
        if pa.types.is_temporal(kind):
            return Times(plain(column.cast(pa.timestamp("ns"))))
        if pa.types.is_string(kind) and len(column) and column.null_count == 0:
            utc = column.cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))
            written = pc.replace_substring_regex(column, f"^.*?({OFFSET})$", r"\1").dictionary_encode()
            minutes = np.array([offset_minutes(text) for text in written.dictionary.to_pylist()], dtype=np.int16)
            return Times(plain(utc), minutes[plain(written.indices)])
    except (pa.ArrowException, ValueError, OverflowError):
        pass  # text that is not plainly a date with an offset: row by row, with a sentence that names the row
    return read_times(column.to_numpy(zero_copy_only=False), name=name)


def read_time_columns(
    columns: Sequence[Any],
    names: Sequence[str],
    *,
    time_format: str | None = None,
    timezone: str | None = None,
    seen: str | None = None,
) -> tuple[Times, str | None]:
    """The times of a table, and how its dates are written where that had to be found out.

    Parameters
    ----------
    columns : arrow arrays
        One, or a date and a time of the day.
    names : their names
    time_format, timezone : str, optional
        What the user said.
    seen : str, optional
        How earlier files were written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    label = "+".join(names)
    column = columns[0]
    if len(columns) == 2:
        parts = [_as_text(one, name) for one, name in zip(columns, names, strict=True)]
        column = pc.binary_join_element_wise(*parts, " ")
    zone: str | None = None
    known = column.drop_null()  # a cell that is empty says nothing of how the others are written
    if time_format is None and pa.types.is_string(column.type) and len(known):
        guessed = guess_format(known.to_pylist(), name=label, seen=seen)
        zone = None if guessed == ISO else guessed
    form = time_format or zone
    if form is None or pa.types.is_temporal(column.type):  # a date already, whatever was said of text
        times = arrow_times(column, name=label)
    else:
        times = times_of(column.to_pylist(), DateReader(form))
    if timezone is not None:
        times = in_zone(times, timezone)
    return times, zone


def _as_text(column: Any, name: str) -> Any:
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_temporal(column.type)):
        raise SeriesError(f"The columns of a date and its time must hold text. Got numbers in {name!r} instead.")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.date32())
    return column.cast(pa.string())


def is_time_of_day(column: Any) -> bool:
    """Whether a column holds times such as 14:20, without a date."""
    import pyarrow as pa

    if pa.types.is_time(column.type):
        return True
    cells = column.drop_null()[:50].to_pylist() if pa.types.is_string(column.type) else []
    return bool(cells) and all(_OF_DAY.fullmatch(cell.strip()) for cell in cells)


def in_time_order(
    times: Times, values: AnyArray, labels: Flags | None, *, sort: bool, dedup: str | None
) -> tuple[Times, AnyArray, Flags | None, list[str]]:
    """Rows in the order of their times and each time once, as far as was asked for, and what was done."""
    notes: list[str] = []
    stamps, offsets = times.values, times.offsets
    if sort and (stamps[1:] < stamps[:-1]).any():
        order = np.argsort(stamps, kind="stable")
        stamps, values = stamps[order], values[order]
        offsets = None if offsets is None else offsets[order]
        labels = None if labels is None else labels[order]
        notes.append("rows were put in the order of their times")
    if dedup is not None and (stamps[1:] == stamps[:-1]).any():
        edge = np.concatenate([[True], stamps[1:] != stamps[:-1]])
        first = np.flatnonzero(edge)
        stop = np.append(first[1:], len(stamps))
        keep = stop - 1 if dedup == "last" else first
        if dedup == "mean":
            known = np.isfinite(values)
            total = np.add.reduceat(np.where(known, values, 0.0), first, axis=0)
            count = np.add.reduceat(known.astype(np.int64), first, axis=0)
            values = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        else:
            values = values[keep]
        labels = None if labels is None else np.maximum.reduceat(labels, first)
        notes.append(f"{len(stamps) - len(first)} rows with the time of the row before them: {dedup} kept")
        stamps, offsets = stamps[keep], None if offsets is None else offsets[keep]
    return Times(stamps, offsets, times.note), values, labels, notes

"""Times, of one row or of a whole column: dates with the offset they were written with, or numbers.

A date is kept as nanoseconds since 1970 in UTC, beside its **offset** from UTC in minutes (None where it was written
without one), so that an alarm can be told in the user's own clock. A number is a count of seconds from somewhere, unless
it is as large as a date since 1970 would be; then it is one, and its size says whether it counts seconds, milli-, micro- or
nanoseconds. What was guessed is said in a note. This module does not know what is in the rows.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tisat.errors import SeriesError
from tisat.utils.types import AnyArray

# The size of an epoch number and what it counts: from 1985 on in seconds, and up to the year 5138.
EPOCHS = (
    (5e8, "seconds", 10**9),
    (1e11, "milliseconds", 10**6),
    (1e14, "microseconds", 10**3),
    (1e17, "nanoseconds", 1),
)
MINUTE = 60 * 10**9  # nanoseconds
EARLIEST, LATEST = np.datetime64("1678-01-01"), np.datetime64("2262-01-01")  # what 64 bits of nanoseconds can hold
FIRST_DAY, LAST_DAY = EARLIEST.item(), LATEST.item()
FINER = {"s": "ms", "ms": "us", "us": "ns"}
OFFSET = r"(?:Z|z|[+-]\d{2}(?::?\d{2})?)"  # as a pattern of re and of arrow
_OFFSET = re.compile(OFFSET + "$")
MUST = "a date such as 2026-01-31T12:00:00, with or without an offset, or a number of seconds"


class Moment(NamedTuple):
    """One point in time."""

    dates: bool  # a date, not a count of seconds from somewhere
    value: float | int  # nanoseconds since 1970 in UTC, or seconds
    offset: int | None = None  # minutes east of UTC the date was written with

    @classmethod
    def written(cls, local: int, offset: int | None) -> Moment:
        """A date from nanoseconds on the clock it was written by."""
        return cls(dates=True, value=local - (offset or 0) * MINUTE, offset=offset)


@dataclass(frozen=True)
class Times:
    """The time column of a table."""

    values: AnyArray  # (T,) datetime64[ns] in UTC, or float64 seconds
    offsets: npt.NDArray[np.int16] | None = None  # (T,) minutes east of UTC
    note: str = ""  # what had to be guessed


def epoch_unit(number: float) -> tuple[str, int] | None:
    """What a number counts if it is a date since 1970, and how many nanoseconds that is; None if it is not as large.

    Examples
    --------
    >>> epoch_unit(1.77e9), epoch_unit(1_770_000_000_000), epoch_unit(86_400.0)
    (('seconds', 1000000000), ('milliseconds', 1000000), None)
    """
    return next(((name, count) for least, name, count in reversed(EPOCHS) if number >= least), None)


def _wrong(time: object) -> SeriesError:
    return SeriesError(f"The time of a row must be {MUST}. Got {str(time)[:60]!r} instead.")


def _beyond(time: object) -> SeriesError:
    return SeriesError(f"The time of a row must lie between the years 1678 and 2261. Got {str(time)[:60]!r} instead.")


def read_time(time: object, *, plain: bool = False) -> Moment:
    """The time of one row.

    Parameters
    ----------
    time : str, number, datetime or numpy date
    plain : bool
        A number is a count of seconds, however large: the clock it belongs to has begun so.

    Examples
    --------
    >>> read_time("2026-01-01T12:00+02:00") == read_time("2026-01-01T10:00Z")._replace(offset=120)
    True
    >>> read_time("90"), read_time(1_770_000_000_000).dates
    (Moment(dates=False, value=90.0, offset=None), True)
    """
    if isinstance(time, str):
        text = time.strip()
        try:
            time = float(text)
        except ValueError:
            return _read_text(text)
    if isinstance(time, int | float | np.integer | np.floating) and not isinstance(time, bool | np.bool_):
        return _read_number(time, plain=plain)
    if isinstance(time, datetime.datetime):
        offset = time.utcoffset()
        if not EARLIEST < np.datetime64(time.replace(tzinfo=None), "D") < LATEST:
            raise _beyond(time)
        nanoseconds = getattr(time, "nanosecond", 0)  # pandas counts them beyond the microseconds
        naive = np.datetime64(time.replace(tzinfo=None), "us").astype("datetime64[ns]")
        minutes = None if offset is None else round(offset.total_seconds() / 60)
        return Moment.written(int(naive.astype(np.int64)) + int(nanoseconds), minutes)
    if isinstance(time, np.datetime64 | datetime.date):
        date: Any = time
        day = np.datetime64(date, "D").item()  # one of the standard library: compared in a tenth of the time
        if day is None:
            raise _wrong(time)
        if isinstance(day, int) or not FIRST_DAY < day < LAST_DAY:
            raise _beyond(time)
        return Moment(dates=True, value=int(np.datetime64(date, "ns").astype(np.int64)))
    raise _wrong(time)


def _read_number(time: Any, *, plain: bool) -> Moment:
    try:
        number = float(time)
    except OverflowError:
        raise _beyond(time) from None
    if not np.isfinite(number):
        raise SeriesError(f"The time of a row must be known. Got {number} instead.")
    unit = None if plain else epoch_unit(number)
    if unit is None:
        return Moment(dates=False, value=number)
    nanoseconds = int(time) * unit[1] + round((number - int(number)) * unit[1])
    if nanoseconds >= 2**63:
        raise _beyond(time)
    return Moment(dates=True, value=nanoseconds, offset=0)


def _read_text(text: str) -> Moment:
    if not re.match(r"[+-]?\d{4,}-\d", text):
        raise _wrong(text)
    offset = _OFFSET.search(text, 10)
    try:
        day = np.datetime64(text[:10], "D")
        naive = np.datetime64(text[: offset.start()].rstrip() if offset else text, "ns")
    except (ValueError, OverflowError):
        raise _wrong(text) from None
    if not EARLIEST < day < LATEST:
        raise _beyond(text)
    return Moment.written(int(naive.astype(np.int64)), None if offset is None else offset_minutes(offset[0]))


def offset_minutes(text: str) -> int:
    """``"+02:00"``, ``"-0530"``, ``"+02"`` or ``"Z"`` in minutes east of UTC.

    Examples
    --------
    >>> offset_minutes("+02:00"), offset_minutes("-0530"), offset_minutes("+02"), offset_minutes("Z")
    (120, -330, 120, 0)
    """
    if text in "Zz":
        return 0
    minutes = 60 * int(text[1:3]) + int(text[3:].removeprefix(":") or "0")
    return -minutes if text[0] == "-" else minutes


def say_offset(minutes: int) -> str:
    """Minutes east of UTC as a date ends in.

    Examples
    --------
    >>> say_offset(120), say_offset(-210), say_offset(0)
    ('+02:00', '-03:30', 'Z')
    """
    return "Z" if minutes == 0 else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def say(value: float | int, offset: int | None, *, dates: bool) -> str | float:
    """A time as alarms carry it: text in the user's clock for dates, seconds for numbers.

    Examples
    --------
    >>> moment = read_time("2026-03-09T11:40:00+02:00")
    >>> say(moment.value, moment.offset, dates=True), say(3, None, dates=False)
    ('2026-03-09T11:40:00+02:00', 3.0)
    """
    if not dates:
        return float(value)
    local = int(value) + (offset or 0) * MINUTE
    unit, size = "s", 10**9
    while local % size:
        unit, size = FINER[unit], size // 1000
    text = str(np.datetime64(local, "ns").astype(f"datetime64[{unit}]"))
    return text if offset is None else text + say_offset(offset)


def local_second(moment: Moment) -> float:
    """The local time of one row, by the offset its date was written with; NaN where it is no date."""
    if not moment.dates:
        return math.nan
    return float(moment.value) / 1e9 + (moment.offset or 0) * 60.0


def read_times(column: Any, *, name: str = "time") -> Times:
    """A time column: numpy, text, pandas or arrow values, in one go.

    Parameters
    ----------
    column : array of shape (T,)
        Dates, text or numbers.
    name : str
        What the column is called, for the note.

    Examples
    --------
    >>> times = read_times(["2026-01-01T12:00+02:00", "2026-01-01T12:01+02:00"])
    >>> str(times.values[0]), times.offsets.tolist()
    ('2026-01-01T10:00:00.000000000', [120, 120])
    >>> read_times([1770000000000, 1770000060000], name="ts").note
    "the column 'ts' counts milliseconds since 1970"
    """
    array = np.asarray(column)
    if array.ndim != 1:
        raise SeriesError(f"The timestamps of a series must have one entry a row. Got shape {array.shape} instead.")
    if array.dtype.kind == "M":
        return Times(_nanoseconds(array))
    if array.dtype.kind in "iuf":
        return _epochs(array, name)
    if array.dtype.kind not in "OUS":
        raise SeriesError(
            f"The timestamps of a series must be dates or numbers. Got {array.dtype} in {name!r} instead."
        )
    return times_of(array.tolist(), read_time)


def _nanoseconds(array: AnyArray) -> AnyArray:
    known = array[~np.isnat(array)]
    for edge in (known.min(), known.max()) if len(known) else ():
        day = edge.astype("datetime64[D]")
        if not EARLIEST < day < LATEST:
            raise _beyond(day)
    return array.astype("datetime64[ns]")


def _epochs(array: AnyArray, name: str) -> Times:
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    unit = epoch_unit(float(finite[0])) if len(finite) and float(finite.min()) >= EPOCHS[0][0] else None
    if unit is None:
        return Times(array.astype(np.float64))
    word, count = unit
    largest = float(finite.max())
    if largest * count >= 2**63:
        raise _beyond(largest)
    if array.dtype.kind == "f":
        whole = np.floor(np.where(np.isfinite(array), array, 0.0))
        values = whole.astype(np.int64) * count + np.round((np.nan_to_num(array) - whole) * count).astype(np.int64)
        dates = values.view("datetime64[ns]").copy()
        dates[~np.isfinite(array)] = np.datetime64("NaT")
    else:
        dates = (array.astype(np.int64) * count).view("datetime64[ns]")
    return Times(dates, np.zeros(len(array), dtype=np.int16), f"the column {name!r} counts {word} since 1970")


def times_of(cells: Sequence[Any], read: Callable[[Any], Moment]) -> Times:
    """Cells, each read as a row's time would be."""
    moments = []
    for row, value in enumerate(cells):
        if value is None or value != value or value == "":
            raise SeriesError(f"The timestamps of a series must all be known. Got {value} at row {row} instead.")
        try:
            moments.append(read(value.decode() if isinstance(value, bytes) else value))
        except SeriesError as error:
            raise SeriesError(f"{str(error).removesuffix('.')}, at row {row}.") from None
    kinds = {moment.dates for moment in moments}
    if len(kinds) > 1:
        raise SeriesError("The timestamps of a series must be all dates or all numbers. Got both.")
    if kinds == {False}:
        return Times(np.array([moment.value for moment in moments], dtype=np.float64))
    values = np.array([moment.value for moment in moments], dtype=np.int64).view("datetime64[ns]")
    offsets = [moment.offset for moment in moments]
    if all(offset is None for offset in offsets):
        return Times(values)
    if any(offset is None for offset in offsets):
        raise SeriesError("The timestamps of a series must all have an offset from UTC, or none of them. Got both.")
    return Times(values, np.array(offsets, dtype=np.int16))

"""The time of rows that arrive one at a time: dates or seconds, and whether a row comes too late.

It compares times; it does not know what is in the rows.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from tisat.errors import SeriesError
from tisat.missing import MAX_GAP


def read_time(time: Any) -> tuple[bool, float | int]:
    """Whether ``time`` is a date, and its nanoseconds since 1970 (dates, in UTC) or seconds (numbers)."""
    if isinstance(time, int | float | np.integer | np.floating) and not isinstance(time, bool):
        if not np.isfinite(time):
            raise SeriesError(f"The time of a row must be known. Got {time} instead.")
        return False, float(time)
    if isinstance(time, str) and ("+" in time or time.endswith("Z")):
        try:
            time = datetime.datetime.fromisoformat(time)
        except ValueError:
            raise SeriesError(
                f"The time of a row must be a date or a number of seconds. Got {time!r} instead."
            ) from None
    if isinstance(time, datetime.datetime) and time.tzinfo is not None:
        time = time.astimezone(datetime.UTC).replace(tzinfo=None)
    try:
        value = np.asarray(time, dtype="datetime64[ns]")
    except (TypeError, ValueError):
        value = np.asarray(np.datetime64("NaT"))
    if value.shape != () or np.isnat(value) or isinstance(time, bool):
        raise SeriesError(f"The time of a row must be a date or a number of seconds. Got {time!r} instead.")
    return True, int(value.astype(np.int64))


def stamp_of(time: Any) -> str | float | None:
    """The time of a row as alarms carry it: text for dates, like a series has them, and seconds for numbers.

    Examples
    --------
    >>> stamp_of("2026-01-01T12:00"), stamp_of(3), stamp_of(None)
    ('2026-01-01T12:00:00.000000000', 3.0, None)
    """
    if time is None:
        return None
    dates, value = read_time(time)
    return str(np.asarray(int(value), dtype="datetime64[ns]")) if dates else float(value)


class RowClock:
    """Remembers the time of the last accepted row.

    Parameters
    ----------
    period : float, optional
        The sampling period in seconds; without it no jump in time is too long.

    Examples
    --------
    >>> clock = RowClock(60.0)
    >>> [clock.advance(second) for second in (0, 60, 60, 30, 3600)]
    ['ok', 'ok', 'duplicate', 'late', 'gap']
    """

    def __init__(self, period: float | None) -> None:
        self.period = period
        self.dates = False
        self.last: float | int | None = None

    def advance(self, time: Any) -> str:
        """``ok``, ``gap`` (too long to bridge), ``late`` or ``duplicate``; the last two leave the clock as it was."""
        dates, value = read_time(time)
        if self.last is not None and dates != self.dates:
            raise SeriesError(f"The times of rows must be all dates or all numbers. Got {time!r} after the other kind.")
        if self.last is not None and value <= self.last:
            return "duplicate" if value == self.last else "late"
        unit = 1e-9 if dates else 1.0
        jumped = (
            self.last is not None and self.period is not None and (value - self.last) * unit > MAX_GAP * self.period
        )
        self.dates, self.last = dates, value
        return "gap" if jumped else "ok"

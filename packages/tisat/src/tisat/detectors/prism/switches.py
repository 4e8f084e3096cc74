"""Which channels switch, and what day and hour it is: what an operating mode is told by."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np

from tisat.detectors.base import Array
from tisat.errors import ParameterError
from tisat.utils.types import Integers

MOST_SWITCHES = 4
STILL, SHORTEST_RUN, FEWEST_RUNS = 0.95, 5, 10  # of a channel that switches: share of rows, rows, runs
FEW_VALUES = 10  # of a channel that tells the mode; one with more may be a slow or coarse sensor
DAY, WEEKDAYS = 86_400.0, 7  # seconds, days


def switching(parts: Sequence[Array]) -> Integers:
    """The channels that stay at a value for many rows and then switch to another, at most four, the most frequent first."""
    channels = parts[0].shape[1]
    moves = np.array([sum(int((np.diff(part[:, c]) != 0).sum()) for part in parts) for c in range(channels)])
    rows = max(sum(len(part) - 1 for part in parts), 1)
    switches = []
    for c in np.flatnonzero((moves >= FEWEST_RUNS) & (moves <= (1 - STILL) * rows)):
        runs = np.concatenate([np.diff(np.flatnonzero(np.diff(part[:, c]) != 0)) for part in parts])
        if len(runs) and np.median(runs) >= SHORTEST_RUN:
            switches.append(int(c))
    return np.array(sorted(switches, key=lambda c: -moves[c])[:MOST_SWITCHES], dtype=np.int64)


def any_tells_mode(parts: Sequence[Array], switches: Integers) -> bool:
    """Whether one of the channels that switch has few values, as on and off."""
    return any(len(np.unique(np.concatenate([part[:, c] for part in parts]))) <= FEW_VALUES for c in switches)


def calendar_of(clock: Array, holidays: Array) -> Array:
    """Minute of the day and day of the week ``(n, 2)`` of local times in seconds since 1970; a holiday is a Sunday; -1: unknown."""
    valid = ~np.isnan(clock)
    seconds = np.where(valid, clock, 0.0)
    day = np.floor(seconds / DAY)
    weekday = np.where(np.isin(day, holidays), 6.0, (day + 3) % WEEKDAYS)
    return np.where(valid[:, None], np.column_stack([np.floor((seconds % DAY) / 60.0), weekday]), -1.0)


def days_of(holidays: object) -> Array:
    """Days since 1970 of dates, given as a sequence or as one text with commas.

    Examples
    --------
    >>> days_of(("1970-01-02",)).tolist(), days_of("1970-01-02,1970-01-05").tolist()
    ([1.0], [1.0, 4.0])
    """
    dates = [one for one in holidays.split(",") if one.strip()] if isinstance(holidays, str) else holidays
    wrong = f"The 'holidays' parameter of Prism must be dates such as '2026-12-25'. Got {holidays!r} instead."
    if not isinstance(dates, list | tuple):
        raise ParameterError(wrong)
    try:
        found = [datetime.date.fromisoformat(str(one).strip()).toordinal() for one in dates]
    except ValueError:
        raise ParameterError(wrong) from None
    return np.array(found, dtype=np.float64) - datetime.date(1970, 1, 1).toordinal()

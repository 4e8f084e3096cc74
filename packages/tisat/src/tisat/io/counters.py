"""Counters: channels that only grow, and start again at a limit. Models look at their growth per row.

The growth is divided by the sampling periods since the last known value, so that a missing row is no jump. Where a counter
goes down it was reset: its growth is unknown there (NaN), as in the first row and after a jump in time that is too long to
bridge. Over a whole series and row by row the arithmetic is the same. This module does not know detectors.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tisat.errors import ParameterError
from tisat.gap_filling import MAX_GAP, time_flags
from tisat.series import Series
from tisat.utils.stage import Folded, Stateful
from tisat.utils.types import Array

GROWING = 0.999  # share of steps that do not go down
RISING = 0.05  # share of steps that go up
FEWEST = 100  # known rows it takes to tell
FEW = 8  # values of a channel that has states
FALL = 0.5  # of the range: a step down by less is no reset
OFTEN = 0.99  # share of steps that do not go down where a counter begins again each shift or day
NEAR = 0.1  # of the range above the least value: where it begins again
MOST = 0.9  # share of the resets that do; the others have lost rows


def is_counter(values: Array) -> bool:
    """Whether known values ``(T,)`` grow and start again: from far below, or from near the least value.

    Examples
    --------
    >>> is_counter(np.arange(3000.0) % 1300), is_counter(np.arange(3000.0) % 480), is_counter(np.sin(np.arange(500.0)))
    (True, True, False)
    """
    numbers = values[~np.isnan(values)]
    if len(numbers) < FEWEST or len(np.unique(numbers[:: max(1, len(numbers) // 1000)])) <= FEW:
        return False
    steps = np.diff(numbers)
    down = steps < 0
    least, span = float(numbers.min()), float(np.ptp(numbers))
    if (steps > 0).mean() < RISING or falls_often(numbers):
        return False
    if down.mean() <= 1.0 - GROWING and (steps[down] <= -FALL * span).all():
        return True
    return bool((numbers[1:][down] <= least + NEAR * span).mean() >= MOST)


def falls_often(values: Array) -> bool:
    """Whether known values ``(T,)`` fall more often than a counter does."""
    steps = np.diff(values[~np.isnan(values)])
    return bool(len(steps) and (steps < 0).mean() > 1.0 - OFTEN)


def counters_of(series: Sequence[Series]) -> tuple[str, ...]:
    """The channels that are counters in most series, and fall often in none."""
    found = []
    for name in series[0].channels:
        columns = _columns(series, name)
        showing = sum(map(is_counter, columns))
        if 2 * showing > len(series) and (showing == len(series) or not any(map(falls_often, columns))):
            found.append(name)
    return tuple(found)


def _columns(series: Sequence[Series], name: str) -> list[Array]:
    """The values of a channel in each series that has it."""
    return [
        np.asarray(one.values[:, one.channels.index(name)], dtype=np.float64) for one in series if name in one.channels
    ]


def choose_counters(series: Sequence[Series], given: Sequence[str] = (), none: Sequence[str] = ()) -> tuple[str, ...]:
    """Choose the counters of some series: those given, and those recognised that are not said to be none.

    Raises
    ------
    ParameterError
        Where a channel that is said to be no counter is none of the series.
    """
    unknown = [name for name in none if not any(name in one.channels for one in series)]
    if unknown:
        raise ParameterError(
            f"A channel that is no counter must be one of the series: {', '.join(series[0].channels)}. Got {unknown[0]!r} instead."
        )
    return tuple(dict.fromkeys([*given, *(name for name in counters_of(series) if name not in none)]))


def difference(series: Series, counters: Sequence[str], *, period: float | None) -> Series:
    """The series with each of these channels as its growth per row; those that are already stay as they are.

    Examples
    --------
    >>> grown = difference(Series([[1.0], [3.0], [np.nan], [9.0], [2.0]], channels=("total",)), ["total"], period=None)
    >>> grown.values[:, 0].tolist(), grown.differenced
    ([nan, 2.0, nan, 3.0, nan], ('total',))
    """
    names = [name for name in counters if name in series.channels and name not in series.differenced]
    if not names:
        return series
    values = np.array(series.values, dtype=np.float64)
    rows = np.ones(len(series))
    if series.seconds is not None and period is not None:
        rows[1:] = periods(np.diff(series.seconds), period)
    left_out, begins = time_flags(series, period)  # a monitor neither sees the former nor looks across the latter
    place, jumps = np.cumsum(rows), np.cumsum(begins)
    for name in names:
        c = series.channels.index(name)
        places = np.flatnonzero(~np.isnan(values[:, c]) & ~left_out)
        grown = np.full(len(values), np.nan)
        if len(places) > 1:
            growth = np.diff(values[places, c]) / np.diff(place[places])
            growth[(growth < 0) | (np.diff(jumps[places]) > 0)] = np.nan
            grown[places[1:]] = growth
        values[:, c] = grown
    return replace(series, values=values, differenced=(*series.differenced, *names))


def periods(seconds: Array, period: float) -> Array:
    """Whole sampling periods in each step, at least 1; a step too long to bridge counts as one that is."""
    return np.where(seconds > MAX_GAP * period, MAX_GAP + 1.0, np.maximum(np.round(seconds / period), 1.0))


class Growth(Stateful, Folded[Array, Array]):
    """:func:`difference` for rows that arrive one at a time.

    Examples
    --------
    >>> growth = Growth(("total", "flow"), ("total",))
    >>> [growth.step(np.array([value, 5.0])).tolist() for value in (1.0, 3.0, 2.0)]
    [[nan, 5.0], [2.0, 5.0], [nan, 5.0]]
    """

    _kept = ("last", "rows")

    def __init__(self, channels: Sequence[str], counters: Sequence[str]) -> None:
        self.columns = np.array([c for c, name in enumerate(channels) if name in counters], dtype=np.int64)
        self._last = np.full(len(self.columns), np.nan)
        self._rows = np.zeros(len(self.columns))

    def forget(self) -> None:
        """Begin anew after a gap in time: the next growth is unknown."""
        self._last[:] = np.nan
        self._rows[:] = 0.0

    def step(self, row: Array, /, *, steps: float = 1.0) -> Array:
        """Return the row with the growth of its counters; ``steps`` is how many periods after the last one it comes."""
        if not len(self.columns):
            return row
        if steps > MAX_GAP:
            self.forget()
        self._rows += steps
        now = row[self.columns]
        valid = ~np.isnan(now)
        growth = (now - self._last) / self._rows
        out = row.copy()
        out[self.columns] = np.where(valid & (growth >= 0), growth, np.nan)
        self._last = np.where(valid, now, self._last)
        self._rows = np.where(valid, 0.0, self._rows)
        return out


def said_of(counters: Sequence[str], series: Sequence[Series] = ()) -> str:
    """The sentence about channels that were taken for counters, which may not be plain in each of the series.

    Examples
    --------
    >>> print(said_of(["FQ108"]))
    FQ108 is a counter: the model looks at its growth per row. If it is none: --no-counter FQ108
    """
    unlike = [(name, sum(not is_counter(values) for values in _columns(series, name))) for name in counters]
    partly = "".join(f" {name} does not show it in {few} of {len(series)} series." for name, few in unlike if few)
    names = ", ".join(counters)
    plural = len(counters) > 1
    return (
        f"{names} {'are counters' if plural else 'is a counter'}: the model looks at {'their' if plural else 'its'} growth per row.{partly} "
        f"If {'one is' if plural else 'it is'} none: --no-counter {shlex.quote(counters[0]) if not plural else 'NAME'}"
    )

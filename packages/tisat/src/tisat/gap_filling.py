"""What is missing: one rule for it, over a whole series and row by row.

Each channel is carried forward for at most ``MAX_GAP`` rows. A row that still lacks a value is unusable, unless the
detector can do without single channels (``partial``) and has at least one; so is a row that is far ahead of all others in
time and alone there. After a jump in time longer than ``MAX_GAP`` sampling periods the past is forgotten. A series is cut
there into **parts**. Nothing is ever replaced by 0. A channel that is missing for longer than it may be carried is
**silent**, and that is told apart from every score (:class:`Silence`). Values beyond ``HUGE`` are cut there, so that no
arithmetic overflows. This module does not know detectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tisat.events import events_from_labels
from tisat.series import Series
from tisat.utils.types import Array, Flags

Stamp: TypeAlias = str | float | None

MAX_GAP = 10  # rows a missing value is carried forward; beyond it the row is unusable
FAR = 1000.0  # sampling periods ahead that one row alone is not believed
HUGE = 1e100  # values beyond it are cut off: their squares, and sums of these, stay finite
LARGEST = 1e150  # points beyond it are cut off: their squares stay finite


@dataclass(frozen=True)
class Silence:
    """A channel that says nothing, or a whole entity: an alarm about the data, outside the statistical budget."""

    channel: str  # empty: no row of the entity comes at all
    since: int  # first row without a value
    noticed: int  # row at which it was missing for longer than it may be carried
    until: int | None = None  # first row with a value again; None: still silent
    since_time: Stamp = None
    noticed_time: Stamp = None
    until_time: Stamp = None
    series: str = ""  # the entity

    kind = "data"

    @property
    def words(self) -> str:
        """One sentence for people.

        Examples
        --------
        >>> print(Silence("flow", 3, 13).words)
        flow is silent since row 3
        >>> print(Silence("", 3, 3, until=9, series="pump").words)
        pump is back at row 9
        """
        who = ": ".join(filter(None, (self.series, self.channel)))
        if self.until is not None:
            return f"{who} is back at {_moment(self.until_time, self.until)}"
        if self.channel or not self.since:
            return f"{who} is silent since {_moment(self.since_time, self.since)}"
        return f"{who} is silent: no row has come since {_moment(self.since_time, self.since - 1)}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, **asdict(self)}


def _moment(stamp: Stamp, row: int) -> str:
    return f"row {row}" if stamp is None else str(stamp)


def carry_forward(values: npt.NDArray[Any]) -> Array:
    """Fill each channel's missing values with its last known one, at most ``MAX_GAP`` rows old.

    Examples
    --------
    >>> carry_forward(np.array([[np.nan], [1.0], [np.nan], [3.0]]))[:, 0].tolist()
    [nan, 1.0, 1.0, 3.0]
    """
    filled = np.clip(np.array(values, dtype=np.float64), -HUGE, HUGE)
    known = ~np.isnan(filled)
    if known.all():
        return filled
    rows = np.arange(len(filled))[:, None]
    last = np.maximum.accumulate(np.where(known, rows, -1), axis=0)  # (T, C), row of the last known value
    usable = (last >= 0) & (rows - last <= MAX_GAP)
    return np.where(usable, np.take_along_axis(filled, np.maximum(last, 0), axis=0), np.nan)


def usable_parts(series: Series, *, period: float | None = None, partial: bool = False) -> list[tuple[slice, Array]]:
    """The clean stretches of a series: where they lie, and their values with short gaps filled.

    Parameters
    ----------
    series : Series
    period : float, optional
        The sampling period in seconds that jumps in time are measured in; the series' own unless given.
    partial : bool
        A row is usable where at least one channel has a value.
    """
    filled = carry_forward(series.values)
    missing = np.isnan(filled)
    usable: Flags = np.asarray(~(missing.all(axis=1) if partial else missing.any(axis=1)))
    step = series.period if period is None else period
    jumped = np.zeros(len(filled), dtype=np.bool_)
    if series.seconds is not None and step is not None:
        jumped[1:] = np.diff(series.seconds) > MAX_GAP * step
        usable &= ~_unconfirmed(series.seconds, step)
    breaks = (np.diff(usable.view(np.int8), prepend=np.int8(0)) != 0) | jumped
    edges = np.append(np.flatnonzero(breaks), len(filled))
    return [(slice(int(a), int(b)), filled[a:b]) for a, b in pairwise(edges) if usable[a]]


def _unconfirmed(seconds: Array, period: float) -> Flags:
    """The rows a clock that runs along would have waited with: see :class:`tisat.watch.clock.RowClock`."""
    found = np.zeros(len(seconds), dtype=np.bool_)
    for row in np.flatnonzero(np.diff(seconds) > FAR * period) + 1:
        at = int(row)
        if found[at]:
            continue
        found[at] = True
        while at + 1 < len(seconds) and seconds[at + 1] - seconds[at] > MAX_GAP * period:
            at += 1
            found[at] = True
    return found


def silences(series: Series) -> list[Silence]:
    """The channels that were missing for longer than they may be carried, in the order in which that was noticed."""
    found = []
    for c, channel in enumerate(series.channels):
        for start, stop in events_from_labels(np.isnan(series.values[:, c])).tolist():
            if stop - start > MAX_GAP:
                until = stop if stop < len(series) else None
                noticed = start + MAX_GAP
                found.append(
                    Silence(
                        channel, start, noticed, until,
                        series.stamp(start), series.stamp(noticed), series.stamp(until), series.name,
                    )
                )  # fmt: skip
    return sorted(found, key=lambda one: one.noticed)


def finite(points: Array) -> Array:
    """Points with infinities cut off at ``LARGEST``; NaN stays, it means that there is none."""
    return np.clip(points, -LARGEST, LARGEST)


class CarryForward:
    """:func:`carry_forward` for rows that arrive one at a time, and :func:`silences` with it.

    Examples
    --------
    >>> carry = CarryForward(["a"])
    >>> [float(carry(np.array([value]))[0]) for value in (np.nan, 1.0, np.nan, 3.0)]
    [nan, 1.0, 1.0, 3.0]
    """

    def __init__(self, channels: Sequence[str], *, series: str = "") -> None:
        self._channels = tuple(channels)
        self._series = series
        self._last = np.full(len(self._channels), np.nan)
        self._age = np.zeros(len(self._channels), dtype=np.int64)  # rows since the last known value
        self._since: dict[int, tuple[int, Stamp]] = {}  # channel -> its first missing row, and that row's time
        self._noticed: dict[int, tuple[int, Stamp]] = {}  # channel -> the row at which it was found silent

    def __call__(self, row: Array) -> Array:
        """The row ``(C,)`` with what is missing filled in as far as it may be; NaN stays where it may not."""
        missing = np.isnan(row)
        self._age[missing] += 1
        self._age[~missing] = 0
        self._last = np.where(missing, self._last, row)
        filled = self._last.copy()
        filled[self._age > MAX_GAP] = np.nan
        return filled

    def whole(self, row: Array) -> bool:
        """Take in a row that has every value, where no channel was missing before it; False, and nothing done, where one was."""
        if self._since:
            return False
        self._last = row
        return True

    def changes(self, time_step: int, stamp: Stamp) -> tuple[Silence, ...]:
        """The channels that fell silent at this row or came back, after the row was filled."""
        if not self._since and not self._age.any():
            return ()
        found = []
        for c in np.flatnonzero(self._age == 1).tolist():
            self._since[c] = (time_step, stamp)
        for c in np.flatnonzero(self._age == MAX_GAP + 1).tolist():
            self._noticed[c] = (time_step, stamp)
            found.append(self._silence(c, None, None))
        for c in [c for c in self._since if self._age[c] == 0]:
            if c in self._noticed:
                found.append(self._silence(c, time_step, stamp))
                del self._noticed[c]
            del self._since[c]
        return tuple(found)

    def _silence(self, c: int, until: int | None, until_time: Stamp) -> Silence:
        (since, since_time), (noticed, noticed_time) = self._since[c], self._noticed[c]
        return Silence(self._channels[c], since, noticed, until, since_time, noticed_time, until_time, self._series)

    @property
    def silent(self) -> tuple[str, ...]:
        """The channels that are silent now."""
        return tuple(self._channels[c] for c in np.flatnonzero(self._age > MAX_GAP).tolist())

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything needed to go on after a restart, as plain values and arrays."""
        times = {
            "since": {str(c): list(when) for c, when in self._since.items()},
            "noticed": {str(c): list(when) for c, when in self._noticed.items()},
        }
        return times, {"last": self._last.copy(), "age": self._age.copy()}

    def restore(self, times: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        self._last = np.array(arrays["last"], dtype=np.float64)
        self._age[:] = arrays["age"]
        self._since = {int(c): (int(row), time) for c, (row, time) in times["since"].items()}
        self._noticed = {int(c): (int(row), time) for c, (row, time) in times["noticed"].items()}

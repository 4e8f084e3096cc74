"""Fill gaps by one rule, over a whole series and row by row.

Each channel is carried forward for at most ``MAX_GAP`` rows. A row that still lacks a value is unusable, unless the
detector can do without single channels (``partial``) and has at least one. A row that is far ahead of all others in time
and alone there is left out: it counts as a row and is part of nothing. After a jump in time longer than ``MAX_GAP`` sampling
periods (a **gap**) the past is forgotten: values, windows, and an alarm that was on. A series is cut there into **parts**. Nothing is ever replaced by 0. A channel that is missing for longer than it may be carried is
**silent**, and that is told apart from every score (:class:`Silence`). Values beyond ``HUGE`` are cut there, so that no
arithmetic overflows. This module does not know detectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from tisat.events import events_from_labels
from tisat.series import Series
from tisat.utils.stage import Folded, State
from tisat.utils.types import AnyArray, Array, Flags, JsonDict

Stamp: TypeAlias = str | float | None

MAX_GAP = 10  # rows a missing value is carried forward; beyond it the row is unusable
FAR = 1000.0  # sampling periods ahead that one row alone is not believed
MOST_WAITING = 20  # rows in a row, each too far ahead of the one before; then the next is believed
PACE_ROWS = 30  # steps after which the pace of the rows is known
HUGE = 1e100  # values beyond it are cut off: their squares, and sums of these, stay finite
REACH = 1e6  # training ranges beyond the training values; further out one fault is as gross as another
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

    def to_json(self) -> JsonDict:
        """Plain values."""
        return {"kind": self.kind, **asdict(self)}


def _moment(stamp: Stamp, row: int) -> str:
    return f"row {row}" if stamp is None else str(stamp)


def carry_forward(values: AnyArray, begins: Flags | None = None) -> Array:
    """Fill each channel's missing values with its last known one, at most ``MAX_GAP`` rows old.

    Parameters
    ----------
    values : array of shape (T, C)
    begins : array of shape (T,), optional
        Rows before which the past is forgotten: nothing is carried across.

    Examples
    --------
    >>> carry_forward(np.array([[np.nan], [1.0], [np.nan], [3.0]]))[:, 0].tolist()
    [nan, 1.0, 1.0, 3.0]
    """
    filled = np.clip(np.asarray(values, dtype=np.float64), -HUGE, HUGE)
    valid = ~np.isnan(filled)
    if valid.all():
        return filled
    rows = np.arange(len(filled))[:, None]
    last = np.maximum.accumulate(np.where(valid, rows, -1), axis=0)  # (T, C), row of the last known value
    usable = (last >= 0) & (rows - last <= MAX_GAP)
    if begins is not None:
        usable &= last >= np.maximum.accumulate(np.where(begins[:, None], rows, 0), axis=0)
    return np.where(usable, np.take_along_axis(filled, np.maximum(last, 0), axis=0), np.nan)


class TakenIn(NamedTuple):
    """The rows of a series as a monitor takes them in, one after the other."""

    filled: Array  # (T, C), short gaps filled; as they came where a row is left out; not to be written to
    usable: Flags  # (T,)
    left_out: Flags  # (T,), far ahead of all others and not confirmed by the next: part of nothing
    begins: Flags  # (T,), first rows after a gap

    @property
    def unconfirmed_end(self) -> int:
        """How many rows at the end are left out: nothing has confirmed them yet, so nothing follows from them."""
        kept = np.flatnonzero(~self.left_out)
        return len(self.left_out) - 1 - int(kept[-1]) if len(kept) else len(self.left_out)


def _complete(values: Array) -> bool:
    """Whether nothing is missing or beyond ``HUGE``."""
    return values.size > 0 and bool(values.min() >= -HUGE and values.max() <= HUGE)  # False with a NaN


def take_in(series: Series, *, period: float | None, partial: bool = False) -> TakenIn:
    """Fill short gaps, find rows to leave out and the rows at which the past is forgotten, as a monitor would.

    Parameters
    ----------
    series : Series
    period : float, optional
        The sampling period in seconds that jumps in time are measured in; None: the median of the first steps.
    partial : bool
        A row is usable where at least one channel has a value.
    """
    left_out, begins = time_flags(series, period)
    rows_in = ~left_out
    values: Array = np.asarray(series.values, dtype=np.float64)
    if _complete(values):
        filled = values  # no copy of a long series
    elif rows_in.all():
        filled = carry_forward(values, begins)
    else:
        filled = np.clip(values, -HUGE, HUGE)
        filled[rows_in] = carry_forward(values[rows_in], begins[rows_in])
    missing = np.isnan(filled)
    usable: Flags = np.asarray(~(missing.all(axis=1) if partial else missing.any(axis=1))) & rows_in
    return TakenIn(filled, usable, left_out, begins)


def usable_parts(
    series: Series, *, period: float | Literal["own"] | None = "own", partial: bool = False
) -> list[tuple[slice, Array]]:
    """The clean stretches of a series: where they lie, and their values with short gaps filled.

    Parameters
    ----------
    series : Series
    period : float, optional
        The sampling period in seconds that jumps in time are measured in; the series' own unless given, and for None what
        its first steps say, as in a stream.
    partial : bool
        A row is usable where at least one channel has a value.
    """
    seen = take_in(series, period=series.period if period == "own" else period, partial=partial)
    return [(rows, np.require(seen.filled[rows], requirements="W")) for rows in stretches_of(seen)]


def stretches_of(seen: TakenIn) -> list[slice]:
    """The stretches of usable rows of a series."""
    breaks = (np.diff(seen.usable.view(np.int8), prepend=np.int8(0)) != 0) | seen.begins
    edges = np.append(np.flatnonzero(breaks), len(seen.usable))
    return [slice(int(a), int(b)) for a, b in pairwise(edges) if seen.usable[a]]


def time_flags(series: Series, period: float | None) -> tuple[Flags, Flags]:
    """Rows that a clock leaves out as unconfirmed, and rows that follow a gap: as :class:`tisat.watch.clock.RowClock` does."""
    left_out, begins = np.zeros((2, len(series)), dtype=np.bool_)
    if series.timestamps is None:
        return left_out, begins
    dates = series.timestamps.dtype.kind == "M"
    stamps = series.timestamps.astype(np.int64) if dates else series.timestamps
    unit = 1e9 if dates else 1.0
    first = 0  # the last row that is dealt with
    if period is None:
        period, first = _first_pace(stamps, unit, left_out, begins)
    if period is None:
        return left_out, begins
    steps = np.diff(stamps[first:]) / unit
    row_done = 0
    for row in np.flatnonzero(steps > FAR * period) + 1:
        at = int(row)
        if at > row_done:
            end = min(at + MOST_WAITING, len(steps) + 1)
            close = np.flatnonzero(steps[at : end - 1] <= MAX_GAP * period)
            row_done = at + 1 + int(close[0]) if len(close) else end  # the row that is believed
            left_out[first + at : first + row_done] = True
    kept = first + np.flatnonzero(~left_out[first:])
    begins[kept[1:]] = np.diff(stamps[kept]) / unit > MAX_GAP * period
    return left_out, begins


def _first_pace(stamps: AnyArray, unit: float, left_out: Flags, begins: Flags) -> tuple[float | None, int]:
    """The median of the first steps, and the row up to which it took to find it.

    Flags rows on the way.
    """
    last, waiting, steps = 0, 0, list[float]()
    for row in range(1, len(stamps)):
        step = float((stamps[row] - stamps[last]) / unit)
        usual = float(np.median(steps)) if steps else np.inf
        confirmed = waiting and (stamps[row] - stamps[row - 1]) / unit <= MAX_GAP * usual
        if step > FAR * usual and not confirmed and waiting < MOST_WAITING:
            left_out[row], waiting = True, waiting + 1
            continue
        begins[row], last, waiting = step > MAX_GAP * usual, row, 0
        steps.append(step)
        if len(steps) == PACE_ROWS:
            return float(np.median(steps)), row
    return None, last


def silences(series: Series, left_out: Flags | None = None) -> list[Silence]:
    """The channels that were missing for longer than they may be carried, in the order in which that was noticed."""
    rows_in = np.arange(len(series)) if left_out is None else np.flatnonzero(~left_out)
    silences_found = []
    for c, channel in enumerate(series.channels):
        for start, stop in events_from_labels(np.isnan(series.values[rows_in, c])).tolist():
            if stop - start > MAX_GAP:
                since, noticed = int(rows_in[start]), int(rows_in[start + MAX_GAP])
                until = int(rows_in[stop]) if stop < len(rows_in) else None
                silences_found.append(
                    Silence(
                        channel, since, noticed, until,
                        series.stamp(since), series.stamp(noticed), series.stamp(until), series.name,
                    )
                )  # fmt: skip
    return sorted(silences_found, key=lambda one: one.noticed)


class Bounded(Protocol):
    """A fitted detector, as far as its limits."""

    n_channels_: int
    bounds_: Array


def bounded(detector: Bounded, rows: Array) -> Array:
    """The rows with values beyond all reason cut off, so that no arithmetic overflows and no memory is poisoned."""
    low, high = detector.bounds_
    if rows.shape[-1] == detector.n_channels_:
        return np.asarray(np.maximum(np.minimum(rows, high), low))
    cut = np.maximum(np.minimum(rows[:, : detector.n_channels_], high), low)
    return np.concatenate([cut, rows[:, detector.n_channels_ :]], axis=1)  # the local time comes last


def finite(points: Array) -> Array:
    """Points with infinities cut off at ``LARGEST``.

    NaN stays, it means that there is none.
    """
    return np.asarray(np.maximum(np.minimum(points, LARGEST), -LARGEST))  # np.clip takes longer for one row


class Filled(NamedTuple):
    """A row with its short gaps filled, and the channels that fell silent at it or came back."""

    values: Array  # (C,)
    silences: tuple[Silence, ...] = ()


class CarryForward(Folded[Array, Filled]):
    """:func:`carry_forward` for rows that arrive one at a time, and :func:`silences` with it.

    Examples
    --------
    >>> carry = CarryForward(["a"])
    >>> [float(carry.step(np.array([value])).values[0]) for value in (np.nan, 1.0, np.nan, 3.0)]
    [nan, 1.0, 1.0, 3.0]
    """

    def __init__(self, channels: Sequence[str], *, series: str = "") -> None:
        self._channels = tuple(channels)
        self._series = series
        self._last = np.full(len(self._channels), np.nan)
        self._age = np.zeros(len(self._channels), dtype=np.int64)  # rows since the last known value
        self._since: dict[int, tuple[int, Stamp]] = {}  # channel -> its first missing row, and that row's time
        self._noticed: dict[int, tuple[int, Stamp]] = {}  # channel -> the row at which it was found silent
        self._rows = 0  # the number of the next row

    def step(self, row: Array, /, *, number: int | None = None, stamp: Stamp = None, whole: bool = False) -> Filled:
        """Fill the missing values of a row ``(C,)`` as far as they may be carried.

        NaN stays where they may not.

        ``number`` and ``stamp`` are those of the row, as a :class:`Silence` carries them; unless given, rows are counted.
        ``whole``: it is known to lack nothing.
        """
        self._rows = self._rows + 1 if number is None else number + 1
        if not self._since and (
            whole or math.isfinite(np.add.reduce(row))
        ):  # the usual row: nothing is missing, nothing was
            self._last = row
            return Filled(row)
        missing = np.isnan(row)
        self._age[missing] += 1
        self._age[~missing] = 0
        self._last = np.where(missing, self._last, row)
        filled = self._last.copy()
        filled[self._age > MAX_GAP] = np.nan
        return Filled(filled, self._changes(self._rows - 1, stamp))

    @property
    def missing(self) -> bool:
        """Whether a channel had no value in the last row."""
        return bool(self._since)

    def follow(self, row: Array, *, number: int) -> None:
        """Take in rows that lack nothing after one that lacked nothing; ``row`` is the last of them."""
        self._rows, self._last = number + 1, row.copy()

    def forget(self) -> None:
        """Carry nothing across a gap; a channel that is missing stays so."""
        self._last = np.full(len(self._channels), np.nan)

    def _changes(self, time_step: int, stamp: Stamp) -> tuple[Silence, ...]:
        if not self._since and not self._age.any():
            return ()
        changes = []
        for c in np.flatnonzero(self._age == 1).tolist():
            self._since[c] = (time_step, stamp)
        for c in np.flatnonzero(self._age == MAX_GAP + 1).tolist():
            self._noticed[c] = (time_step, stamp)
            changes.append(self._silence(c, None, None))
        for c in [c for c in self._since if self._age[c] == 0]:
            if c in self._noticed:
                changes.append(self._silence(c, time_step, stamp))
                del self._noticed[c]
            del self._since[c]
        return tuple(changes)

    def _silence(self, c: int, until: int | None, until_time: Stamp) -> Silence:
        (since, since_time), (noticed, noticed_time) = self._since[c], self._noticed[c]
        return Silence(self._channels[c], since, noticed, until, since_time, noticed_time, until_time, self._series)

    @property
    def silent(self) -> tuple[str, ...]:
        """The channels that are silent now."""
        return tuple(self._channels[c] for c in np.flatnonzero(self._age > MAX_GAP).tolist())

    def state(self) -> State:
        """Return everything that continues after a restart."""
        return {
            "since": {str(c): list(when) for c, when in self._since.items()},
            "noticed": {str(c): list(when) for c, when in self._noticed.items()},
            "rows": self._rows,
            "last": self._last.copy(),
            "age": self._age.copy(),
        }

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        self._last = np.array(state["last"], dtype=np.float64)
        self._age[:] = state["age"]
        self._rows = int(
            state.get("rows", 0)
        )  # states of version 0.2 do not have it: their rows are numbered from outside
        self._since = {int(c): (int(row), time) for c, (row, time) in state["since"].items()}
        self._noticed = {int(c): (int(row), time) for c, (row, time) in state["noticed"].items()}


def training_range(limits: Array) -> Array:
    """The least and the greatest value ``(2, C)`` of training, from the bounds of values that are taken as they are.

    Examples
    --------
    >>> training_range(np.array([[-5 * REACH], [5 + 5 * REACH]])).round(6).tolist()
    [[0.0], [5.0]]
    """
    low, high = limits
    reach = REACH / (2 * REACH + 1) * (high - low)
    return np.stack([low + reach, high - reach])

"""From a row as it came to clean values: numbers in the model's order, its clock, the growth of its counters, and its holes filled.

The first stages of a monitor. They know neither the detector nor the alarm rule; what a stream must forget is in what they return.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tisat.errors import InputError, SeriesError
from tisat.gap_filling import MAX_GAP, MOST_WAITING, CarryForward, Stamp
from tisat.io.columns import listed
from tisat.io.counters import Growth, periods
from tisat.io.missing_values import is_word
from tisat.io.timestamps import Moment, local_second, say
from tisat.io.validate import plain_array
from tisat.utils.near_names import meant
from tisat.utils.stage import Folded, State
from tisat.utils.types import AnyArray, Flags
from tisat.watch.alarm_tracker import Taken
from tisat.watch.clock import MANY_LATE, RowClock
from tisat.watch.gap_notes import gap_remark
from tisat.watch.protocols import Array
from tisat.watch.state_files import check_stamp
from tisat.watch.training_zone import TrainingZone


class RowReader:
    """Read rows for a model with these channels.

    Parameters
    ----------
    channels : sequence of str
        In the order of the model.
    missing : sequence of str
        Words that stand for a missing value, in any case.

    Examples
    --------
    >>> RowReader(("cpu", "disk"))({"disk": 2}).tolist()
    [nan, 2.0]
    >>> RowReader(("cpu", "disk"), missing=["Bad Input"])({"cpu": "bad input", "disk": 2}).tolist()
    [nan, 2.0]
    """

    def __init__(self, channels: Sequence[str], *, missing: Sequence[str] = ()) -> None:
        self._missing = tuple(missing)
        self._channels = tuple(channels)
        self._index = {channel: c for c, channel in enumerate(self._channels)}
        self.whole = False  # whether the row read last is known to lack nothing

    def __call__(self, row: object) -> Array:
        """A row as ``(C,)`` floats.

        An error where it cannot be one, and nothing has changed.
        """
        if type(row) is dict and row.keys() == self._index.keys() and set(map(type, row.values())) == {float}:
            values = np.array([row[channel] for channel in self._channels])
        elif (named := self._named(row)) is not None:
            values = np.full(len(self._channels), np.nan)
            for channel, value in named.items():
                if channel not in self._index:
                    raise SeriesError(
                        f"The row must have channels among {listed(self._channels)}. Got {channel!r} instead.{meant(str(channel), self._channels)}"
                    )
                values[self._index[channel]] = self._number(value, channel)
        else:
            values = self._positional(row)
        self.whole = math.isfinite(np.add.reduce(values))  # a finite sum has no infinity in it, and nothing is missing
        if not self.whole and np.isinf(values).any():
            c = int(np.argmax(np.isinf(values)))
            raise SeriesError(
                f"The row must be finite or NaN (missing). Got {values[c]} in channel {self._channels[c]!r} instead."
            )
        return values

    def many(self, rows: Sequence[object] | AnyArray) -> tuple[Array, Flags]:
        """Rows as ``(n, C)`` floats, and which of them could be read and lack nothing."""
        count, width = len(rows), len(self._channels)
        if type(rows) is np.ndarray and rows.shape == (count, width) and rows.dtype.kind in "biuf":
            values = np.array(rows, dtype=np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                return values, np.isfinite(np.add.reduce(values, axis=1))
        values, whole = np.full((count, width), np.nan), np.zeros(count, dtype=np.bool_)
        for place, row in enumerate(rows):
            try:
                values[place] = self(row)
                whole[place] = self.whole
            except InputError:
                continue
        return values, whole

    def _named(self, row: object) -> Mapping[str, object] | None:
        """The values of a row by name: of a mapping, a named tuple, or a pandas Series with names; None where there are none."""
        if type(row) in (np.ndarray, list, tuple):
            return None
        if isinstance(row, Mapping):
            return row
        index = getattr(row, "_fields", None) or getattr(row, "index", None)
        if callable(index) or not (isinstance(index, Iterable) and isinstance(row, Iterable)):
            return None
        labels = list(index)
        names, text = [str(name) for name in labels], any(isinstance(name, str) for name in labels)
        if not text and not self._index.keys() >= set(names):  # numbers that count the values
            return None
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SeriesError(f"The row must name each channel once. Got {twice!r} twice instead.")
        return dict(zip(names, row, strict=True))

    def _positional(self, row: Any) -> Array:
        if isinstance(row, np.ma.MaskedArray):
            row = np.ma.filled(row.astype(np.float64), np.nan)
        try:
            if self._missing and isinstance(row, list | tuple):
                row = [math.nan if self._is_missing(value) else value for value in row]
            values = plain_array(row) if hasattr(row, "detach") else np.asarray(row)
            if values.dtype == np.float64:
                values = values.copy()  # later rows are compared with it, and the caller may use the array again
            else:
                if values.dtype.kind not in "biufO":
                    raise TypeError
                numbers = (
                    [self._number(value, str(c)) for c, value in enumerate(row)] if values.dtype.kind == "O" else values
                )
                values = np.array(numbers, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise SeriesError(f"The row must be {len(self._channels)} numbers. Got {str(row)[:80]} instead.") from None
        if values.shape != (len(self._channels),):
            raise SeriesError(
                f"The row must have the {len(self._channels)} channels the detector was fitted on. Got shape {values.shape} instead."
            )
        return values

    def _is_missing(self, value: object) -> bool:
        return isinstance(value, str) and is_word(value, self._missing)

    def _number(self, value: object, channel: str) -> float:
        if value is None or self._is_missing(value):
            return math.nan
        try:
            if isinstance(value, str | bytes | bool | complex) or not hasattr(value, "__float__"):
                raise TypeError
            return float(value)
        except (OverflowError, TypeError, ValueError):
            raise SeriesError(
                f"The value of channel {channel!r} must be a number. Got {str(value)[:40]!r} instead."
            ) from None


class RowIntake(Folded[tuple[object, object], Taken]):
    """Read rows one at a time: clock, counters, holes.

    Parameters
    ----------
    channels : sequence of str
        In the order of the model.
    period : float, optional
        The sampling period in seconds that jumps in time are measured in.
    counters : sequence of str
        Channels whose growth per row is given on.
    step : float, optional
        The sampling period in seconds of the training data, which growth is measured in.
    partial : bool
        A row is usable where at least one channel has a value.
    name : str
        The entity.
    missing : sequence of str
        Words that stand for a missing value.
    dated : bool
        The model knows the calendar: rows without a date are scored with less, which is said.
    zone : TrainingZone, optional
        That of the dates of training; rows of another one are taken as they are, which is said.
    warm_up : int, optional
        Rows without a score after a gap, where that is known.
    """

    def __init__(
        self,
        channels: Sequence[str],
        *,
        period: float | None,
        counters: Sequence[str] = (),
        step: float | None = None,
        partial: bool = False,
        name: str = "",
        missing: Sequence[str] = (),
        dated: bool = False,
        zone: TrainingZone | None = None,
        warm_up: int | None = None,
    ) -> None:
        self._read = RowReader(channels, missing=missing)
        self._dated = dated
        self.undated = False  # a row had no date where the model knows the calendar
        self._zone = zone or TrainingZone({}, dated=dated)
        self.unzoned = ""  # the sentence about a row that is not dated in the zone of training
        self.clock = RowClock(period)
        self._growth = Growth(channels, counters)
        self._carry = CarryForward(channels, series=name)
        self._step = step
        self._partial = partial
        self._warm_up = warm_up
        self._waiting: Stamp = None  # time of the first row that waits to be confirmed
        self.rows = 0  # accepted

    @property
    def silent(self) -> tuple[str, ...]:
        """The channels without data now."""
        return self._carry.silent

    def trouble(self, stamp: Stamp) -> str | None:
        """The sentence about times that stand still at ``stamp``; None where all is well."""
        late, waiting = self.clock.late, self.clock.waiting
        if late >= MANY_LATE:
            return f"{late} rows in a row came late: the clock stands at {stamp}. Is the time of the rows right?"
        if waiting >= MOST_WAITING:
            return f"{waiting} rows in a row were each too far ahead of the one before: the clock stands at {stamp}. Is the time of the rows right?"
        return None

    def step(self, given: tuple[object, object], /, *, last: Stamp = None) -> Taken:
        """Take in the next row and its time.

        ``last`` is the time of the row before it, for the sentence about a clock set back.

        Raises
        ------
        InputError
            When the row or its time cannot be read; nothing has changed then.
        """
        row, time = given
        values = self._read(row)
        if time is None:
            if self.clock.last is not None:
                raise SeriesError("A row must have a time where the rows before it had one. Got none.")
            return self._fill(values, None, None)
        moment = self.clock.read(time)
        stamp = say(moment.value, moment.offset, dates=moment.dates)
        self.unzoned = self._zone.note(moment)
        candidate, waiting, steps = self.clock.candidate, self.clock.waiting, self._steps(moment)
        before = self.clock.last
        passed = self.clock.step(moment)
        if passed == "unconfirmed" and self.clock.waiting == 1:
            self._waiting = stamp
        if passed in ("late", "duplicate", "unconfirmed"):
            return Taken(passed, None, time, stamp)
        if passed == "ok":
            return self._fill(values, time, stamp, clock=local_second(moment), steps=steps)
        self._carry.forget()
        self._growth.forget()
        remark = ""
        if passed == "restart":
            remark = f"the clock of the rows was set back from {last} to {stamp}: rows that came late agree with one another, and are scored from here on"
        if candidate is None or moment.value <= candidate:
            waiting = 0  # it confirms nothing
        first, value = (self._waiting, candidate) if waiting else (stamp, moment.value)
        if passed == "gap" and before is not None and value is not None and value > before:
            earlier = say(before, moment.offset, dates=moment.dates)
            remark = gap_remark(earlier, first, self.clock._seconds(before, value), self._warm_up)
        self.rows += waiting
        taken = self._fill(values, time, stamp, clock=local_second(moment))
        return taken._replace(gap=True, unconfirmed=waiting, unconfirmed_stamp=self._waiting, remark=remark)

    @property
    def counting(self) -> bool:
        """Whether growth per row is given on of some channels."""
        return bool(len(self._growth.columns))

    def read_many(self, rows: Sequence[object] | AnyArray) -> tuple[Array, Flags]:
        """Rows as ``(n, C)`` floats, and which of them could be read and lack nothing; nothing has changed."""
        return self._read.many(rows)

    def follows(self, moment: Moment | None) -> bool:
        """Whether the last row is the one of this time, and no channel waits for a value."""
        return self.clock.last == (None if moment is None else moment.value) and not self._carry.missing

    def follows_on(self, moment: Moment | None) -> bool:
        """Whether a row of this time comes a usual step after the last one, and no channel waits for a value."""
        clock = self.clock
        if self._carry.missing or moment is None or clock.last is None:
            return not self._carry.missing and clock.last is None
        usual = clock._usual()
        return usual is not None and 0 < clock._seconds(clock.last, moment.value) <= MAX_GAP * usual

    def follow(self, values: Array, moments: AnyArray | None, moment: Moment | None) -> int:
        """Take in rows that lack nothing and follow the last one at usual steps; of how many.

        Those from one on at which the pace of the rows would be found to be wrong are not taken in. ``moment`` says how the
        times of all are written.
        """
        count = len(values) if moments is None else self.clock.follow(moments)
        if count:
            self.rows += count
            self._carry.follow(values[count - 1], number=self.rows - 1)
            self.undated = self._dated and (moment is None or not moment.dates)
            self.unzoned = self._zone.note(moment)
        return count

    def _steps(self, moment: Moment) -> float:
        """The sampling periods since the last row, for the growth of counters."""
        last = self.clock.last
        if not len(self._growth.columns) or last is None or self._step is None:
            return 1.0
        return float(periods(np.array((moment.value - last) * (1e-9 if moment.dates else 1.0)), self._step))

    def _fill(self, values: Array, time: object, stamp: Stamp, *, clock: float = math.nan, steps: float = 1.0) -> Taken:
        """Take in a row whose time is good: its number, the growth of its counters, and its holes filled."""
        whole = self._read.whole
        if len(self._growth.columns):
            values, whole = self._growth.step(values, steps=steps), False
        row_number, self.rows = self.rows, self.rows + 1
        self.undated = self._dated and math.isnan(clock)
        filled, silences = self._carry.step(values, number=row_number, stamp=stamp, whole=whole)
        if filled is values:  # the usual row: nothing is missing, nothing was
            return Taken("ok", values, time, stamp, row_number, clock=clock)
        missing = np.isnan(filled)
        if missing.any() and (not self._partial or missing.all()):
            return Taken("unusable", None, time, stamp, row_number, silences)
        return Taken("ok", filled, time, stamp, row_number, silences, clock=clock)

    def state(self) -> State:
        """Return everything that continues after a restart."""
        growth = {"growth": self._growth.state()} if len(self._growth.columns) else {}
        parts = {"clock": self.clock.state(), "carry": self._carry.state(), **growth}
        return {"rows": self.rows, "waiting": self._waiting, **parts}

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        self.rows = int(state["rows"])
        self.clock.restore(state["clock"])
        self._waiting = check_stamp(state.get("waiting"), "waiting")
        self._carry.restore(state["carry"])
        if len(self._growth.columns):
            self._growth.restore(state["growth"])

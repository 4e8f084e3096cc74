"""The clock of one entity whose rows arrive one at a time: what comes too late, too far ahead, or at another pace.

It compares times; how a time is read is the business of :mod:`tisat.io.timestamps`, what is in the rows is nobody's here.
"""

from __future__ import annotations

import numpy as np

from tisat.errors import SeriesError
from tisat.gap_filling import FAR, MAX_GAP, MOST_WAITING, PACE_ROWS
from tisat.io.timestamps import Moment, read_time
from tisat.utils.stage import Folded, State
from tisat.utils.types import AnyArray

PACE_TOLERANCE = 0.1  # how much it may differ from the model's sampling period
MANY_LATE = 20  # late rows in a row after which somebody should look
NEW_CLOCK = 20  # late rows that agree with one another and lie outside all times seen: the clock has been set
SET_BACK = 1000  # the same for rows within times seen, which may be a repetition of old rows
ABOUT_TIMES = "The rows have no "  # how the sentences below begin
UNDATED = (
    "The rows have no date, and the model knows the time of day and the day of the week: they are scored without them. "
    "Give each row its time as a date."
)
UNZONED = "The rows have no time zone, those of training had {zone}: their times are taken as they are written. Give them a zone (timezone=..., --timezone) if they were written in another."
MOST_SPANS = 8  # stretches of time that are remembered as seen


class RowClock(Folded[Moment, str]):
    """Remembers the time of the last accepted row.

    A row more than ``FAR`` sampling periods ahead waits for a second one that confirms it (``unconfirmed``): one wrong
    stamp must not make every later row late. After ``MOST_WAITING`` such rows the next is believed. The first row of all is not confirmed either, until a later one follows.
    Late rows that agree with one another start a new clock (``restart``): after ``NEW_CLOCK`` rows where their times were never
    seen, after ``SET_BACK`` where they were, because old rows may be sent again.

    Parameters
    ----------
    period : float, optional
        The sampling period in seconds; without it the median of the first ``PACE_ROWS`` steps stands in for it.

    Examples
    --------
    >>> clock = RowClock(60.0)
    >>> [clock.step(read_time(second)) for second in (0, 60, 60, 30, 3600)]
    ['ok', 'ok', 'duplicate', 'late', 'gap']
    >>> [clock.step(read_time(second)) for second in (9e6, 3660, 3720)]
    ['unconfirmed', 'ok', 'ok']
    """

    def __init__(self, period: float | None) -> None:
        self.period = period
        self.dates = False
        self.last: float | int | None = None
        self.candidate: float | int | None = None  # a time far ahead that waits for a second one
        self.waiting = 0  # rows that are not confirmed yet, each after the one before
        self.confirmed = False  # a row has followed the first one
        self.late = 0  # late or duplicate rows since the last good one
        self.behind: float | int | None = None  # the last late time
        self.agreeing = 0  # late rows in a row that agree with one another
        self.repeated = False  # one of them lies within a time that was seen
        self.steps: list[
            float
        ] = []  # the last steps in seconds until there are PACE_ROWS; without a period the first ones
        self.spans: list[list[float | int]] = []  # the times seen: from, to
        self.pace: float | None = None  # the median of the last PACE_ROWS steps in seconds

    def read(self, time: object) -> Moment:
        """The time of a row; an error where it cannot be one, and nothing has changed.

        A moment that was read already is taken as it is.
        """
        moment = time if isinstance(time, Moment) else read_time(time, plain=self.last is not None and not self.dates)
        if self.last is not None and moment.dates != self.dates:
            raise SeriesError(f"The times of rows must be all dates or all numbers. Got {time!r} after the other kind.")
        return moment

    def step(self, moment: Moment, /) -> str:
        """Compare the time of the next row with those before: ``ok``, ``gap``, ``restart``; or ``unconfirmed``, ``late``, ``duplicate``, which are left out.

        After a ``gap`` (too long to bridge) and a ``restart`` (of the clock, in the past) nothing follows from earlier rows.
        """
        value = moment.value
        if self.last is None:
            self.dates = moment.dates
            self._accept(value, new=True)
            return "ok"
        step, usual = self._seconds(self.last, value), self._usual()
        if step <= 0:
            if not self.confirmed and usual is not None and -step > FAR * usual:
                self.spans.clear()  # the very first row was far ahead of all others: it was wrong, not they
                self._accept(value, new=True)
                return "gap"
            return self._backwards(value, usual)
        if usual is not None and step > FAR * usual and not self._confirms(value, usual):
            return "unconfirmed"
        gap = usual is not None and step > MAX_GAP * usual
        self._accept(value, new=gap)
        self.confirmed = True
        if self.period is not None or len(self.steps) < PACE_ROWS:
            self.steps.append(step)
            if self.period is not None and len(self.steps) == PACE_ROWS:
                self.pace = float(np.median(self.steps))
                self.steps.clear()
        return "gap" if gap else "ok"

    def follow(self, values: AnyArray) -> int:
        """Take in times ``(n,)`` that follow the last one at usual steps; of how many.

        Those from one on at which the pace of the rows would be found to be wrong are not taken in.
        """
        count = len(values)
        if self.period is not None:
            assert self.last is not None, "a row has come before"
            before = np.concatenate([[self.last], values[:-1]]).astype(values.dtype)
            steps = [*self.steps, *((values - before) / (1e9 if self.dates else 1.0)).tolist()]
            first = 0
            while first + PACE_ROWS <= len(steps):
                pace = float(np.median(steps[first : first + PACE_ROWS]))
                if self._is_wrong(pace) and not self._is_wrong(self.pace):
                    count = first + PACE_ROWS - 1 - len(self.steps)
                    break
                self.pace, first = pace, first + PACE_ROWS
            steps = steps[first : len(self.steps) + count]
        if count:
            if self.period is not None:
                self.steps = steps
            self._accept(values[count - 1].item(), new=False)
            self.confirmed = True
        return count

    def _is_wrong(self, pace: float | None) -> bool:
        return wrong_pace(pace, self.period, whose="") is not None

    def _seconds(self, earlier: float | int, later: float | int) -> float:
        return (later - earlier) / (1e9 if self.dates else 1.0)

    def _usual(self) -> float | None:
        """The sampling period, as far as it is known."""
        if self.period is not None:
            return self.period
        return float(np.median(self.steps)) if self.steps else None

    def _accept(self, value: float | int, *, new: bool) -> None:
        self.last, self.candidate, self.behind = value, None, None
        self.late = self.agreeing = self.waiting = 0
        self.repeated = False
        if new:
            self.spans.append([value, value])
            if len(self.spans) > MOST_SPANS:
                (a, b), (c, d) = self.spans[:2]
                self.spans[:2] = [[min(a, c), max(b, d)]]
        else:
            self.spans[-1][1] = value

    def _confirms(self, value: float | int, usual: float) -> bool:
        """Whether a row far ahead follows closely on another one that waits."""
        waiting, self.candidate = self.candidate, value
        if waiting is not None and 0 < self._seconds(waiting, value) <= MAX_GAP * usual:
            return True
        self.waiting = self.waiting + 1 if waiting is not None and value > waiting else 1
        return self.waiting > MOST_WAITING

    def _backwards(self, value: float | int, usual: float | None) -> str:
        self.late += 1
        if value == self.last:
            return "duplicate"
        if value == self.behind:
            return "late"
        step = 0.0 if self.behind is None else self._seconds(self.behind, value)
        agrees = step > 0 and (usual is None or step <= MAX_GAP * usual)
        inside = any(start <= value <= stop for start, stop in self.spans)
        self.repeated = inside or (agrees and self.repeated)
        self.agreeing = self.agreeing + 1 if agrees else 1
        self.behind = value
        if self.agreeing < (SET_BACK if self.repeated else NEW_CLOCK):
            return "late"
        self._accept(value, new=True)
        self.confirmed = True
        return "restart"

    @property
    def seconds(self) -> float | None:
        """The time of the last accepted row, once a second one has confirmed the first."""
        return None if self.last is None or not self.confirmed else self.last * (1e-9 if self.dates else 1.0)

    def state(self) -> State:
        """Return everything that continues after a restart.

        Not the pace, which is measured anew.
        """
        kept = {name: value for name, value in vars(self).items() if name not in ("period", "pace")}
        return kept | {"steps": list(self.steps), "spans": [list(span) for span in self.spans]}

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        for name in ("last", "candidate", "behind"):
            if not (state.get(name) is None or _is_time(state[name])):
                raise ValueError(f"the clock's {name!r} must be a number or nothing")
        self.dates, self.last, self.candidate = bool(state["dates"]), state["last"], state["candidate"]
        self.behind = state.get("behind")  # states of earlier versions do not have this and the following
        self.confirmed, self.late = bool(state["confirmed"]), int(state["late"])
        self.waiting, self.agreeing = int(state.get("waiting", 0)), int(state.get("agreeing", 0))
        self.repeated = bool(state.get("repeated", False))
        self.steps = [float(step) for step in state["steps"]][-PACE_ROWS + (self.period is not None) :]
        spans = state.get("spans", [] if self.last is None else [[self.last, self.last]])
        if not all(len(span) == 2 and all(map(_is_time, span)) for span in spans) or bool(spans) != (
            self.last is not None
        ):
            raise ValueError("the clock's 'spans' must be pairs of times")
        self.spans = [list(span) for span in spans][-MOST_SPANS:]
        if not all(0 < step < float("inf") for step in self.steps):
            raise ValueError("the clock's 'steps' must be seconds")


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


def wrong_pace(pace: float | None, period: float | None, *, whose: str) -> str | None:
    """The sentence about rows that come at another pace than the model knows.

    None where they do not.
    """
    if pace is None or period is None or abs(pace - period) <= PACE_TOLERANCE * period:
        return None
    return (
        f"The rows given to {whose} must come every {period:g} seconds, as in training. Got one every {pace:g} seconds "
        "instead. Resample them, fit a model on such rows, or go on at your own risk with --any-period (any_period=True)."
    )

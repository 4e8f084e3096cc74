"""The clock of one entity whose rows arrive one at a time: what comes too late, too far ahead, or at another pace.

It compares times; how a time is read is the business of :mod:`tisat.io.timestamps`, what is in the rows is nobody's here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tisat.errors import SeriesError
from tisat.gap_filling import FAR, MAX_GAP
from tisat.io.timestamps import Moment, read_time

PACE_ROWS = 30  # steps after which the pace of the rows is known
PACE_TOLERANCE = 0.1  # how much it may differ from the model's sampling period
MANY_LATE = 20  # late rows in a row after which somebody should look


class RowClock:
    """Remembers the time of the last accepted row.

    A row more than ``FAR`` sampling periods ahead waits for a second one that confirms it (``unconfirmed``): one wrong
    stamp must not make every later row late. The first row of all is not confirmed either, until a later one follows.

    Parameters
    ----------
    period : float, optional
        The sampling period in seconds; without it no jump in time is too long.

    Examples
    --------
    >>> clock = RowClock(60.0)
    >>> [clock.advance(read_time(second)) for second in (0, 60, 60, 30, 3600)]
    ['ok', 'ok', 'duplicate', 'late', 'gap']
    >>> [clock.advance(read_time(second)) for second in (9e6, 3660, 3720)]
    ['unconfirmed', 'ok', 'ok']
    """

    def __init__(self, period: float | None) -> None:
        self.period = period
        self.dates = False
        self.last: float | int | None = None
        self.candidate: float | int | None = None  # a time far ahead that waits for a second one
        self.confirmed = False  # a row has followed the first one
        self.late = 0  # late or duplicate rows since the last good one
        self.steps: list[float] = []  # the first steps in seconds, until the pace is known

    def read(self, time: object) -> Moment:
        """The time of a row; an error where it cannot be one, and nothing has changed. A moment that was read already is taken as it is."""
        moment = time if isinstance(time, Moment) else read_time(time, plain=self.last is not None and not self.dates)
        if self.last is not None and moment.dates != self.dates:
            raise SeriesError(f"The times of rows must be all dates or all numbers. Got {time!r} after the other kind.")
        return moment

    def advance(self, moment: Moment) -> str:
        """``ok``, ``gap`` (too long to bridge), ``unconfirmed``, ``late`` or ``duplicate``; the last three are left out."""
        dates, value, _ = moment
        unit = 1e-9 if dates else 1.0
        if self.last is None:
            self.dates, self.last = dates, value
            return "ok"
        step = (value - self.last) * unit
        if step <= 0 and not self.confirmed and self.period is not None and -step > FAR * self.period:
            self.last = value  # the very first row was far ahead of all others: it was wrong, not they
            return "gap"
        if step <= 0:
            self.late += 1
            return "duplicate" if step == 0 else "late"
        jumped = self.period is not None and step > MAX_GAP * self.period
        usual = float(np.median(self.steps)) if self.period is None and self.steps else self.period
        if usual is not None and step > FAR * usual:
            waiting, self.candidate = self.candidate, value
            if waiting is None or not 0 < (value - waiting) * unit <= MAX_GAP * usual:
                return "unconfirmed"
        self.candidate = None
        self.last, self.late, self.confirmed = value, 0, True
        if len(self.steps) < PACE_ROWS and not jumped:
            self.steps.append(step)
        return "gap" if jumped else "ok"

    @property
    def seconds(self) -> float | None:
        """The time of the last accepted row, once a second one has confirmed the first."""
        return None if self.last is None or not self.confirmed else self.last * (1e-9 if self.dates else 1.0)

    @property
    def pace(self) -> float | None:
        """The median step of the first rows in seconds, once there are enough."""
        return float(np.median(self.steps)) if len(self.steps) >= PACE_ROWS else None

    def state(self) -> dict[str, Any]:
        """Everything needed to go on after a restart, as plain values."""
        return {name: value for name, value in vars(self).items() if name != "period"} | {"steps": list(self.steps)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from ``state``."""
        for name in ("last", "candidate"):
            if not (state[name] is None or (type(state[name]) in (int, float) and abs(state[name]) < 2**63)):
                raise ValueError(f"the clock's {name!r} must be a number or nothing")
        self.dates, self.last, self.candidate = bool(state["dates"]), state["last"], state["candidate"]
        self.confirmed, self.late = bool(state["confirmed"]), int(state["late"])
        self.steps = [float(step) for step in state["steps"]][:PACE_ROWS]


def wrong_pace(pace: float | None, period: float | None, *, whose: str) -> str | None:
    """The sentence about rows that come at another pace than the model knows; None where they do not."""
    if pace is None or period is None or abs(pace - period) <= PACE_TOLERANCE * period:
        return None
    return (
        f"The rows given to {whose} must come every {period:g} seconds, as in training. Got one every {pace:g} seconds "
        "instead. Resample them, fit a model on such rows, or go on at your own risk with --any-period (any_period=True)."
    )

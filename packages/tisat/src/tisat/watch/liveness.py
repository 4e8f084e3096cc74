"""The roll call of a fleet: which entity says nothing while the others go on.

An entity whose rows stop is the same kind of alarm as a channel whose values stop (``data``, outside the budget), and is said
once. Time is what the other entities saw go by, in sampling periods; a pause of all of them is nobody's silence. Whether all
have stopped only somebody with a clock of their own can say: the service does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from tisat.gap_filling import MAX_GAP, Silence, Stamp
from tisat.utils.stage import Folded, State


class Heard(NamedTuple):
    """A row of an entity that was taken in."""

    entity: str
    time_step: float | None  # its time in sampling periods, or its number; None while the time is not to be relied on
    row: int  # as alarms carry it
    stamp: Stamp = None  # as alarms carry it


class RollCall(Folded[Heard, tuple[Silence, ...]]):
    """Remembers when each entity was heard last, and says once that it has fallen silent, and that it is back.

    Examples
    --------
    >>> roll = RollCall()
    >>> for time_step in range(3):
    ...     _ = roll.run([Heard("a", time_step, time_step), Heard("b", time_step, time_step)])
    >>> found = roll.run(Heard("a", time_step, time_step) for time_step in range(3, 20))
    >>> [(one.series, one.since) for some in found for one in some], list(roll.silent)
    ([('b', 3)], ['b'])
    >>> roll.step(Heard("b", 20, 3))[0].until
    3
    """

    def __init__(self) -> None:
        self._passed = 0.0  # rows the fleet has gone on for
        self._latest = -math.inf  # of all rows, in rows
        self._last: dict[str, tuple[float, int, Stamp]] = {}  # heard when, its next row, its time; longest ago first
        self.silent: dict[str, Silence] = {}

    def enrol(self, entity: str) -> None:
        """From now on rows of this entity are expected."""
        self._last[entity] = (self._passed, 0, None)

    def forget(self, entity: str) -> None:
        """Nothing is expected of it any more."""
        self._last.pop(entity, None)
        self.silent.pop(entity, None)

    def step(self, heard: Heard, /) -> tuple[Silence, ...]:
        """Note a row of an entity: which entity is back, and which has been silent for too long."""
        entity, time_step, row, stamp = heard
        silences = []
        if entity in self.silent:
            silences.append(replace(self.silent.pop(entity), until=row, until_time=stamp))
        if time_step is not None and time_step > self._latest:
            self._passed += min(time_step - self._latest, 1.0)  # a pause of all of them is nobody's silence
            self._latest = time_step
        self._last.pop(entity, None)
        self._last[entity] = (self._passed, row + 1, stamp)
        while True:
            oldest = next(iter(self._last))
            when, since, last = self._last[oldest]
            if self._passed - when <= MAX_GAP:
                return tuple(silences)
            del self._last[oldest]
            self.silent[oldest] = Silence("", since, since, None, last, stamp, None, oldest)
            silences.append(self.silent[oldest])

    def state(self) -> State:
        """Return everything that continues after a restart, as plain values."""
        silent = {name: [one.since, one.since_time, one.noticed_time] for name, one in self.silent.items()}
        latest = self._latest if math.isfinite(self._latest) else None
        return {
            "passed": self._passed,
            "latest": latest,
            "last": {name: list(one) for name, one in self._last.items()},
            "silent": silent,
        }

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        self._passed = float(state["passed"])
        self._latest = -math.inf if state["latest"] is None else float(state["latest"])
        last = {str(name): (float(when), int(row), stamp) for name, (when, row, stamp) in state["last"].items()}
        self._last = dict(sorted(last.items(), key=lambda item: item[1][0]))
        self.silent = {
            str(name): Silence("", int(since), int(since), None, last, noticed, None, str(name))
            for name, (since, last, noticed) in state["silent"].items()
        }

"""A threshold that follows the alarms: the long-run rate of those it can keep back is the budget, whatever the machine does.

One number, the **balance**, in alarms. It begins at
``START``. A calm row adds ``AIM / N`` (N: rows between two false alarms), an alarm that ends takes 1.
Between 0 and ``BURST`` the threshold is the calibrated one. Below 0 it is higher by ``STEP`` for each alarm too many, at most by
``HIGHEST``; above ``BURST``, after a long calm, it is lower, at most by ``LOWER``. Levels are on the logarithmic scale of the
calibration. This is adaptive conformal inference (Gibbs and Candès, 2021) applied to alarms, with the burst of a token bucket.

The bound (proof in ``docs/budgets.md``): of the alarms that end within T calm rows, those that stay below the highest level less
``STEP`` are at most ``AIM * T / N + START + HIGHEST / STEP``. Alarms above the highest level are always raised, and do not count: to count
them could only hide weaker ones. An alarm that is on counts once, when it ends; one that a person called true or expected does not. This module knows no detector and no rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tisat.errors import ArtefactError
from tisat.utils.compiled import compiled
from tisat.utils.numbers import say_number
from tisat.utils.types import AnyArray, Array, Arrays, Flags

STEP = 1.5  # how much one alarm too many raises the threshold, on the logarithmic scale
BURST, START = 3.0, 1.0  # alarms in a row that move nothing, after a calm time and at the first row
AIM = 0.9  # of the budget that is spent in the long run: the rest is for bursts
HIGHEST, LOWER = 5.25, 0.75  # furthest above and below the calibrated threshold
ACTIVE = 0.1  # share of calibration rows that may lie above the lowest threshold
MOVED = 0.25  # least change of the threshold worth a sentence
EXEMPT = ("true", "expected")  # labels of alarms that do not count

# Fields of the float state. The first four change from row to row and are kept; the others are set once.
BALANCE, ENDED, CALM, EXCUSED = 0, 1, 2, 3  # EXCUSED: the alarm that is on will not count
CONTROLLED, FROZEN, PERIOD, PER_ALARM, FREE, LEAST, MOST, LEVEL, LOWEST, CENTRE, UNIT, STRONG = range(4, 16)
KEPT, FIELDS = 4, 16


@compiled()
def threshold_of(control: Array, threshold: float) -> float:
    """The threshold in force: ``threshold``, moved by the balance."""
    balance, free = control[BALANCE], control[FREE]
    if control[CONTROLLED] == 0.0 or (balance >= 0.0 and balance <= free):
        return threshold
    if balance < 0.0:
        level = control[LEVEL] - control[PER_ALARM] * balance
    else:
        level = max(control[LEVEL] - control[PER_ALARM] * (balance - free), control[LOWEST])
    if control[UNIT] > 0.0:
        return float(control[CENTRE] + control[UNIT] * np.expm1(min(level, 600.0)))
    return float(level)


@compiled()
def follow(control: Array, before: int, now: int, known: int, statistic: float) -> None:
    """Go on by one row: an alarm that ends takes 1 from the balance, a calm row adds its share of the budget."""
    if control[CONTROLLED] == 0.0:
        return
    if now and statistic >= control[STRONG]:
        control[EXCUSED] = 1.0  # no threshold would keep it back: counting it would only hide weaker ones
    counts = control[FROZEN] == 0.0
    if before and not now:
        if counts and control[EXCUSED] == 0.0:
            control[BALANCE] = max(control[BALANCE] - 1.0, control[LEAST])
            control[ENDED] += 1.0
        control[EXCUSED] = 0.0
    if counts and known and not now:
        control[BALANCE] = min(control[BALANCE] + 1.0 / control[PERIOD], control[MOST])
        control[CALM] += 1.0


@compiled()
def _replay(control: Array, threshold: float, statistic: Array, active: Flags) -> None:
    before = False
    for i in range(len(statistic)):
        known = not np.isnan(statistic[i])
        active[i] = known and statistic[i] >= threshold_of(control, threshold)
        follow(control, before, active[i], known, statistic[i])
        before = active[i]


@dataclass(frozen=True)
class Control:
    """A controller of the threshold and its bounds.

    Examples
    --------
    >>> control = Control(period=1000.0, level=5.0, lowest=3.5)
    >>> [round(control.threshold(balance), 2) for balance in (1.0, 0.0, -1.0, -3.5, 3.5)]
    [5.0, 5.0, 6.5, 10.25, 4.25]
    """

    period: float  # rows between two false alarms, asked for
    level: float  # the calibrated threshold, on the logarithmic scale
    lowest: float  # no threshold is below
    compression: tuple[float, float] | None = None  # centre and unit where the statistic itself is not logarithmic

    def array(self) -> Array:
        """The state of a control that has seen nothing, as the compiled loops take it."""
        state = np.zeros(FIELDS)
        centre, unit = self.compression or (0.0, 0.0)
        state[:] = [
            START, 0.0, 0.0, 0.0, 1.0, 0.0, self.period / AIM, STEP, BURST, -HIGHEST / STEP, BURST + LOWER / STEP,
            self.level, min(self.lowest, self.level), centre, unit, self.threshold(-HIGHEST / STEP),
        ]  # fmt: skip
        return state

    def threshold(self, balance: float) -> float:
        """The threshold in force at a balance, in the statistic's own unit."""
        over = max(-balance, 0.0) - max(balance - BURST, 0.0)
        level = self.level + STEP * over
        level = max(level, min(self.lowest, self.level)) if over < 0 else level
        if self.compression is None:
            return level
        centre, unit = self.compression
        return centre + unit * math.expm1(min(level, 600.0))

    def replay(self, statistic: Array, threshold: float) -> Flags:
        """Find where the alarm would have been on, from the statistic ``(T,)`` of a rule that no alarm changes.

        Examples
        --------
        >>> Control(period=1000.0, level=5.0, lowest=3.5).replay(np.array([1.0, 6.0, 6.0, np.nan, 6.0]), 5.0).tolist()
        [False, True, True, False, True]
        """
        active = np.empty(len(statistic), dtype=np.bool_)
        _replay(self.array(), threshold, np.ascontiguousarray(statistic, dtype=np.float64), active)
        return active

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest threshold."""
        return self.threshold(BURST + LOWER / STEP), self.threshold(-HIGHEST / STEP)


def no_control() -> Array:
    """The state of a threshold that stays where it is."""
    return np.zeros(FIELDS)


def control_state(state: Array) -> Arrays:
    """Return the part of a control's state that changes from row to row."""
    return {"control": state[:KEPT].copy()} if state[CONTROLLED] else {}


def restore(state: Array, found: Mapping[str, AnyArray]) -> None:
    """Go on from :func:`kept`; a state from before there was control begins afresh."""
    if not state[CONTROLLED] or "control" not in found:
        return
    values = np.asarray(found["control"], dtype=np.float64)
    if values.shape != (KEPT,) or not np.isfinite(values).all():
        raise ArtefactError(f"The control of a threshold must be {KEPT} finite numbers. Got {values!r} instead.")
    state[:KEPT] = values
    state[BALANCE] = min(max(state[BALANCE], state[LEAST]), state[MOST])


def exempt(state: Array, *, on: bool, again: bool = False) -> None:
    """Do not count an alarm: the one that is on, or one that has ended.

    ``again``: count it after all.
    """
    if not state[CONTROLLED]:
        return
    if on:
        state[EXCUSED] = 0.0 if again else 1.0
        return
    change = -1.0 if again else 1.0
    state[BALANCE] = min(max(state[BALANCE] + change, state[LEAST]), state[MOST])
    state[ENDED] = max(state[ENDED] - change, 0.0)


@dataclass(frozen=True)
class Movement:
    """The change of a threshold and its cause."""

    before: float  # calibrated
    after: float  # in force
    alarms: int  # that ended and counted
    rows: int  # calm
    asked: float  # alarms the budget allows in so many rows
    alike: int = 0  # alarms with the same kind and first channel, where that is known
    back: float = 0.0  # calm rows after which a raised threshold is as calibrated again

    @property
    def moved(self) -> bool:
        """Whether it is worth a sentence."""
        return abs(self.after - self.before) >= MOVED

    def __str__(self) -> str:
        many = f"{self.alarms} alarm{'s' * (self.alarms != 1)} counted in {self.rows} rows, {say_number(self.asked)} asked for"
        again = f" {self.alike} look alike: a new pattern?" if self.alike > 2 else ""
        if not self.moved:
            return f"Threshold {self.after:.4g} as calibrated: {many}."
        up = self.after > self.before
        rows = math.ceil(self.back)
        back = "The next alarm brings it back."
        if up:
            back = f"{rows:,} rows without an alarm bring it back; so do labels true and expected, in the service and by Monitor.label alone."
        return f"Threshold {'raised' if up else 'lowered'} from {self.before:.4g} to {self.after:.4g}, where it is at the last row: {many}. {back}{again}"


def movement(state: Array, threshold: float, in_force: float, alike: int = 0) -> Movement | None:
    """Describe the change of a controlled threshold; None without control."""
    if not state[CONTROLLED]:
        return None
    rows, period = int(state[CALM]), float(state[PERIOD])
    back = max(-float(state[BALANCE]), 0.0) * period
    return Movement(threshold, in_force, int(state[ENDED]), rows, rows / (AIM * period), alike, back)


def most_alike(kinds: Sequence[tuple[str, str]]) -> int:
    """How many alarms share their kind and first channel with most others."""
    known = [one for one in kinds if any(one)]
    return max((known.count(one) for one in set(known)), default=0)

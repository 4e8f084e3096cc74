"""Reasons in words, by the kind of alarm: stuck, unusually noisy, another rhythm, a broken correlation, a new pattern; the operating mode.

This module knows no detector; it is given what was seen, what was expected and how long a channel has not moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tisat.alarms.explanation import Explanation, Reason, number
from tisat.alarms.present_mode import Switch
from tisat.io.durations import spelt
from tisat.utils.numbers import say_number
from tisat.utils.stage import Folded, State, Stateful
from tisat.utils.types import Array, Flags, Integers, JsonMap

OFTEN = 3  # times that a channel stood so long in training: then it is not stuck
LONG = 3.0  # times as long as usual without a move: stuck
FEWEST = 10  # rows without a move before a channel is called stuck
ROWS = 60  # before the raise in which a switch names the operating mode
USUAL = 2.0  # training spreads round the median within which a value is usual
NOISY = 0.3  # share of the evidence from which a channel beside a noisy one is called so
OUTSIDE = 3.0  # spreads away from what the others say, from which that is worth a sentence


@dataclass(frozen=True)
class Habits:
    """Facts about the channels in training that sentences use."""

    moves_every: Sequence[float]  # rows between two moves of each channel; empty: unknown
    period: float | None  # seconds between two rows
    counters: Sequence[str] = ()  # channels that are looked at by their growth
    usual: Array | None = None  # (2, C) median and spread of each channel
    extremes: Array | None = None  # (2, C) least and greatest value of each channel
    stood: Sequence[float] = ()  # rows for which each channel stood three times or more

    @classmethod
    def of(cls, trained_on: JsonMap, usual: Array | None = None, extremes: Array | None = None) -> Habits:
        """From what a fitted detector remembers of its training data."""
        counters = tuple(trained_on.get("counters", ()))
        moves, stood = (tuple(trained_on.get(name, ())) for name in ("moves_every", "stood"))
        return cls(moves, trained_on.get("period_seconds"), counters, usual, extremes, stood)

    def duration(self, rows: float) -> str:
        """So many rows, as a duration where there is a clock.

        Examples
        --------
        >>> Habits((), 60.0).duration(41), Habits((), None).duration(41)
        ('41 min', '41 rows')
        """
        if self.period is None:
            return f"{say_number(rows, 3)} row{'s' * (rows != 1)}"
        return spelt(rows * self.period)


UNKNOWN_HABITS = Habits((), None)


def moves_every(parts: Sequence[Array]) -> list[float]:
    """Rows between two moves of each channel in training.

    The number of rows where it never moved.
    """
    rows = sum(max(len(part) - 1, 0) for part in parts)
    moves = sum((np.diff(part, axis=0) != 0).sum(axis=0) for part in parts)
    return [rows / max(int(count), 1) for count in np.atleast_1d(moves)]


def stood(parts: Sequence[Array]) -> list[float]:
    """Rows for which each channel stood without a move in training, three times or more; 0 where it did so less often.

    Examples
    --------
    >>> stood([np.repeat([[1.0], [2.0], [1.0], [2.0]], 50, axis=0)])
    [49.0]
    """
    runs: list[list[Array]] = [[] for _ in range(parts[0].shape[1])]
    for part in parts:
        for c, own in enumerate(runs):
            moves = np.flatnonzero(np.diff(part[:, c]) != 0)
            own.append(np.diff(np.concatenate([[-1], moves, [len(part) - 1]])) - 1)
    longest = [np.sort(np.concatenate(own))[::-1] for own in runs]
    return [float(own[OFTEN - 1]) if len(own) >= OFTEN else 0.0 for own in longest]


def worded(
    reasons: Sequence[Reason], why: Explanation, names: Sequence[str], still: Integers, habits: Habits
) -> tuple[Reason, ...]:
    """The reasons, each with its sentence.

    ``still`` (C,) is for how many rows each channel has not moved.

    A channel that is where it is expected explains nothing: it is left out where another is not.
    """
    place = {name: c for c, name in enumerate(names)}
    sentences = tuple(
        _with_return(
            replace(one, words=_sentence(one, why, place[one.channel], names, int(still[place[one.channel]]), habits)),
            place[one.channel],
            habits,
        )
        for one in reasons
    )
    return tuple(one for one in sentences if one.words or not _as_expected(one)) or sentences


def _with_return(one: Reason, c: int, habits: Habits) -> Reason:
    """The reason; where its value is usual and what was expected never was, with a remark that a fault may have ended.

    A forecast follows the rows before, and so does the reference of a correlation: after a long fault both expect the fault.
    Expected values that training had are no sign of it: the rush hour is far from the median of the day, too.
    """
    if habits.usual is None or one.channel in habits.counters or one.seen is None or one.expected is None:
        return one
    median, spread = (float(value) for value in habits.usual[:, c])
    usual = abs(one.seen - median) <= USUAL * spread
    if not usual or not _far(one) or abs(one.expected - median) < OUTSIDE * spread:
        return one
    if habits.extremes is not None and habits.extremes[0, c] <= one.expected <= habits.extremes[1, c]:
        return one
    remark = f"{number(one.seen, spread)} is usual ({number(median, spread)} ± {number(spread, spread)}): a fault before may have ended here"
    return replace(one, words=f"{one}; {remark}")


def joining(
    reasons: Sequence[Reason], why: Explanation, names: Sequence[str], still: Integers, habits: Habits
) -> tuple[Reason, ...]:
    """The reasons of channels that join an alarm, in words.

    None of a channel that is where it is expected and only moves otherwise.
    """
    sentences = worded(reasons, why, names, still, habits)
    place = {name: c for c, name in enumerate(names)}
    return tuple(
        one
        for one in sentences
        if not _as_expected(one)
        or why.kind == "rhythm"
        or (why.kind == "stuck" and _stands(int(still[place[one.channel]]), place[one.channel], habits))
    )


def _stands(still: int, c: int, habits: Habits) -> bool:
    """Whether a channel has not moved for much longer than usual."""
    long = c < len(habits.moves_every) and still >= max(LONG * habits.moves_every[c], FEWEST)
    return long and not _stood(still, c, habits)


def _stood(still: int, c: int, habits: Habits) -> bool:
    """Whether a channel stands as it often did in training, as a pump that is off."""
    return c < len(habits.stood) and FEWEST <= still <= habits.stood[c]


def _far(one: Reason) -> bool:
    if one.seen is None or one.expected is None or one.spread is None:
        return False
    return abs(one.seen - one.expected) >= OUTSIDE * one.spread


def _as_expected(one: Reason) -> bool:
    if one.seen is None or one.expected is None or one.spread is None:
        return False
    return abs(one.seen - one.expected) < one.spread


def _sentence(one: Reason, why: Explanation, c: int, names: Sequence[str], still: int, habits: Habits) -> str:
    """The sentence of one reason; empty where seen and expected say it best."""
    counted = one.channel in habits.counters and one.seen is not None
    value = str(replace(one, words="")) if not counted else _growth(one)
    subject = f"{value}, and" if _far(one) else one.channel
    if why.kind == "stuck" and _stands(still, c, habits):
        usual = habits.duration(habits.moves_every[c])
        if counted and one.seen:  # its growth stands, not the counter
            return f"{_growth(one)}, by the same amount at each row for {habits.duration(still)}; usually it changes every {usual}"
        return f"{subject} has not moved for {habits.duration(still)}; usually moves every {usual}"
    if why.kind == "stuck":
        return f"{subject} moves less than usual" if not _stood(still, c, habits) else value if _far(one) else ""
    if why.kind == "unusually noisy":
        if why.times is not None and c == int(why.ranking()[0]):
            return f"{subject} moves {why.times:.2g} times as much as usual"
        if one.share < NOISY:
            return value if counted and not _as_expected(one) else ""
        return f"{subject} moves more than usual" if _far(one) else f"{one.channel} is unusually noisy"
    if why.kind == "rhythm":
        return f"{one.channel} follows another rhythm than in training"
    if counted and not _as_expected(one):
        return value
    if why.kind == "pattern":
        return f"{value if counted or _far(one) else f'{one.channel} {number(one.seen, one.spread)}'}: no such shape in training"
    if why.kind == "broken correlation" and one.seen is not None and one.expected is not None:
        spread, partners = one.spread or 0.0, why.partners[c] if why.partners else ()
        usual_value = f"{number(one.expected, spread)} ± {number(spread, spread)}"
        if not partners:  # nothing to compare it with: its own level
            side, away = ("above", "below")[one.seen < one.expected], number(abs(one.seen - one.expected), spread)
            return f"{one.channel} {number(one.seen, spread)}, {away} {side} the expected {usual_value}"
        if abs(one.seen - one.expected) >= OUTSIDE * spread:
            others, verb = " and ".join(names[j] for j in partners), "say" if len(partners) > 1 else "says"
            return f"{one.channel} {number(one.seen, spread)} while {others} {verb} {usual_value}"
    return ""


def _growth(one: Reason) -> str:
    """Describe a counter: ``ENERGY grew by 0.000 per row, expected 0.680 ± 0.028``."""
    text = f"{one.channel} grew by {number(one.seen, one.spread)} per row"
    if one.expected is not None:
        text += f", expected {number(one.expected, one.spread)}"
        text += "" if one.spread is None else f" ± {number(one.spread, one.spread)}"
    return text


class Stillness(Folded[Array | None, Integers]):
    """For how many rows each channel has not moved, of rows that arrive one at a time.

    Examples
    --------
    >>> still = Stillness(1)
    >>> [int(still.step(np.array([value]))[0]) for value in (1.0, 1.0, 1.0, 2.0)]
    [0, 1, 2, 0]
    """

    def __init__(self, channels: int) -> None:
        self.last = np.full(channels, np.nan)
        self.rows = np.zeros(channels, dtype=np.int64)

    def step(self, row: Array | None, /) -> Integers:
        """Take in a row; None: one that could not be scored, after which counting begins again."""
        if row is None:
            self.last = np.full(len(self.last), np.nan)
            self.rows = np.zeros(len(self.rows), dtype=np.int64)
        else:
            self.rows = (self.rows + 1) * (row == self.last)  # np.where takes longer
            self.last = row
        return self.rows

    def follow(self, rows: Array, known: Flags) -> None:
        """Take in rows ``(T, C)``, of which those that are ``known`` could be scored."""
        if not known[-1]:
            self.step(None)
            return
        gaps = np.flatnonzero(~known)
        if len(gaps):
            self.step(None)
            rows = rows[gaps[-1] + 1 :]
        moved = np.concatenate([self.last[None], rows[:-1]]) != rows
        since = moved[::-1].argmax(axis=0)  # rows since the last move
        self.rows = np.where(moved.any(axis=0), since, self.rows + len(rows))
        self.last = rows[-1].copy()

    def state(self) -> State:
        """Return everything that continues after a restart."""
        return {"still_last": self.last.copy(), "still_rows": self.rows.copy()}

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        self.last, self.rows = np.array(state["still_last"]), np.array(state["still_rows"])


def still_at(rows: Array, known: Flags, t: int) -> Integers:
    """The same of a whole series ``(T, C)`` at row ``t``.

    ``known`` (T,) says which rows were scored.
    """
    out = np.zeros(rows.shape[1], dtype=np.int64)
    first = t
    same = np.ones(rows.shape[1], dtype=np.bool_)
    while first > 0 and known[first - 1] and same.any():
        same &= rows[first - 1] == rows[first]
        out += same
        first -= 1
    return out


def mode_of(rows: Array, switches: Sequence[Switch], channels: Sequence[str]) -> str:
    """The last switch in rows ``(n, K)`` of the switching channels, the first of ``switches`` that has one before the others.

    Examples
    --------
    >>> mode_of(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), [(3, 0.5), (0, 0.5)], ["door", "a", "b", "pump"])
    'pump down'
    """
    for place, (channel, least) in enumerate(switches):
        moves = np.diff(rows[:, place])
        found = moves[np.abs(np.nan_to_num(moves)) >= least]
        if len(found):
            return f"{channels[channel]} {'up' if found[-1] > 0 else 'down'}"
    return ""


def switches_note(names: Sequence[str], *, modes: bool) -> str:
    """The sentence about channels that switch.

    ``modes``: they tell what to expect of the others.

    Examples
    --------
    >>> print(switches_note(["pump_on"], modes=True))
    pump_on switches: every channel is compared with what is usual in the same operating mode.
    >>> print(switches_note(["door", "valve"], modes=False))
    door, valve switch: rows after a switch are compared with those after earlier ones.
    """
    compared = "every channel is compared with what is usual in the same operating mode"
    after = "rows after a switch are compared with those after earlier ones"
    return f"{', '.join(names)} switch{'es' * (len(names) == 1)}: {compared if modes else after}."


def schedule_note(times: str) -> str:
    """The sentence about jumps that recur by the clock.

    Examples
    --------
    >>> print(schedule_note("daily 02:00 to 02:30"))
    Jumps recur by the clock (daily 02:00 to 02:30): rows after these times are compared with those after earlier ones.
    """
    return f"Jumps recur by the clock ({times}): rows after these times are compared with those after earlier ones."


class RecentRows(Stateful, Folded[Array | None, None]):
    """The last rows of the switching channels."""

    _kept = ("rows",)

    def __init__(self, switches: Sequence[Switch]) -> None:
        self.switches = tuple(switches)
        self._columns = np.array([channel for channel, _ in switches], dtype=np.int64)
        self._rows = np.full((ROWS + 1, len(switches)), np.nan)

    @property
    def rows(self) -> Array:
        """The rows ``(n, K)``, newest last."""
        return self._rows

    def step(self, row: Array | None, /) -> None:
        """Take in the values ``(C,)`` of a row; None: nothing is known of it."""
        if len(self._columns):
            self._rows[:-1] = self._rows[1:]
            self._rows[-1] = np.nan if row is None else row[self._columns]

    def follow(self, rows: Array) -> None:
        """Take in the values of rows ``(T, C)``."""
        if len(self._columns):
            self._rows[:] = np.concatenate([self._rows, rows[-len(self._rows) :, self._columns]])[-len(self._rows) :]

"""Record episodes and their labels; propose the threshold that follows from them.

A calibrated threshold never moves by itself: ten true alarms in a row would desensitise it. A monitor keeps a small record of the highest
episodes of its statistic. People label alarms: **false**, **true**, **expected** (planned work), **new normal**. From
the record and the labels :func:`propose` makes a new calibration with its consequences in words; somebody takes it or leaves it.

What counts as normal: quiet rows, episodes below the threshold, and alarms labelled false or new normal. Alarms labelled
true or expected do not, nor do alarms nobody labelled. This module does not know monitors or detectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tisat.alarms.budget import Budget, BudgetLike
from tisat.alarms.episodes import PEAKS
from tisat.alarms.result import Calibration, expanded, from_episodes
from tisat.errors import ArtefactError, InputError, ParameterError
from tisat.utils.numbers import say_number
from tisat.utils.stage import Folded, State, Stateful
from tisat.utils.validation import check_choice

LABELS = ("unlabelled", "false", "true", "expected", "new normal")
NORMAL = ("false", "new normal")  # labels that make an alarm's rows normal
ROOM = 256  # episodes kept


@dataclass(frozen=True)
class Episode:
    """A run of rows with the statistic at or above the record's mark."""

    start: int  # first row
    stop: int | None  # first row after it; None: still under way
    peak: float
    label: str  # one of LABELS


class EpisodeRecord(Stateful, Folded[float, None]):
    """The highest episodes of a statistic, row by row, in bounded memory.

    Every episode above ``mark`` is here; where there are more than ``room``, the lowest unlabelled one goes and the mark
    rises to it.

    Parameters
    ----------
    mark : float
        Least level of an episode, in the unit of the statistic.
    room : int
        Number of episodes remembered.

    Examples
    --------
    >>> record = EpisodeRecord(mark=1.0)
    >>> for value in (0.0, 2.0, 3.0, 0.0, 1.5):
    ...     record.step(value)
    >>> [(one.start, one.stop, one.peak) for one in record.episodes]
    [(1, 3, 3.0), (4, None, 1.5)]
    """

    _kept = ("start", "stop", "peak", "label", "mark", "count")

    def __init__(self, *, mark: float, room: int = ROOM) -> None:
        self._start = np.zeros(room, dtype=np.int64)
        self._stop = np.zeros(room, dtype=np.int64)  # -1: under way
        self._peak = np.zeros(room)
        self._label = np.zeros(room, dtype=np.int64)
        self._mark = np.array([float(mark)])
        self._count = np.zeros(3, dtype=np.int64)  # episodes, rows, rows with a statistic

    @classmethod
    def beside(cls, calibration: Calibration, *, room: int = ROOM) -> EpisodeRecord:
        """A record whose mark normal data passes some twenty times, to see the tail of the levels, and every alarm passes."""
        normal = calibration.normal
        if normal is None:
            return cls(mark=0.5 * calibration.threshold, room=room)
        levels = normal.pooled
        level = float(levels[min(PEAKS, len(levels) - 1)]) if len(levels) else 0.0
        level = min(max(level, 0.5 * normal.floor), normal.threshold(calibration.target))
        mark = expanded(max(level, 1e-9), calibration.compression)
        return cls(mark=mark if calibration.control is None else min(mark, calibration.control.bounds[0]), room=room)

    @property
    def mark(self) -> float:
        """Every episode that reached this level is in the record."""
        return float(self._mark[0])

    @property
    def rows(self) -> int:
        """Rows with a statistic seen so far."""
        return int(self._count[2])

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """In order of time."""
        return tuple(
            Episode(
                int(self._start[i]),
                None if self._stop[i] < 0 else int(self._stop[i]),
                float(self._peak[i]),
                LABELS[int(self._label[i])],
            )
            for i in range(int(self._count[0]))
        )

    def step(self, statistic: float, /) -> None:
        """Take in one more row; NaN where there is no statistic, which ends an episode."""
        count, row = int(self._count[0]), int(self._count[1])
        self._count[1] = row + 1
        known = not math.isnan(statistic)
        self._count[2] += known
        under_way = count > 0 and self._stop[count - 1] < 0
        if known and statistic >= self._mark[0]:
            if under_way:
                self._peak[count - 1] = max(self._peak[count - 1], statistic)
                return
            if count == len(self._peak):
                count = self._make_room()
            self._start[count], self._stop[count], self._peak[count], self._label[count] = row, -1, statistic, 0
            self._count[0] = count + 1
        elif under_way:
            self._stop[count - 1] = row

    def run(self, batch: Iterable[float], /) -> list[None]:
        """Take in many rows; those between episodes at once."""
        statistics = np.asarray(batch if isinstance(batch, np.ndarray) else list(batch), dtype=np.float64)
        done, starts = 0, np.flatnonzero(~(statistics < self._mark[0]))  # the mark never falls
        while done < len(statistics):
            count = int(self._count[0])
            if not (count > 0 and self._stop[count - 1] < 0):
                place = np.searchsorted(starts, done)
                coming = int(starts[place]) if place < len(starts) else len(statistics)
                self._count[1:] += coming - done
                done = coming
            if done < len(statistics):
                self.step(float(statistics[done]))
                done += 1
        return [None] * len(statistics)

    def _make_room(self) -> int:
        free = np.flatnonzero(self._label == 0)
        lowest = int(free[np.argmin(self._peak[free])]) if len(free) else 0  # all labelled: the oldest
        if len(free):
            self._mark[0] = max(self._mark[0], self._peak[lowest])
        for array in (self._start, self._stop, self._peak, self._label):
            array[lowest:-1] = array[lowest + 1 :]
        self._count[0] -= 1
        return int(self._count[0])

    def label(self, row: int, word: str) -> Episode:
        """Say what the alarm that was on at ``row`` was: false, true, expected or new normal; the episode it is about."""
        check_choice(word, "label", "EpisodeRecord", choices=LABELS)
        for i, episode in enumerate(self.episodes):
            if episode.start <= row < (int(self._count[1]) if episode.stop is None else episode.stop):
                self._label[i] = LABELS.index(word)
                return replace(episode, label=word)
        raise InputError(
            f"The row of a label must be one of an alarm. Got row {row}, where nothing rose above {self.mark:.4g}; is it of this file?"
        )

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned; refuses what cannot be one."""
        sizes = {name: array.shape for name, array in self.state().items()}
        if any(name not in state or np.shape(state[name]) != shape for name, shape in sizes.items()):
            raise ArtefactError(
                f"The record of episodes must have the arrays {', '.join(sizes)} with room for {len(self._peak)}."
            )
        count, labels = np.asarray(state["count"]), np.asarray(state["label"])
        used = slice(0, int(count[0]))
        sound = 0 <= count[0] <= len(self._peak) and 0 <= count[2] <= count[1] and np.isfinite(state["mark"]).all()
        sound = sound and labels.min() >= 0 and labels.max() < len(LABELS)
        if not (sound and np.isfinite(np.asarray(state["peak"])[used]).all()):
            raise ArtefactError("The record of episodes must hold counts in range, finite peaks and known labels.")
        super().restore(state)


@dataclass(frozen=True)
class Proposal:
    """Another threshold and what it would have meant. Nothing has changed yet.

    Examples
    --------
    >>> from tisat.alarms import EpisodeRecord, calibrate, make_rule, propose
    >>> found = calibrate(make_rule("excess"), np.random.default_rng(0).exponential(size=9000), "1/2500 rows")
    >>> propose(found, EpisodeRecord.beside(found)).before is found
    True
    """

    before: Calibration  # in force
    after: Calibration  # proposed
    false_alarms: int  # alarms labelled false or new normal
    avoided: int  # of those, not raised at the new threshold
    true_alarms: int  # alarms labelled true
    missed: int  # of those, not raised at the new threshold
    unlabelled: int  # episodes above the threshold that nobody labelled: counted neither way
    added: int  # episodes below the threshold in force that would have been alarms
    seen: int  # rows of operation
    rows: int  # of those, rows that count as normal
    new_normal: bool  # a person labelled what is normal as changed

    @property
    def words(self) -> tuple[str, ...]:
        """The consequences, one sentence each."""
        say = Budget(self.after.budget, self.after.target, self.after.period).say
        lines = [f"The threshold would be {self.after.threshold:.4g} instead of {self.before.threshold:.4g}."]
        if self.after.threshold == self.before.threshold:
            lines = [
                f"The threshold would stay at {self.before.threshold:.4g}. For fewer alarms take the patterns, or a smaller budget."
            ]
        if self.added:
            lines.append(f"It is lower: {self.added} more rise{'s' * (self.added != 1)} would have passed it.")
        if self.false_alarms:
            lines.append(
                f"{self.false_alarms} false alarm{'s' * (self.false_alarms != 1)} in {self.seen} rows count{'s' * (self.false_alarms == 1)} for the threshold; "
                f"the budget allows {say_number(self.seen / self.after.target)}."
            )
            lines.append(f"It would have avoided {self.avoided} of {self.false_alarms} false alarms.")
        if self.true_alarms:
            lines.append(f"It would have missed {self.missed} of {self.true_alarms} true alarms.")
        if self.unlabelled:
            rises = f"{self.unlabelled} rise{'s' * (self.unlabelled != 1)} above {self.before.threshold:.4g}"
            lines.append(f"{rises} without a label counted neither way.")
        if self.after is not self.before:
            supported = f"{say(self.after.supported)}; before, {say(self.before.supported)}"
            lines.append(f"With {self.rows} rows of operation the data can support {supported}.")
        if self.after.extrapolated > 1.0:
            lines.append("The budget is still rarer than that: extrapolated.")
        if self.new_normal:
            lines.append("What is normal has changed: fit the detector again on data from after the change.")
        return tuple(lines)

    def __str__(self) -> str:
        return "\n".join(self.words)


def propose(calibration: Calibration, record: EpisodeRecord, *, budget: BudgetLike | None = None) -> Proposal:
    """Propose a threshold from the episodes seen in operation.

    Parameters
    ----------
    calibration : Calibration
        In use, by ``episodes``.
    record : EpisodeRecord
        With its labels.
    budget : str, float or Budget, optional
        Another budget; the same unless given.

    Returns
    -------
    Proposal
        Threshold before and after, with the consequences.

    Examples
    --------
    >>> from tisat.alarms import calibrate, make_rule
    >>> found = calibrate(make_rule("excess"), np.random.default_rng(0).exponential(size=9000), "1/2500 rows")
    >>> propose(found, EpisodeRecord.beside(found)).before is found
    True
    """
    if calibration.normal is None:
        raise ParameterError(
            f"A proposal must start from a calibration by 'episodes', which keeps its normal levels. Got one by {calibration.method!r}."
        )
    episodes = record.episodes
    alarms = [one for one in episodes if one.peak >= calibration.threshold]
    counted = [one for one in episodes if one.label in NORMAL or (one.label == "unlabelled" and one not in alarms)]
    excluded = sum(
        (record.rows if one.stop is None else one.stop) - one.start for one in episodes if one not in counted
    )
    rows = max(record.rows - excluded, 0)
    peaks = np.array([one.peak for one in counted])
    if calibration.compression is not None:
        centre, unit = calibration.compression
        peaks = np.log1p(np.maximum(peaks - centre, 0.0) / unit)
    draft = calibration
    if budget is not None:
        wanted = Budget.parse(budget, period=calibration.period)
        draft = replace(calibration, budget=str(wanted), target=wanted.time_steps)
    normal = calibration.normal.joined(peaks.tolist(), rows) if rows else calibration.normal
    after = from_episodes(draft, normal)
    unwanted = any(one.label in ("false", "expected") for one in episodes)
    if budget is None and after.threshold < calibration.threshold and unwanted:
        after = calibration  # who says that alarms were false or expected does not ask for more of them
    false = [one for one in alarms if one.label in NORMAL]
    true = [one for one in alarms if one.label == "true"]
    return Proposal(
        before=calibration,
        after=after,
        false_alarms=len(false),
        avoided=sum(one.peak < after.threshold for one in false),
        true_alarms=len(true),
        missed=sum(one.peak < after.threshold for one in true),
        unlabelled=sum(one.label == "unlabelled" for one in alarms),
        added=sum(after.threshold <= one.peak < calibration.threshold for one in episodes),
        seen=record.rows,
        rows=rows,
        new_normal=any(one.label == "new normal" for one in episodes),
    )

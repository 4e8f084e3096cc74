"""The score over a reference that moves with the data, summed over a few rows, compressed and held.

Each view of a series has a reference and a unit of its own. Two things make it usable by somebody who watches one entity
for months: faults do not raise the reference that the next fault is measured by, and a level that changed for good does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tisat.alarms import _kernels
from tisat.alarms.cusum import CompressedSum
from tisat.alarms.rules.base import AlarmRule, Array, Evidence, EvidenceStage, Scored
from tisat.errors import InputError
from tisat.utils.parameters import integer, learned, real
from tisat.utils.stage import State
from tisat.utils.types import Flags, Options, Params

PARTS = 3  # of a change for good: a fault in it that is shorter than one of them leaves one alone


def new_level(recent: Array, quantile: float) -> float:
    """The lowest of the quantiles of the PARTS of the last scores."""
    length = max(len(recent) // PARTS, 1)
    starts = [min(part * length, len(recent) - length) for part in range(PARTS)]
    place = math.ceil(quantile * length) - 1
    return min(float(np.partition(recent[start : start + length], place)[place]) for start in starts)


class _Excess(EvidenceStage):
    """The loop of :mod:`tisat.alarms._kernels` over the pasts of all views, and what is rare about it."""

    def __init__(self, rule: ExcessRule) -> None:
        views = len(rule.level_)
        self._rule = rule
        self._windows = np.where(rule.momentary_, rule.momentary_window, rule.window)
        self._numbers = (
            rule.level_, rule.centre_, rule.quantile, rule.clip, rule.lag, rule.warm, rule.enter, rule.length, self._windows,
            np.where(rule.momentary_, rule.gate, 0.0),
        )  # fmt: skip  # looked up once, not at every row
        widest = int(self._windows.max())
        # Filled, not zeros(): the memory is taken at once, and a monitor does not grow as its past does.
        self._past = np.full((views, widest + rule.lag), 0.0)
        self._ordered = np.full((views, widest), 0.0)
        self._raw = np.full((views, rule.lasting), 0.0)
        self._rest = rule.level_.copy()
        self._count = np.zeros((views, 6), dtype=np.int64)
        self._held = (self._past, self._ordered, self._raw, self._rest, self._count)
        self.reference = np.empty((0, views))  # (T, V) of the last call

    def run(self, scored: Scored, /) -> Array:
        views, count = np.ascontiguousarray(scored.views), len(self._rest)
        if views.shape[1] != count:
            raise InputError(
                f"The rows given to ExcessRule must have the {count} views it was fitted on. Got {views.shape[1]} instead."
            )
        evidence: Array = np.empty(views.shape)
        self.reference = np.empty(views.shape)
        arguments = (*self._numbers, *self._held, evidence, self.reference)
        stopped = _kernels.excess(views, 0, *arguments)
        while (why := stopped % 3) != _kernels.DONE:
            entry = stopped // 3
            self._begin_again((entry - 1) % count, lasted=why == _kernels.LASTED)
            stopped = _kernels.excess(views, entry, *arguments)
        return evidence[:, 0] if count == 1 else evidence

    def measure(self, row: Scored, /) -> Array:
        """Return the evidence of one row and learn nothing from it."""
        held = [one.copy() for one in self._held]
        evidence = self.run(row)
        for mine, before in zip(self._held, held, strict=True):
            mine[...] = before
        return evidence

    def _begin_again(self, v: int, *, lasted: bool) -> None:
        """The last ``lasting`` scores of a view become its past: cut off at their level, or the normal level is back."""
        rule, raw, rows = self._rule, self._raw[v], int(self._count[v, _kernels.ROWS])
        recent = raw[np.arange(rows - len(raw), rows) % len(raw)]
        level = rule.level_[v]
        self._rest[v] = max(level, new_level(recent, rule.quantile)) if lasted else level
        known = recent[max(len(recent) - rule.lag - int(self._windows[v]), 0) :]
        self._past[v, : len(known)] = np.maximum(np.minimum(known, self._rest[v]) if lasted else known, level)
        self._count[v, _kernels.SEEN], self._count[v, _kernels.ABOVE] = len(known), 0
        self._count[v, _kernels.CHANGED] = rows if lasted else 0
        self._sort(v)

    def _sort(self, v: int) -> None:
        """Find the scores of a view that are older than the lag, in order."""
        lag, window, seen = self._rule.lag, int(self._windows[v]), int(self._count[v, _kernels.SEEN])
        size = min(max(seen - lag, 0), window)
        places = np.arange(seen - lag - size, seen - lag) % (lag + window)
        self._ordered[v, :size] = np.sort(self._past[v, places])

    def state(self) -> State:
        """Return the pasts, one behind the other: the scores above the level, and where they are; the others count as the level."""
        lengths = self._windows + self._rule.lag
        past = np.concatenate([one[:length] for one, length in zip(self._past, lengths, strict=True)])
        above = past > np.repeat(self._rule.level_, lengths)
        return {
            "past": past[above],
            "above": np.packbits(above),
            "lengths": lengths,
            "raw": self._raw.copy(),
            "rest": self._rest.copy(),
            "count": self._count.copy(),
        }

    def restore(self, state: Mapping[str, Any], /) -> None:
        """Continue from what :meth:`state` returned."""
        lengths, level = self._windows + self._rule.lag, self._rule.level_
        self._raw[...], self._rest[...], self._count[...] = state["raw"], state["rest"], state["count"]
        past = np.repeat(level, lengths)
        past[np.unpackbits(state["above"], count=len(past)).astype(np.bool_)] = state["past"]
        for v, part in enumerate(np.split(past, np.cumsum(lengths)[:-1])):
            self._past[v, : len(part)] = np.maximum(part, level[v])
            self._sort(v)


class ExcessRule(AlarmRule):
    """Score over a reference that moves with the data, summed over the last rows, compressed, then held.

    The reference of a view is the larger of a quantile of its normal scores and the same quantile of its past ``window``
    scores older than ``lag`` rows. A past of fewer than ``warm`` scores is filled up with the normal quantile: what has
    not been seen counts as normal, and an early fault is a few scores of many, as a late one is. The evidence is what the
    score has above the reference, in units of the reference's height over the normal median; it is never negative. A
    score multiplied by a constant or shifted gives the same evidence.

    **A fault does not hide the next one.** An excess is a run of scores above the reference, at most ``length`` rows
    apart. Of each excess only the first ``enter`` scores enter the past, cut off at ``clip`` units; the others enter as the
    reference itself. It takes many excesses, not one long one, to raise the reference.

    **Momentary views adapt faster.** A view that speaks while something happens, not for as long as it lasts (a forecast error, a
    shape: :attr:`Scored.momentary`), has a past of ``momentary_window`` scores, and of an excess everything below ``gate`` units
    enters it: unrest becomes the reference, and a gross fault does not.

    **A change for good ends its alarm.** An excess that has gone on for ``lasting`` rows is the new level: the lowest
    of the quantiles of its three thirds, so that a fault in it is no part of it. Those scores, cut off there, become the
    past, that level fills it up, and the alarm ends ``length + hold`` rows later. Once the scores of as many rows
    are back at the normal level (1 in 20 above it at most), they become the past in turn.

    Where there are several views, one with scores below 0 is measured from its own normal level: 0 is the level and -1 the median, and the rule takes
    both as they are (:meth:`tisat.detectors.base.Detector.views`).

    The statistic is the sum over views of ``log(1 + S / unit)``, S the view's evidence over ``length`` rows.

    A :class:`tisat.Watch` whose rows are five minutes or more apart takes ``length`` 10 and ``hold`` 6, from half an hour on 4 and 3,
    unless they are given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rule = ExcessRule(window=200).fit(rng.exponential(size=1000))
    >>> rule.evidence([0.5, 50.0]).round(0).tolist()
    [0.0, 16.0]
    """

    quantile: float = real(0.98, above=0.0, below=1.0, doc="Of normal and of past scores: the reference.")
    window: int = integer(3000, at_least=2, doc="Past scores the moving reference is taken from.")
    lag: int = integer(20, at_least=0, doc="Rows a score must be old before it enters the past.")
    clip: float = real(
        10.0, at_least=1.0, doc="Units at which a score of an excess is cut off before it enters the past."
    )
    warm: int = integer(
        3000, at_least=1, doc="Past scores there are at least (window if that is less): missing ones count as normal."
    )
    length: int = integer(20, at_least=2, doc="Rows of evidence summed: a finite memory, where a CUSUM's has no end.")
    hold: int = integer(30, at_least=1, doc="The statistic is held at its maximum over this many rows.")
    enter: int = integer(5, at_least=0, doc="Scores of one excess that enter the past.")
    lasting: int = integer(200, at_least=2, doc="Rows after which an excess is taken for the new level.")
    unit: float = real(0.2, above=0.0, doc="Summed evidence that counts as one unit.")
    momentary_window: int = integer(1000, at_least=2, doc="Past scores of a momentary view.")
    gate: float = real(
        5.0,
        at_least=0.0,
        doc="Units from which a score of an excess in a momentary view is kept out of its past after the first 'enter'.",
    )

    name = "excess"
    title = "excess over a moving reference, summed and held"
    controllable = True
    added = ("momentary_window", "gate")
    # where rows are so many seconds apart or more, and they are not given: experiments/hourly_lengths.py, nightly_jobs.py
    paces: ClassVar[tuple[tuple[float, Params], ...]] = (
        (1800.0, {"length": 4, "hold": 3}),
        (270.0, {"length": 10, "hold": 6}),
    )

    level_: Array = learned()  # (V,)
    centre_: Array = learned()  # (V,)
    momentary_: Flags = learned()  # (V,)

    @classmethod
    def complete_options(cls, options: Options) -> Params:
        """Options of a file from before views could be momentary: all had the same window and a closed past."""
        return {"momentary_window": options.get("window", 3000), "gate": 0.0, **options}

    def _fit(self, normal: Scored) -> None:
        caller = "ExcessRule"
        views = normal.views
        self.centre_ = np.zeros(views.shape[1])
        self.level_ = np.zeros(views.shape[1])
        self.momentary_ = np.isin(np.arange(views.shape[1]), normal.momentary)
        for v in range(views.shape[1]):
            scores = views[~np.isnan(views[:, v]), v]
            if len(scores) == 0:
                raise InputError(f"Each view given to {caller}.fit must have normal scores. View {v} has none.")
            # Where rare jumps are all there is, the mean lies above the quantile, which is then the resting value and no unit at
            # all: SMAP A-8 has q99 = 1e-8 and a maximum of 762. The mean is never below such a level (docs/log.md has what it changes).
            if (
                len(self.level_) > 1 and (scores < 0).any()
            ):  # measured from its own normal level already: 0 there, -1 at the median
                self.centre_[v] = -1.0
                continue
            self.centre_[v] = np.median(scores)
            self.level_[v] = max(float(np.quantile(scores, self.quantile)), float(np.mean(scores)))

    def _evidence_step(self) -> Evidence:
        return _Excess(self)

    def _accumulator(self, threshold: float) -> CompressedSum:
        views = len(self.level_) if hasattr(self, "level_") else 1
        return CompressedSum(threshold=threshold, length=self.length, hold=self.hold, unit=self.unit, views=views)

    def tail(self, views: int) -> tuple[float, float]:
        """A scale that grows with the number of views, and five units of evidence (``docs/4-alarms.md``)."""
        return 1.3 + 0.75 * (views - 1), 1.0

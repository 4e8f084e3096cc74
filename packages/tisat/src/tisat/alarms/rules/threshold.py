"""The plain score against a threshold."""

from __future__ import annotations

import numpy as np

from tisat.alarms.cusum import WindowSum
from tisat.alarms.rules.base import AlarmRule, Array, Evidence, Memoryless, Scored
from tisat.utils.parameters import integer

LEVEL = 0.99  # of normal scores: one unit above their median


class _Score(Memoryless):
    def run(self, scored: Scored, /) -> Array:
        return scored.scores


class ThresholdRule(AlarmRule):
    """The plain score: the alarm is on while the score is at or above the threshold.

    Examples
    --------
    >>> rule = ThresholdRule().fit([0.1, 0.2, 0.3])
    >>> rule.accumulate([0.1, 0.9, 0.2], threshold=0.5).active.tolist()
    [False, True, False]
    """

    hold: int = integer(
        1, at_least=1, doc="The score is replaced by its maximum over this many rows; 1 leaves it alone."
    )

    name = "threshold"
    title = "plain threshold"
    controllable = True
    positive = False
    has_unit = False

    def _fit(self, normal: Scored) -> None:
        self.centre_ = float(np.median(normal.scores))
        level = max(float(np.quantile(normal.scores, LEVEL)), float(np.mean(normal.scores)))
        self.unit_ = level - self.centre_ if level > self.centre_ else 1.0

    def tail(self, views: int) -> tuple[float, float]:
        """The median scale over six public data sets, and the level itself (``docs/4-alarms.md``)."""
        return 0.4, 0.7

    @property
    def compression(self) -> tuple[float, float]:
        """The normal median, and what a high quantile of normal scores lies above it."""
        return self.centre_, self.unit_

    def _evidence_step(self) -> Evidence:
        return _Score()

    def _accumulator(self, threshold: float) -> WindowSum:
        return WindowSum(threshold=threshold, length=1, hold=self.hold)

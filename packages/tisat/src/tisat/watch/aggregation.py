"""Aggregation: the stage from points of a detector to the scores and views that alarm rules look at."""

from __future__ import annotations

from tisat.alarms.rules import Scored
from tisat.gap_filling import finite
from tisat.utils.stage import Stateless
from tisat.watch.protocols import Array, Scorer


class Aggregation(Stateless):
    """Aggregate points into scores and views.

    Parameters
    ----------
    detector : Detector
        Fitted.
    """

    def __init__(self, detector: Scorer) -> None:
        self._detector = detector

    def run(self, points: Array, /) -> Scored:
        """Score points ``(T, m)``."""
        return self._detector.score_points(finite(points))

    def step(self, point: Array, /) -> Scored:
        """Score one point ``(m,)``."""
        return self.run(point[None])

"""The paper's rule: the distance of a point to nominal points, accumulated without end (a kNN CUSUM)."""

from __future__ import annotations

from typing import Any

from tisat._validation import check_choice
from tisat.sequential.cusum import COOLDOWN, POLICIES, Cusum
from tisat.sequential.evidence import MAX_POINTS, KNNEvidence
from tisat.sequential.rules.base import AlarmRule, Array, Evidence, Memoryless, Scored


class _Distance(Memoryless):
    def __init__(self, evidence: KNNEvidence) -> None:
        self._evidence = evidence

    def __call__(self, scored: Scored) -> Array:
        evidence, self._where = self._evidence.search(scored.points)
        return evidence

    def contribution(self, point: Array) -> Array:
        return self._evidence.share(point, int(self._where[-1]))


class PaperRule(AlarmRule):
    """The paper's rule: kNN distance to nominal points, accumulated without end.

    Parameters
    ----------
    form, k, alpha, method, max_points, random_state
        Of :class:`tisat.sequential.KNNEvidence`.
    end, cooldown
        What ends an alarm: of :class:`tisat.sequential.Cusum`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rule = PaperRule(form="weibull").fit(rng.normal(size=(2000, 2)))
    >>> rule.accumulate(rule.evidence(np.full((3, 2), 9.0)), threshold=900.0).active.tolist()
    [False, True, False]

    References
    ----------
    Doshi, Abudalou, Yilmaz: Reward Once, Penalize Once, section IV. The paper prints ``s_t = max(s_t + D_t, 0)`` and
    an alarm where ``s_t <= h``; both are read as the CUSUM they stand for.
    """

    name = "paper"
    title = "the paper's kNN CUSUM"
    bounded = True
    feeds_back = True
    needs_points = True

    def __init__(
        self,
        *,
        form: str = "power",
        k: int = 1,
        alpha: float = 0.05,
        end: str = "restart",
        cooldown: int = COOLDOWN,
        method: str = "auto",
        max_points: int = MAX_POINTS,
        random_state: int = 0,
    ) -> None:
        self.form = form
        self.k = k
        self.alpha = alpha
        self.end = end
        self.cooldown = cooldown
        self.method = method
        self.max_points = max_points
        self.random_state = random_state

    def _fit(self, nominal: Scored) -> None:
        check_choice(self.end, "end", "PaperRule", choices=POLICIES)
        self.knn_ = KNNEvidence(
            form=self.form,
            k=self.k,
            alpha=self.alpha,
            method=self.method,
            max_points=self.max_points,
            random_state=self.random_state,
        ).fit(nominal.points)

    def _evidence_step(self) -> Evidence:
        return _Distance(self.knn_)

    def _accumulator(self, threshold: float) -> Cusum:
        return Cusum(threshold=threshold, end=self.end, cooldown=self.cooldown)

    def contributions(self, points: Array) -> Array:
        """Squared distance to the neighbour along each coordinate."""
        return self.knn_.shares(points)

    def describe(self) -> dict[str, Any]:
        """What was learned about nominal distances."""
        return self.knn_.describe()

"""The paper's rule: the distance of a point to normal points, accumulated without end (a kNN CUSUM)."""

from __future__ import annotations

from tisat.alarms.cusum import COOLDOWN, POLICIES, Cusum
from tisat.alarms.evidence import FORMS, MAX_POINTS, KNNEvidence
from tisat.alarms.neighbours import METHODS
from tisat.alarms.rules.base import AlarmRule, Array, Evidence, Memoryless, Scored
from tisat.utils.parameters import choice, integer, real


class _Distance(Memoryless):
    def __init__(self, evidence: KNNEvidence) -> None:
        self._evidence = evidence

    def run(self, scored: Scored, /) -> Array:
        evidence, self._where = self._evidence.search(scored.points)
        return evidence

    def contribution(self, point: Array) -> Array:
        return self._evidence.share(point, int(self._where[-1]))


class PaperRule(AlarmRule):
    """The paper's rule: kNN distance to normal points, accumulated without end.

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

    form: str = choice("power", of=FORMS, doc="How distances become evidence, see tisat.alarms.KNNEvidence.")
    k: int = integer(1, at_least=1, doc="Which nearest neighbour's distance it is.")
    alpha: float = real(
        0.05, above=0.0, below=1.0, doc="Share of normal points above the level that evidence is counted from."
    )
    end: str = choice("restart", of=POLICIES, doc="What ends an alarm, see tisat.alarms.Cusum.")
    cooldown: int = integer(COOLDOWN, at_least=1, doc="Rows an alarm lasts where end is 'cooldown'.")
    method: str = choice("auto", of=("auto", *METHODS), doc="How the nearest neighbour is searched; all are exact.")
    max_points: int = integer(MAX_POINTS, at_least=1, doc="Normal points kept.")
    random_state: int = integer(0, at_least=0, doc="Of the split of the normal points.")

    name = "paper"
    title = "the paper's kNN CUSUM"
    bounded = True
    feeds_back = True
    needs_points = True

    def _fit(self, normal: Scored) -> None:
        said = {name: getattr(self, name) for name in KNNEvidence._parameters}
        self.knn_ = KNNEvidence(**said).fit(normal.points)

    def _evidence_step(self) -> Evidence:
        return _Distance(self.knn_)

    def _accumulator(self, threshold: float) -> Cusum:
        return Cusum(threshold=threshold, end=self.end, cooldown=self.cooldown)

    def contributions(self, points: Array) -> Array:
        """Squared distance to the neighbour along each coordinate."""
        return self.knn_.shares(points)

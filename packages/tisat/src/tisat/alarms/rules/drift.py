"""The rule of the program that was released with the paper: the score less a constant, accumulated without end."""

from __future__ import annotations

from tisat.alarms.cusum import COOLDOWN, POLICIES, Cusum
from tisat.alarms.rules.base import AlarmRule, Array, Evidence, Memoryless, Scored
from tisat.utils.parameters import choice, integer, real


class _Less(Memoryless):
    def __init__(self, drift: float) -> None:
        self._drift = drift

    def run(self, scored: Scored, /) -> Array:
        return scored.scores - self._drift


class DriftRule(AlarmRule):
    """The score less a constant drift, accumulated: ``s_t = max(s_{t-1} + score - drift, 0)``.

    The drift is in the unit of the score, and nothing is learned: it suits the detector it was set for, TiSAT with
    ``preset="released"``, whose score is the mean squared error of standardised channels.

    Examples
    --------
    >>> rule = DriftRule(drift=0.5).fit([0.1, 0.2, 0.3])
    >>> rule.accumulate(rule.evidence([0.1, 1.5, 1.5, 0.0]), threshold=1.5).active.tolist()
    [False, False, True, True]

    References
    ----------
    The program of Doshi, Abudalou, Yilmaz as released (TiSAT.ipynb): a drift of 0.4, and an alarm wherever the sum is at or
    above the threshold. It has no nearest neighbours, which are the paper's rule.
    """

    drift: float = real(0.4, at_least=0.0, doc="What is taken from every score, in the score's own unit.")
    end: str = choice("endless", of=POLICIES, doc="What ends an alarm, see tisat.alarms.Cusum.")
    cooldown: int = integer(COOLDOWN, at_least=1, doc="Rows an alarm lasts where end is 'cooldown'.")

    name = "drift"
    title = "the released program's CUSUM"
    feeds_back = True
    has_unit = False

    def _fit(self, normal: Scored) -> None:
        """Nothing is learned."""

    def _evidence_step(self) -> Evidence:
        return _Less(self.drift)

    def _accumulator(self, threshold: float) -> Cusum:
        return Cusum(threshold=threshold, end=self.end, cooldown=self.cooldown)

    @property
    def compression(self) -> tuple[float, float]:
        """One drift is one unit."""
        return 0.0, self.drift or 1.0

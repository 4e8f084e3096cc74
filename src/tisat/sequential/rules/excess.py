"""The score over a reference that moves with the data, summed over a few instants and held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat._validation import check_integer, check_real
from tisat.sequential import _kernels
from tisat.sequential.cusum import WindowSum
from tisat.sequential.rules.base import AlarmRule, Array, Evidence, Scored


class _Excess:
    def __init__(self, rule: ExcessRule) -> None:
        self._rule = rule
        self._past = np.zeros(rule.window + rule.lag)
        self._ordered = np.zeros(rule.window)
        self._count = np.zeros(1, dtype=np.int64)
        self.reference = np.empty(0)  # (T,) of the last call

    def __call__(self, scored: Scored) -> Array:
        rule, scores = self._rule, scored.scores
        evidence = np.empty(len(scores))
        self.reference = np.empty(len(scores))
        _kernels.excess(
            scores, rule.level_, rule.centre_, rule.quantile, rule.clip, rule.lag, min(rule.warm, rule.window),
            self._past, self._ordered, self._count, evidence, self.reference,
        )  # fmt: skip
        return evidence

    def contribution(self, point: Array) -> Array:
        return point**2

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {"past": self._past.copy(), "ordered": self._ordered.copy(), "count": self._count.copy()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self._past[:] = state["past"]
        self._ordered[:] = state["ordered"]
        self._count[:] = state["count"]


class ExcessRule(AlarmRule):
    """Score over a reference that moves with the data, summed over the last instants, then held.

    The reference is the larger of a quantile of the nominal scores and the same quantile of the past ``window`` scores,
    older than ``lag`` instants and each cut off at ``clip`` times the reference of its time, so that an event cannot
    hide the next one for long; the nominal quantile alone until there are ``warm`` such scores. The evidence is what the score has above it, in units of the reference's height over the nominal
    median; it is never negative. A score multiplied by a constant or shifted gives the same evidence.

    Parameters
    ----------
    quantile : float
    window, lag : int
        Instants.
    clip : float
        At least 1.
    warm : int
        Scores a moving quantile needs (``window`` if that is less).
    length : int
        Instants of evidence summed: a finite memory, where a CUSUM's has no end.
    hold : int
        The statistic is the maximum of the sum over this many instants.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rule = ExcessRule(window=200).fit(rng.exponential(size=1000))
    >>> rule.evidence([0.5, 50.0]).round(0).tolist()
    [0.0, 12.0]
    """

    name = "excess"
    title = "excess over a moving reference, summed and held"

    def __init__(
        self,
        *,
        quantile: float = 0.99,
        window: int = 3000,
        lag: int = 20,
        clip: float = 10.0,
        warm: int = 100,
        length: int = 20,
        hold: int = 50,
    ) -> None:
        self.quantile = quantile
        self.window = window
        self.lag = lag
        self.clip = clip
        self.warm = warm
        self.length = length
        self.hold = hold

    def _fit(self, nominal: Scored) -> None:
        check_real(self.quantile, "quantile", "ExcessRule", above=0.0, below=1.0)
        check_integer(self.window, "window", "ExcessRule", minimum=2)
        check_integer(self.lag, "lag", "ExcessRule", minimum=0)
        check_real(self.clip, "clip", "ExcessRule", at_least=1.0)
        check_integer(self.warm, "warm", "ExcessRule", minimum=1)
        check_integer(self.length, "length", "ExcessRule", minimum=2)
        check_integer(self.hold, "hold", "ExcessRule", minimum=1)
        scores = nominal.scores
        self.centre_ = float(np.median(scores))
        # Where rare jumps are all there is, the mean lies above the quantile, which is then the resting value and no unit at all:
        # SMAP A-8 has q99 = 1e-8 and a maximum of 762. The mean is never below such a level (docs/log.md has what it changes).
        self.level_ = max(float(np.quantile(scores, self.quantile)), float(np.mean(scores)))

    def _evidence_step(self) -> Evidence:
        return _Excess(self)

    def _accumulator(self, threshold: float) -> WindowSum:
        return WindowSum(threshold=threshold, length=self.length, hold=self.hold)

    def describe(self) -> dict[str, Any]:
        """The nominal level and median."""
        return {"level": self.level_, "centre": self.centre_}

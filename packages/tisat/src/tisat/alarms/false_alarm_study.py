"""Figure 3: the false-alarm period a rule really has, against the threshold, beside what each method promises.

A rule is fitted and every method calibrated on normal points; alarms are then counted on further normal points that
none of them saw. The ideal data is evidence drawn from the theorem's own model, where its promise must hold. This module
counts; it does not draw, and it does not know detectors.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tisat.alarms import _kernels
from tisat.alarms.budget import Budget
from tisat.alarms.calibration import Calibration, NormalEvidence, period_interval
from tisat.alarms.rules import AlarmRule, PaperRule, make_rule
from tisat.errors import CalibrationWarning
from tisat.utils.types import Array

# by the form of the evidence; a rule without one comes last
METHODS = {
    "power": ("printed", "other-root", "exact", "empirical", "bootstrap", "auto"),
    "weibull": ("weibull", "empirical", "bootstrap", "auto"),
    "log": ("empirical", "bootstrap", "auto"),
    "": ("bootstrap", "auto"),
}


@dataclass(frozen=True)
class Promise:
    """A threshold of one method and its false alarms on held-out data."""

    entity: str
    rule: str
    form: str  # of the evidence; empty where the rule has none
    method: str  # asked for
    used: str  # what auto chose
    target: float  # rows between two false alarms
    threshold: float
    alarms: int  # counted on the held-out points
    time_steps: int
    low: float  # interval of the observed period
    high: float | None
    folds: float | None  # the period the calibration itself reported, from its folds; None: no alarm
    restarts: int | None = None  # alarms counted one by one, where each restarts the sum; above, those in a row are one

    @property
    def observed(self) -> float:
        """Rows between two false alarms on the held-out points; infinite without any."""
        return self.time_steps / self.alarms if self.alarms else math.inf

    @property
    def kept(self) -> bool:
        """No more alarms than the budget allows."""
        return self.alarms <= self.time_steps / self.target


def count_alarms(rule: AlarmRule, evidence: Array, threshold: float) -> int:
    """Alarms raised over evidence ``(T,)``."""
    return int(_kernels.count_runs(rule.accumulate(evidence, threshold=threshold).active))


def count_restarts(rule: AlarmRule, evidence: Array, threshold: float) -> int:
    """Alarms as the theorem counts them: every row at or above the threshold, after each of which the sum starts again."""
    return int(rule.accumulate(evidence, threshold=threshold).active.sum())


def promises(
    normal: Array,
    held_out: Array,
    *,
    targets: Sequence[float],
    rule: str,
    methods: Sequence[str],
    scores: tuple[Array, Array],
    entity: str = "",
    **options: Any,
) -> list[Promise]:
    """Calibrate on ``normal`` points by each method for each target period, and count on ``held_out`` points.

    ``scores`` are those of the normal and of the held-out points.
    """
    alarm_rule = make_rule(rule, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        normal_evidence = NormalEvidence(alarm_rule, normal, scores=scores[0])
        evidence = alarm_rule.evidence(held_out, scores=scores[1])
        return [
            _promise(
                alarm_rule,
                normal_evidence.calibrate(Budget(f"1/{target:g} rows", target), method=method),
                evidence,
                entity=entity,
                form=options.get("form", ""),
            )
            for method in methods
            for target in targets
        ]


def _promise(rule: AlarmRule, calibration: Calibration, evidence: Array, *, entity: str, form: str) -> Promise:
    alarms = count_alarms(rule, evidence, calibration.threshold)
    time_steps = int((~np.isnan(evidence)).sum())
    low, high = period_interval(alarms, time_steps)
    return Promise(
        entity, rule.name, form, calibration.requested, calibration.method, calibration.target, calibration.threshold,
        alarms, time_steps, low, high, calibration.observed,
    )  # fmt: skip


def actual_curve(rule: AlarmRule, evidence: Array, *, points: int = 40) -> tuple[Array, Array]:
    """Thresholds and the periods counted at them over evidence ``(T,)``, where at least one alarm was raised."""
    statistic = rule.accumulate(evidence, threshold=1e300).statistic
    known = statistic[statistic > 0]
    if len(known) == 0:
        return np.empty(0), np.empty(0)
    thresholds = np.unique(np.quantile(known, 1.0 - np.geomspace(1.0, 1.0 / len(known), points)))
    thresholds = thresholds[thresholds > 0]
    alarms = np.array([count_alarms(rule, evidence, float(h)) for h in thresholds])
    seen = alarms > 0
    return thresholds[seen], (~np.isnan(evidence)).sum() / alarms[seen]


def held_out_curve(
    normal: Array, held_out: Array, *, rule: str, scores: tuple[Array, Array], points: int = 25, **options: Any
) -> tuple[Array, Array]:
    """Thresholds and the periods counted at them on ``held_out`` points, of a rule fitted to ``normal`` points."""
    alarm_rule = make_rule(rule, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        NormalEvidence(alarm_rule, normal, scores=scores[0])
        return actual_curve(alarm_rule, alarm_rule.evidence(held_out, scores=scores[1]), points=points)


def ideal_evidence(length: int, *, alpha: float, rng: np.random.Generator) -> Array:
    """Evidence of the theorem's own model: ``lambda v_m d^m`` is unit exponential, less its (1 - alpha) quantile.

    In units of ``lambda v_m``; independent over time.
    """
    return rng.exponential(size=length) + math.log(alpha)


def ideal_rule() -> AlarmRule:
    """The accumulator of the theorem: a CUSUM that starts again after each alarm."""
    return PaperRule(form="weibull", end="restart")

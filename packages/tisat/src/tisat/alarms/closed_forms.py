"""Thresholds by formula and by resampling: for rules with a bound, and for rules an alarm feeds back into.

``printed``, ``other-root``, ``exact``, ``weibull`` and ``empirical`` turn a budget into ``h = -ln(FAR) / omega_0`` and need independent
evidence; the bootstrap resamples normal evidence in blocks and does not. This module does not know budgets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tisat.alarms import _kernels
from tisat.alarms.bootstrap import autocorrelation, flat, period_curve
from tisat.alarms.decay import empirical_decay, exact_decay, paper_decay
from tisat.alarms.rules import AlarmRule, PaperRule
from tisat.errors import ParameterError
from tisat.utils.types import Array

CAUTION = 1.28  # standard errors of the rate that auto stays below the budget: a one-sided 90 % bound
FORMULAS = {
    "power": ("exact", "empirical"),
    "weibull": ("weibull", "empirical"),
    "log": ("empirical",),
}  # auto's, by form


def independence(segments: Sequence[Array]) -> tuple[float, float]:
    """p-value of Ljung and Box's test on the ranks of evidence, and the rank correlation of successive rows."""
    from scipy.special import gammaincc

    evidence = np.concatenate([flat(segment) for segment in segments])
    evidence = evidence[~np.isnan(evidence)]
    n = len(evidence)
    lags = max(1, min(10, n // 5))
    if n < 8:
        return 1.0, 0.0
    rho = autocorrelation(evidence, lags=lags)
    q = n * (n + 2.0) * float(np.sum(rho**2 / (n - np.arange(1, lags + 1))))
    return float(gammaincc(lags / 2.0, q / 2.0)), float(rho[0])


def count_alarms(rule: AlarmRule, segments: Sequence[Array], threshold: float) -> int:
    """Alarms raised over stretches of evidence."""
    return sum(_kernels.count_runs(rule.accumulate(segment, threshold=threshold).active) for segment in segments)


def by_formula(rule: PaperRule, method: str, segments: Sequence[Array], target: float) -> tuple[float, list[str]]:
    """Threshold and notes of a method with a formula."""
    knn = rule.knn_
    notes: list[str] = []
    if method in ("printed", "other-root"):
        largest, printed = max(knn.largest_, 1e-300), method == "printed"
        decay, notes = paper_decay(log_ball=knn.log_ball, largest=largest, printed=printed)
        ratio = math.exp(min(knn.log_ball, 600.0)) * knn.power_mean_  # v_m mean(d^m): 1 where the intensity is 1
        if not 0.5 < ratio < 2.0:
            notes.append(
                f"The theorem takes normal points of intensity 1; here v_m mean(d^m) = {ratio:.3g} instead of 1."
            )
    elif method == "exact":
        q = knn.k / knn.power_mean_ if knn.power_mean_ > 0 else math.inf
        decay = exact_decay(q=q, k=knn.k) * q
    elif method == "weibull":
        decay = exact_decay(q=-math.log(knn.alpha))
    else:
        decay = empirical_decay(np.concatenate(segments))
    if math.isnan(decay):
        notes.append(
            f"Normal evidence does not drift downwards, so {method!r} has no solution; a smaller alpha would lower it."
        )
        return float("nan"), notes
    if math.isinf(decay):
        top = max(float(np.nanmax(np.concatenate(segments))), 0.0)
        return top + 1.0, notes  # evidence never rises: one unit above it, and no hair trigger
    return max(math.log(target) / decay, 1e-300), notes


def by_bootstrap(rule: AlarmRule, segments: Sequence[Array], target: float, rng: np.random.Generator) -> float:
    """The threshold by resampling, of any rule."""
    threshold = period_curve(rule, segments, rng=rng).threshold(target)
    return max(threshold, 1e-12) if rule.bounded else threshold


def raise_to_data(rule: AlarmRule, segments: Sequence[Array], threshold: float, target: float) -> float:
    """The threshold, or the lowest above it that keeps the budget on the normal evidence itself."""
    allowed = int(sum(map(len, segments)) / target)
    if count_alarms(rule, segments, threshold) <= allowed:
        return threshold
    statistics = [rule.accumulate(segment, threshold=1e300).statistic for segment in segments]
    levels = np.unique(np.concatenate([s[~np.isnan(s)] for s in statistics]))
    levels = np.append(levels[levels >= threshold], np.nextafter(levels[-1], np.inf) if len(levels) else threshold)
    low, high = 0, len(levels) - 1  # the highest is above everything ever reached: no alarm
    while low < high:
        middle = (low + high) // 2
        if count_alarms(rule, segments, float(np.nextafter(levels[middle], np.inf))) <= allowed:
            high = middle
        else:
            low = middle + 1
    return float(np.nextafter(levels[low], np.inf))


def cautious(target: float, time_steps: int) -> float:
    """Lengthen the target period by the uncertainty of a rate from few normal rows.

    ``time_steps / target`` alarms are expected in the normal data; their rate is known to one over the square root of that.

    Examples
    --------
    >>> round(cautious(1000.0, 100_000)), round(cautious(1000.0, 3000)), round(cautious(1000.0, 100))
    (1128, 1739, 2280)
    """
    return target * (1.0 + CAUTION / math.sqrt(max(time_steps / target, 1.0)))


def find(
    rule: AlarmRule, method: str, segments: Sequence[Array], target: float, rng: np.random.Generator
) -> tuple[float, list[str]]:
    """Threshold and notes of any of these methods."""
    if method == "bootstrap":
        return by_bootstrap(rule, segments, target, rng), []
    assert isinstance(rule, PaperRule), "methods with a formula are for rules with a bound"
    return by_formula(rule, method, segments, target)


def check_method(rule: AlarmRule, method: str) -> None:
    """Refuse a method that does not apply to a rule."""
    if method in ("auto", "bootstrap"):
        return
    if method == "episodes":
        if rule.feeds_back:
            raise ParameterError(
                f"The method 'episodes' must be used with a rule whose statistic no alarm changes. Got {rule.name!r} instead; use 'bootstrap'."
            )
        return
    if not isinstance(rule, PaperRule):
        raise ParameterError(
            f"The method {method!r} must be used with the 'paper' rule, which has a bound. Got {rule.name!r} instead; use 'episodes'."
        )
    form = {"printed": "power", "other-root": "power", "exact": "power", "weibull": "weibull"}.get(method, rule.form)
    if rule.form != form:
        raise ParameterError(
            f"The method {method!r} must be used with evidence of form {form!r}. Got {rule.form!r} instead."
        )

"""A threshold from a false-alarm budget, with what it was worth on nominal data it had not seen.

Five methods. ``paper``, ``exact``, ``weibull`` and ``empirical`` turn a budget into ``h = -ln(FAR) / omega_0`` and need
independent evidence; ``bootstrap`` resamples nominal evidence in blocks, works for every rule, and does not. ``auto``
looks at the evidence and chooses, then raises the threshold wherever nominal data already contradicts it.

Nominal points are cut into contiguous folds. The evidence of a fold comes from a rule fitted on the others, so that no
point meets itself or its neighbours in time; the realised period of a fold is counted at the threshold found on the
others. This module does not know detectors, labels or series.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat._random import generator
from tisat._validation import check_choice
from tisat.errors import CalibrationWarning, InputError, ParameterError
from tisat.sequential import _kernels
from tisat.sequential.bootstrap import autocorrelation, period_curve
from tisat.sequential.budget import Budget
from tisat.sequential.decay import empirical_decay, exact_decay, paper_decay
from tisat.sequential.rules import AlarmRule, PaperRule, Scored

METHODS = ("auto", "paper", "exact", "weibull", "empirical", "bootstrap")
FOLDS = 5
FEWEST_IN_FOLD = 20
CONFIDENCE = 0.95  # of the interval of the realised period
SUPPORT = 3.0  # no alarm in 3 periods rules out, at 95 %, that the period is shorter (the rule of three)
CAUTION = 1.28  # standard errors of the rate that auto stays below the budget: a one-sided 90 % bound
INDEPENDENCE_LEVEL = 0.01  # of the test; with many points the correlation must also be of some size:
INDEPENDENCE_SIZE = 0.1
FORMULAS = {
    "power": ("exact", "empirical"),
    "weibull": ("weibull", "empirical"),
    "log": ("empirical",),
}  # auto's, by form


@dataclass(frozen=True)
class Calibration:
    """A threshold, the budget behind it, and how the budget was kept on held-out nominal data."""

    rule: str  # paper, threshold or excess
    budget: str  # as the user said it
    target: float  # instants between two false alarms, asked for
    threshold: float  # h
    method: str  # how it was found
    requested: str  # the method asked for
    realised: float | None  # instants between two false alarms on held-out nominal data; None: no alarm there
    low: float  # confidence interval of the realised period
    high: float | None  # None: unbounded
    alarms: int  # false alarms counted there
    instants: int  # instants counted over
    active: float  # share of those instants with the alarm on
    independence: float  # p-value of the independence test of nominal evidence
    correlation: float  # rank correlation of successive evidence
    supported: float  # the longest period so many nominal instants can vouch for
    notes: tuple[str, ...] = ()  # assumptions that fail, in words

    @property
    def kept(self) -> bool:
        """Whether no more false alarms were counted than the budget allows."""
        return self.alarms <= self.instants / self.target

    def __str__(self) -> str:
        realised = "no alarm" if self.realised is None else f"{self.realised:.0f}"
        high = "inf" if self.high is None else f"{self.high:.0f}"
        return (
            f"{self.rule} rule, h = {self.threshold:.4g} by {self.method}: false-alarm period target {self.target:.0f} instants, "
            f"realised {realised} (95 % interval {self.low:.0f} to {high}; {self.alarms} in {self.instants} held-out instants)"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, as kept in artefacts."""
        return {**asdict(self), "notes": list(self.notes)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Calibration:
        """Back from :meth:`to_json`."""
        return cls(**{**document, "notes": tuple(document["notes"])})


def period_interval(alarms: int, instants: int) -> tuple[float, float | None]:
    """Exact (Garwood) 95 % interval of the period between events of a Poisson process: ``alarms`` in ``instants``.

    Examples
    --------
    >>> low, high = period_interval(0, 3000)
    >>> round(low), high
    (813, None)
    """
    from scipy.stats import chi2

    tail = (1.0 - CONFIDENCE) / 2.0
    most = 0.5 * float(chi2.ppf(1.0 - tail, 2 * alarms + 2))
    least = 0.5 * float(chi2.ppf(tail, 2 * alarms)) if alarms else 0.0
    return instants / most, (instants / least if least > 0 else None)


def independence(segments: Sequence[npt.NDArray[np.float64]]) -> tuple[float, float]:
    """p-value of Ljung and Box's test on the ranks of evidence, and the rank correlation of successive instants."""
    from scipy.stats import chi2

    evidence = np.concatenate([segment[~np.isnan(segment)] for segment in segments])
    n = len(evidence)
    lags = max(1, min(10, n // 5))
    if n < 8:
        return 1.0, 0.0
    rho = autocorrelation(evidence, lags=lags)
    q = n * (n + 2.0) * float(np.sum(rho**2 / (n - np.arange(1, lags + 1))))
    return float(chi2.sf(q, lags)), float(rho[0])


class _Fold:
    """One contiguous stretch of nominal data: a rule fitted on the rest, and its evidence here."""

    def __init__(self, rule: AlarmRule, nominal: Scored, here: slice) -> None:
        rest = np.ones(len(nominal), dtype=np.bool_)
        rest[here] = False
        self.rule = copy.deepcopy(rule)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # the fit on all points says it once
            self.rule.fit(nominal.rows(rest))
        self.evidence = self.rule.evidence(nominal.rows(here))


def _folds(rule: AlarmRule, nominal: Scored) -> list[_Fold]:
    count = max(2, min(FOLDS, len(nominal) // FEWEST_IN_FOLD))
    edges = np.linspace(0, len(nominal), count + 1).round().astype(int)
    return [_Fold(rule, nominal, slice(a, b)) for a, b in pairwise(edges)]


def _count(rule: AlarmRule, segments: Sequence[npt.NDArray[np.float64]], threshold: float) -> int:
    return sum(_kernels.count_raised(rule.accumulate(segment, threshold=threshold).active) for segment in segments)


def _by_formula(
    rule: PaperRule, method: str, segments: Sequence[npt.NDArray[np.float64]], target: float
) -> tuple[float, list[str]]:
    """Threshold and notes of a method with a formula."""
    knn = rule.knn_
    notes: list[str] = []
    if method == "paper":
        decay, notes = paper_decay(log_ball=knn.log_ball, largest=max(knn.largest_, 1e-300))
        ratio = math.exp(min(knn.log_ball, 600.0)) * knn.power_mean_  # v_m mean(d^m): 1 where the intensity is 1
        if not 0.5 < ratio < 2.0:
            notes.append(
                f"The theorem takes nominal points of intensity 1; here v_m mean(d^m) = {ratio:.3g} instead of 1."
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
            f"Nominal evidence does not drift downwards, so {method!r} has no solution; a smaller alpha would lower it."
        )
        return float("nan"), notes
    if math.isinf(decay):
        top = max(float(np.nanmax(np.concatenate(segments))), 0.0)
        return top + 1.0, notes  # evidence never rises: one unit above it, and no hair trigger
    return max(math.log(target) / decay, 1e-300), notes


def _by_bootstrap(
    rule: AlarmRule, segments: Sequence[npt.NDArray[np.float64]], target: float, rng: np.random.Generator
) -> float:
    threshold = period_curve(rule, segments, rng=rng).threshold(target)
    return max(threshold, 1e-12) if rule.bounded else threshold


def _find(
    rule: AlarmRule, method: str, segments: Sequence[npt.NDArray[np.float64]], target: float, rng: np.random.Generator
) -> tuple[float, list[str]]:
    if method == "bootstrap":
        return _by_bootstrap(rule, segments, target, rng), []
    assert isinstance(rule, PaperRule), "methods with a formula are for rules with a bound"
    return _by_formula(rule, method, segments, target)


def _raise_to_data(
    rule: AlarmRule, segments: Sequence[npt.NDArray[np.float64]], threshold: float, target: float
) -> float:
    """The threshold, or the lowest above it that keeps the budget on the nominal evidence itself."""
    allowed = int(sum(map(len, segments)) / target)
    if _count(rule, segments, threshold) <= allowed:
        return threshold
    statistics = [rule.accumulate(segment, threshold=1e300).statistic for segment in segments]
    levels = np.unique(np.concatenate([s[~np.isnan(s)] for s in statistics]))
    levels = np.append(levels[levels > threshold], np.nextafter(levels[-1], np.inf) if len(levels) else threshold)
    low, high = 0, len(levels) - 1  # the highest is above everything ever reached: no alarm
    while low < high:
        middle = (low + high) // 2
        if _count(rule, segments, float(np.nextafter(levels[middle], np.inf))) <= allowed:
            high = middle
        else:
            low = middle + 1
    return float(np.nextafter(levels[low], np.inf))


def cautious(target: float, instants: int) -> float:
    """The period to aim at so that the target is kept although so few nominal instants tell the rate only roughly.

    ``instants / target`` alarms are expected in the nominal data; their rate is known to one over the square root of that.

    Examples
    --------
    >>> round(cautious(1000.0, 100_000)), round(cautious(1000.0, 3000)), round(cautious(1000.0, 100))
    (1128, 1739, 2280)
    """
    return target * (1.0 + CAUTION / math.sqrt(max(instants / target, 1.0)))


def _check_method(rule: AlarmRule, method: str) -> None:
    if method in ("auto", "bootstrap"):
        return
    if not isinstance(rule, PaperRule):
        raise ParameterError(
            f"The method {method!r} must be used with the 'paper' rule, which has a bound. Got {rule.name!r} instead; use 'bootstrap'."
        )
    form = {"paper": "power", "exact": "power", "weibull": "weibull"}.get(method, rule.form)
    if rule.form != form:
        raise ParameterError(
            f"The method {method!r} must be used with evidence of form {form!r}. Got {rule.form!r} instead."
        )


def _realised(
    folds: Sequence[_Fold], method: str, target: float, *, careful: bool, rng: np.random.Generator
) -> tuple[int, int, float]:
    """Alarms, instants and the share of active ones, each fold at the threshold found on the others."""
    alarms = instants = active = 0
    for fold in folds:
        others = [other.evidence for other in folds if other is not fold]
        aim = cautious(target, sum(map(len, others))) if careful else target
        threshold, _ = _find(fold.rule, method, others, aim, rng)
        if not math.isfinite(threshold):
            threshold = _by_bootstrap(fold.rule, others, aim, rng)
        if careful:
            threshold = _raise_to_data(fold.rule, others, threshold, aim)
        trace = fold.rule.accumulate(fold.evidence, threshold=threshold)
        alarms += _kernels.count_raised(trace.active)
        active += int(trace.active.sum())
        instants += len(fold.evidence)
    return alarms, instants, active / instants


class NominalEvidence:
    """A rule fitted to nominal points, and the evidence of each fold by a rule fitted to the others.

    What every budget and every method starts from; make one and :meth:`calibrate` as often as needed.

    Parameters
    ----------
    rule : AlarmRule
        Fitted here, in place, on all points.
    points, scores
        As in :meth:`AlarmRule.fit`.
    """

    def __init__(self, rule: AlarmRule, points: npt.ArrayLike | Scored, *, scores: npt.ArrayLike | None = None) -> None:
        nominal = points if isinstance(points, Scored) else Scored.of(points, scores, whose="calibrate")
        nominal = nominal.rows(nominal.known)
        if len(nominal) < 8:
            raise InputError(f"The nominal points given to calibrate must be at least 8. Got {len(nominal)} instead.")
        self.rule = rule.fit(nominal)
        self.length = len(nominal)
        self.folds = _folds(rule, nominal)
        self.segments = [fold.evidence for fold in self.folds]
        self.p_value, self.correlation = independence(self.segments)

    @property
    def dependent(self) -> bool:
        """Whether successive evidence is correlated, beyond doubt and by a size that matters."""
        return self.p_value < INDEPENDENCE_LEVEL and abs(self.correlation) > INDEPENDENCE_SIZE

    def calibrate(self, budget: Budget | float | str, *, method: str = "auto", random_state: int = 0) -> Calibration:
        """The threshold that keeps ``budget``; as :func:`calibrate`."""
        check_choice(method, "method", "calibrate", choices=METHODS)
        wanted = Budget.parse(budget)
        _check_method(self.rule, method)
        rng = generator(random_state, whose="calibrate")
        careful = method == "auto"
        aim = cautious(wanted.instants, self.length) if careful else wanted.instants
        chosen = self._choose(aim) if careful else method
        threshold, notes = _find(self.rule, chosen, self.segments, aim, rng)
        if not math.isfinite(threshold):
            chosen = "bootstrap"
            threshold = _by_bootstrap(self.rule, self.segments, aim, rng)
            notes.append("The bootstrap is used instead.")
        if careful:
            threshold = _raise_to_data(self.rule, self.segments, threshold, aim)
        notes += self._doubts(wanted, chosen)
        alarms, instants, active = _realised(self.folds, chosen, wanted.instants, careful=careful, rng=rng)
        low, high = period_interval(alarms, instants)
        return Calibration(
            rule=self.rule.name,
            budget=str(wanted),
            target=wanted.instants,
            threshold=threshold,
            method=chosen,
            requested=method,
            realised=instants / alarms if alarms else None,
            low=low,
            high=high,
            alarms=alarms,
            instants=instants,
            active=active,
            independence=self.p_value,
            correlation=self.correlation,
            supported=self.length / SUPPORT,
            notes=tuple(notes),
        )

    def _choose(self, target: float) -> str:
        """Dependent evidence or a rule without a bound: bootstrap; otherwise the most careful of the formulas that apply."""
        if self.dependent or not isinstance(self.rule, PaperRule):
            return "bootstrap"
        formulas = FORMULAS[self.rule.form]
        found = {name: _by_formula(self.rule, name, self.segments, target)[0] for name in formulas}
        found = {name: threshold for name, threshold in found.items() if math.isfinite(threshold)}
        return max(found, key=lambda name: found[name]) if found else "bootstrap"

    def _doubts(self, wanted: Budget, chosen: str) -> list[str]:
        notes = []
        if chosen != "bootstrap" and self.dependent:
            notes.append(
                f"Nominal evidence is not independent over time (rank correlation {self.correlation:.2f}), "
                f"which {chosen!r} assumes; method='bootstrap' does not."
            )
        supported = self.length / SUPPORT
        if wanted.instants > supported:
            notes.append(
                f"{self.length} nominal instants cannot vouch for {wanted.say(wanted.instants)}; the rarest budget they "
                f"can vouch for is {wanted.say(supported)}. The threshold is extrapolated."
            )
        return notes


def calibrate(
    rule: AlarmRule,
    points: npt.ArrayLike | Scored,
    budget: Budget | float | str,
    *,
    scores: npt.ArrayLike | None = None,
    method: str = "auto",
    random_state: int = 0,
) -> Calibration:
    """Fit ``rule`` to nominal points and find the threshold that keeps ``budget``.

    Parameters
    ----------
    rule : AlarmRule
        Fitted here, in place, on all points.
    points : Scored, or array of shape (N, m) or (N,)
        Nominal points in time order.
    budget : Budget, str or float
    scores : array of shape (N,), optional
        As in :meth:`AlarmRule.fit`.
    method : str
        ``auto``, ``paper``, ``exact``, ``weibull``, ``empirical`` or ``bootstrap``.
    random_state : int
        Seed of the resampling.

    Warns
    -----
    CalibrationWarning
        Where an assumption fails or the nominal data is too short for the budget.

    Examples
    --------
    >>> from tisat.sequential import ThresholdRule
    >>> nominal = np.random.default_rng(0).normal(size=20_000)
    >>> calibration = calibrate(ThresholdRule(), nominal, "1/1000 instants")
    >>> bool(2.9 < calibration.threshold < 3.5), calibration.kept
    (True, True)
    """
    check_choice(method, "method", "calibrate", choices=METHODS)
    _check_method(rule, method)
    budget = Budget.parse(budget)
    calibration = NominalEvidence(rule, points, scores=scores).calibrate(
        budget, method=method, random_state=random_state
    )
    for note in calibration.notes:
        warnings.warn(note, CalibrationWarning, stacklevel=2)
    return calibration

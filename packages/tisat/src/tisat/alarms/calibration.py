"""A threshold from a false-alarm budget, with what it was worth on normal data it had not seen.

``episodes`` counts alarms of normal data at every level and extrapolates with care (:mod:`tisat.alarms.episodes`); it is
what ``auto`` means for every rule whose statistic no alarm changes. The others are the paper's: four formulas that need
independent evidence, and a bootstrap (:mod:`tisat.alarms.closed_forms`); for the paper's rule ``auto`` chooses among them.

Normal points are cut into contiguous folds. The evidence of a fold comes from a rule fitted on the others, so that no
point meets itself or its neighbours in time; the observed period of a fold is counted at the threshold found on the
others. This module does not know detectors, labels or series.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tisat.alarms import _kernels
from tisat.alarms import closed_forms as formulas
from tisat.alarms.budget import Budget
from tisat.alarms.control import ACTIVE
from tisat.alarms.episodes import SUPPORT, Episodes
from tisat.alarms.result import Calibration as Calibration
from tisat.alarms.result import from_episodes, with_advice
from tisat.alarms.result import period_interval as period_interval
from tisat.alarms.rules import AlarmRule, PaperRule, Scored
from tisat.errors import CalibrationWarning, InputError
from tisat.utils.callers import caller_level
from tisat.utils.random import generator
from tisat.utils.types import Array, Integers
from tisat.utils.validation import check_choice

METHODS = ("auto", "episodes", "printed", "other-root", "exact", "weibull", "empirical", "bootstrap")
FOLDS = 5
FEWEST_IN_FOLD = 20
INDEPENDENCE_LEVEL = 0.01  # of the test; with many points the correlation must also be of some size:
INDEPENDENCE_SIZE = 0.1
NEVER = 1e300  # a threshold nothing reaches


def with_breaks(normal: Scored, breaks: Sequence[int] | Integers) -> Scored:
    """Insert an unknown row before each of ``breaks``, so that no sum crosses a join."""
    places = np.unique([b for b in breaks if 0 < b < len(normal)]).astype(np.int64)
    if len(places) == 0:
        return normal
    points, scores, views = (np.insert(part, places, np.nan, axis=0) for part in normal[:3])
    return Scored(points, scores, views, normal.momentary)


class _Fold:
    """One contiguous stretch of normal data: a rule fitted on the rest, and its evidence here."""

    def __init__(self, rule: AlarmRule, normal: Scored, here: slice) -> None:
        rest = np.ones(len(normal), dtype=np.bool_)
        rest[here] = False
        self.rule = copy.deepcopy(rule)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # the fit on all points says it once
            self.rule.fit(normal.rows(rest))
        self.evidence = self.rule.evidence(normal.rows(here))
        self.length = int(normal.known[here].sum())


def _folds(rule: AlarmRule, normal: Scored) -> list[_Fold]:
    count = max(2, min(FOLDS, len(normal) // FEWEST_IN_FOLD))
    edges = np.linspace(0, len(normal), count + 1).round().astype(int)
    return [_Fold(rule, normal, slice(a, b)) for a, b in pairwise(edges)]


def _observed(
    folds: Sequence[_Fold], method: str, target: float, *, careful: bool, rng: np.random.Generator
) -> tuple[int, int, float]:
    """Alarms, rows and the share of active ones, each fold at the threshold found on the others."""
    alarms = time_steps = active = 0
    for fold in folds:
        other_folds = [other.evidence for other in folds if other is not fold]
        aim = formulas.cautious(target, sum(map(len, other_folds))) if careful else target
        threshold, _ = formulas.find(fold.rule, method, other_folds, aim, rng)
        if not math.isfinite(threshold):
            threshold = formulas.by_bootstrap(fold.rule, other_folds, aim, rng)
        if careful:
            threshold = formulas.raise_to_data(fold.rule, other_folds, threshold, aim)
        trace = fold.rule.accumulate(fold.evidence, threshold=threshold)
        alarms += _kernels.count_runs(trace.active)
        active += int(trace.active.sum())
        time_steps += fold.length
    return alarms, time_steps, active / time_steps


class NormalEvidence:
    """A rule fitted to normal points, and the evidence of each fold by a rule fitted to the others.

    What every budget and every method starts from; make one and :meth:`calibrate` as often as needed.

    Parameters
    ----------
    rule : AlarmRule
        Fitted here, in place, on all points.
    points, scores
        As in :meth:`AlarmRule.fit`.
    breaks : sequence of int
        Rows that do not follow from the one before: what is summed there begins again.
    crossfit : int
        Points were made by so many models, each fitted without a fold; 0: by the one in use.
    """

    def __init__(
        self,
        rule: AlarmRule,
        points: npt.ArrayLike | Scored,
        *,
        scores: npt.ArrayLike | None = None,
        breaks: Sequence[int] | Integers = (),
        crossfit: int = 0,
    ) -> None:
        normal = points if isinstance(points, Scored) else Scored.of(points, scores, whose="calibrate")
        self.length = int(normal.known.sum())
        if self.length < 8:
            raise InputError(
                f"A threshold must be found from at least 8 normal scores. Got {self.length} instead: give more normal rows."
            )
        self.rule = rule.fit(normal)
        self.views = normal.views.shape[1]
        self.crossfit = crossfit
        self.folds = _folds(rule, with_breaks(normal, breaks))
        self.segments = [fold.evidence for fold in self.folds]
        self.p_value, self.correlation = formulas.independence(self.segments)

    @property
    def dependent(self) -> bool:
        """Whether successive evidence is correlated, beyond doubt and by a size that matters."""
        return self.p_value < INDEPENDENCE_LEVEL and abs(self.correlation) > INDEPENDENCE_SIZE

    def episodes(self) -> Episodes:
        """How often the statistic rises above each level, fold by fold, on a logarithmic scale."""
        common, floor = self.rule.tail(self.views)
        return Episodes.of(self._statistics(), common=common, floor=floor)

    def _statistics(self) -> list[Array]:
        traces = (fold.rule.accumulate(fold.evidence, threshold=NEVER) for fold in self.folds)
        return [self.rule.compressed(trace.statistic) for trace in traces]

    def calm(self) -> float:
        """The level that a share :data:`~tisat.alarms.control.ACTIVE` of the rows lie above."""
        together = np.concatenate(self._statistics())
        return float(np.quantile(together[~np.isnan(together)], 1.0 - ACTIVE))

    def calibrate(
        self,
        budget: Budget | float | str,
        *,
        method: str = "auto",
        control: bool = False,
        random_state: int = 0,
    ) -> Calibration:
        """The threshold that keeps ``budget``; as :func:`calibrate`."""
        check_choice(method, "method", "calibrate", choices=METHODS)
        target = Budget.parse(budget)
        formulas.check_method(self.rule, method)
        rng = generator(random_state, whose="calibrate")
        draft = Calibration(
            rule=self.rule.name, budget=str(target), target=target.time_steps, threshold=math.nan, method=method,
            requested=method, observed=None, low=0.0, high=None, alarms=0, time_steps=self.length, active=None,
            independence=self.p_value, correlation=self.correlation, supported=self.length / SUPPORT, largest=0.0,
            period=target.period, folds=self.crossfit, compression=self.rule.compression,
        )  # fmt: skip
        if method == "episodes" or (method == "auto" and not self.rule.feeds_back):
            if control and self.rule.controllable:
                draft = replace(draft, controlled=True, calm=self.calm())
            return from_episodes(draft, self.episodes())
        return self._by_other(draft, target, rng)

    def _by_other(self, draft: Calibration, wanted: Budget, rng: np.random.Generator) -> Calibration:
        careful = draft.requested == "auto"
        period = wanted.time_steps
        aim = formulas.cautious(period, self.length) if careful else period
        own_threshold = self._choose(aim) if careful else draft.requested
        threshold, notes = formulas.find(self.rule, own_threshold, self.segments, aim, rng)
        if not math.isfinite(threshold):
            own_threshold = "bootstrap"
            threshold = formulas.by_bootstrap(self.rule, self.segments, aim, rng)
            notes.append("The bootstrap is used instead.")
        if careful:
            threshold = formulas.raise_to_data(self.rule, self.segments, threshold, aim)
        notes += self._doubts(wanted, own_threshold)
        alarms, time_steps, active = _observed(self.folds, own_threshold, period, careful=careful, rng=rng)
        low, high = period_interval(alarms, time_steps, folds=self.crossfit)
        reached = [self.rule.accumulate(segment, threshold=threshold).statistic for segment in self.segments]
        calibration = replace(
            draft, threshold=threshold, method=own_threshold, observed=time_steps / alarms if alarms else None, low=low, high=high,
            alarms=alarms, time_steps=time_steps, active=active, largest=float(np.nanmax(np.concatenate(reached))),
            compression=None, notes=tuple(notes),
        )  # fmt: skip
        return with_advice(calibration)

    def _choose(self, target: float) -> str:
        """Dependent evidence or a rule without a bound: bootstrap.

        Otherwise the most careful of the formulas that apply.
        """
        if self.dependent or not isinstance(self.rule, PaperRule):
            return "bootstrap"
        thresholds = {
            name: formulas.by_formula(self.rule, name, self.segments, target)[0]
            for name in formulas.FORMULAS[self.rule.form]
        }
        thresholds = {name: threshold for name, threshold in thresholds.items() if math.isfinite(threshold)}
        return max(thresholds, key=lambda name: thresholds[name]) if thresholds else "bootstrap"

    def _doubts(self, wanted: Budget, chosen: str) -> list[str]:
        notes = []
        if chosen != "bootstrap" and self.dependent:
            notes.append(
                f"Normal evidence is not independent over time (rank correlation {self.correlation:.2f}), "
                f"which {chosen!r} assumes; method='bootstrap' does not."
            )
        supported = self.length / SUPPORT
        if wanted.time_steps > supported:
            notes.append(
                f"{self.length} normal rows cannot support {wanted.say(wanted.time_steps)}; the rarest budget they "
                f"can support is {wanted.say(supported)}. The threshold is extrapolated."
            )
        return notes


def calibrate(
    rule: AlarmRule,
    points: npt.ArrayLike | Scored,
    budget: Budget | float | str,
    *,
    scores: npt.ArrayLike | None = None,
    breaks: Sequence[int] | Integers = (),
    crossfit: int = 0,
    method: str = "auto",
    control: bool = False,
    random_state: int = 0,
) -> Calibration:
    """Fit ``rule`` to normal points and find the threshold that keeps ``budget``.

    Parameters
    ----------
    rule : AlarmRule
        Fitted here, in place, on all points.
    points : Scored, or array of shape (N, m) or (N,)
        Normal points in time order.
    budget : Budget, str or float
        False alarms accepted.
    scores : array of shape (N,), optional
        As in :meth:`AlarmRule.fit`.
    breaks : sequence of int
        Rows that do not follow from the one before.
    crossfit : int
        Points were made by so many models, each fitted without a fold; 0: by the one in use.
    method : str
        ``auto``, ``episodes``, ``paper``, ``exact``, ``weibull``, ``empirical`` or ``bootstrap``.
    control : bool
        The threshold found here is where it starts; from there it follows the alarms (:mod:`tisat.alarms.control`).
    random_state : int
        Seed of the resampling.

    Warns
    -----
    CalibrationWarning
        Where an assumption fails or the normal data is too short for the budget.

    Returns
    -------
    Calibration
        The threshold with what the data supports and what was observed.

    Examples
    --------
    >>> from tisat.alarms import ThresholdRule
    >>> normal = np.random.default_rng(0).normal(size=20_000)
    >>> calibration = calibrate(ThresholdRule(), normal, "1/1000 rows")
    >>> bool(2.9 < calibration.threshold < 3.5), calibration.kept
    (True, True)
    """
    check_choice(method, "method", "calibrate", choices=METHODS)
    formulas.check_method(rule, method)
    budget = Budget.parse(budget)
    calibration = NormalEvidence(rule, points, scores=scores, breaks=breaks, crossfit=crossfit).calibrate(
        budget, method=method, control=control, random_state=random_state
    )
    for note in calibration.notes:
        warnings.warn(note, CalibrationWarning, stacklevel=caller_level())
    return calibration

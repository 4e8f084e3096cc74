"""The alarm rules, one interface: nominal points in, then evidence, a statistic and alarms, offline and online alike.

* ``paper``: the distance of the point to nominal points, accumulated without end (a kNN CUSUM);
* ``threshold``: the plain score;
* ``excess``: the score over a reference that moves with the data, summed over a few instants and held.

A rule is two steps. The first turns points and scores into **evidence**; it is learned from nominal data. The second
accumulates evidence into a **statistic** and switches the alarm on and off at a threshold; it has nothing to learn,
which is why any threshold can be tried on the same evidence. :class:`RuleRun` runs both steps, a row or an array at a
time, from the same compiled loops. Where the threshold comes from is the business of :mod:`tisat.sequential.calibration`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tisat._validation import check_choice, check_integer, check_real
from tisat.errors import InputError, ParameterError
from tisat.sequential import _kernels
from tisat.sequential.cusum import COOLDOWN, POLICIES, Cusum, Trace, WindowSum
from tisat.sequential.evidence import MAX_POINTS, KNNEvidence

Array: TypeAlias = npt.NDArray[np.float64]


class Evidence(Protocol):
    """The first step of a rule at work on one entity."""

    def __call__(self, points: Array, scores: Array) -> Array:
        """Evidence ``(T,)``, going on from where the last call ended."""

    def contribution(self, point: Array) -> Array:
        """What each coordinate ``(m,)`` of the last point added to its evidence, up to a factor."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to go on after a restart."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""


class _Memoryless:
    def contribution(self, point: Array) -> Array:
        return point**2

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        return


class _Distance(_Memoryless):
    def __init__(self, evidence: KNNEvidence) -> None:
        self._evidence = evidence

    def __call__(self, points: Array, scores: Array) -> Array:
        evidence, self._where = self._evidence.search(points)
        return evidence

    def contribution(self, point: Array) -> Array:
        return self._evidence.share(point, int(self._where[-1]))


class _Score(_Memoryless):
    def __call__(self, points: Array, scores: Array) -> Array:
        return scores


class _Excess:
    def __init__(self, rule: ExcessRule) -> None:
        self._rule = rule
        self._past = np.zeros(rule.window + rule.lag)
        self._ordered = np.zeros(rule.window)
        self._count = np.zeros(1, dtype=np.int64)
        self.reference = np.empty(0)  # (T,) of the last call

    def __call__(self, points: Array, scores: Array) -> Array:
        rule = self._rule
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


class RuleRun:
    """A rule at work on one entity at one threshold: push rows or arrays, the answers are the same.

    Made by :meth:`AlarmRule.start`.
    """

    def __init__(self, rule: AlarmRule, threshold: float) -> None:
        self._evidence = rule._evidence_step()
        self._accumulator = rule._accumulator(threshold)
        self._trace = Trace.empty(1)

    def update(self, point: Array, score: float) -> tuple[float, float, bool, int]:
        """Evidence, statistic, whether the alarm is on, and the onset estimate after one more point ``(m,)``."""
        evidence = self._evidence(point[None], np.array([score]))
        trace = self._trace
        self._accumulator.extend(evidence, trace)
        return float(evidence[0]), float(trace.statistic[0]), bool(trace.active[0]), int(trace.onset[0])

    def contribution(self, point: Array) -> Array:
        """What each coordinate ``(m,)`` of the point just pushed added to its evidence, up to a factor."""
        return self._evidence.contribution(point)

    def extend(self, points: Array, scores: Array) -> tuple[Array, Trace]:
        """Evidence ``(T,)`` and the trace of many points ``(T, m)``, going on from where the last call ended."""
        evidence = self._evidence(np.ascontiguousarray(points), np.ascontiguousarray(scores))
        trace = Trace.empty(len(evidence))
        self._accumulator.extend(evidence, trace)
        return evidence, trace

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to go on after a restart."""
        steps = (("evidence", self._evidence.state()), ("accumulator", self._accumulator.state()))
        return {f"{step}.{name}": array for step, arrays in steps for name, array in arrays.items()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        for step, target in (("evidence.", self._evidence), ("accumulator.", self._accumulator)):
            target.restore({name.removeprefix(step): array for name, array in state.items() if name.startswith(step)})


class AlarmRule(ABC):
    """Base of the rules: ``fit`` on nominal points, then ``evidence``, ``accumulate`` or ``start``."""

    name: ClassVar[str]
    positive: ClassVar[bool] = True  # the statistic is 0 at rest and never below, so a threshold must be above 0
    bounded: ClassVar[bool] = False  # True: exp(-omega h) bounds its false alarms if evidence is independent

    @abstractmethod
    def _fit(self, points: Array, scores: Array) -> None:
        """Learn from nominal points ``(N, m)`` and scores ``(N,)`` without NaN, in time order."""

    @abstractmethod
    def _evidence_step(self) -> Evidence:
        """A fresh first step."""

    @abstractmethod
    def _accumulator(self, threshold: float) -> Cusum | WindowSum:
        """A fresh second step."""

    def fit(self, points: npt.ArrayLike, *, scores: npt.ArrayLike | None = None) -> Self:
        """Learn what is nominal.

        Parameters
        ----------
        points : array of shape (N, m) or (N,)
            Nominal points in time order; a score the user brings is a point with m = 1.
        scores : array of shape (N,), optional
            Their scores: the points themselves where m = 1 and the mean of squares otherwise, unless given.
        """
        array, values = as_points(points, scores, whose=f"{type(self).__name__}.fit")
        known = ~(np.isnan(values) | np.isnan(array).any(axis=1))
        if known.sum() < 2:
            raise InputError(
                f"The nominal points of {type(self).__name__}.fit must be at least 2. Got {known.sum()} instead."
            )
        self._fit(array[known], values[known])
        return self

    def evidence(self, points: npt.ArrayLike, *, scores: npt.ArrayLike | None = None) -> Array:
        """Evidence ``(T,)`` of points ``(T, m)``, starting afresh; NaN where the point is."""
        array, values = as_points(points, scores, whose=f"{type(self).__name__}.evidence")
        return self._evidence_step()(array, values)

    def accumulate(self, evidence: npt.ArrayLike, *, threshold: float) -> Trace:
        """Statistic and alarms of evidence ``(T,)`` at one threshold, starting afresh."""
        return self._accumulator(threshold).run(evidence)

    def start(self, *, threshold: float) -> RuleRun:
        """The rule at work on one entity, a row at a time."""
        return RuleRun(self, threshold)

    def contributions(self, points: Array) -> Array:
        """What each coordinate adds to the evidence ``(T, m)``, up to a factor: squares, for the mean of squares."""
        return np.asarray(points**2)

    def params(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def describe(self) -> dict[str, Any]:
        """What was learned, as plain values."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params().items())})"


def as_points(points: npt.ArrayLike, scores: npt.ArrayLike | None, *, whose: str) -> tuple[Array, Array]:
    """Points ``(T, m)`` and scores ``(T,)`` from what users hold."""
    array = np.ascontiguousarray(points, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"The points given to {whose} must have shape (T, m). Got shape {array.shape} instead.")
    if scores is None:
        values = array[:, 0] if array.shape[1] == 1 else np.mean(array**2, axis=1)
    else:
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != (len(array),):
            raise InputError(
                f"The scores given to {whose} must have one entry a point ({len(array)}). Got shape {values.shape} instead."
            )
    return array, np.ascontiguousarray(values)


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
    bounded = True

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

    def _fit(self, points: Array, scores: Array) -> None:
        check_choice(self.end, "end", "PaperRule", choices=POLICIES)
        self.knn_ = KNNEvidence(
            form=self.form,
            k=self.k,
            alpha=self.alpha,
            method=self.method,
            max_points=self.max_points,
            random_state=self.random_state,
        ).fit(points)

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


class ThresholdRule(AlarmRule):
    """The plain score: the alarm is on while the score is at or above the threshold.

    Parameters
    ----------
    hold : int
        The score is replaced by its maximum over this many instants; 1 leaves it alone.

    Examples
    --------
    >>> rule = ThresholdRule().fit([0.1, 0.2, 0.3])
    >>> rule.accumulate([0.1, 0.9, 0.2], threshold=0.5).active.tolist()
    [False, True, False]
    """

    name = "threshold"
    positive = False

    def __init__(self, *, hold: int = 1) -> None:
        self.hold = hold

    def _fit(self, points: Array, scores: Array) -> None:
        check_integer(self.hold, "hold", "ThresholdRule", minimum=1)

    def _evidence_step(self) -> Evidence:
        return _Score()

    def _accumulator(self, threshold: float) -> WindowSum:
        return WindowSum(threshold=threshold, length=1, hold=self.hold)


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

    def _fit(self, points: Array, scores: Array) -> None:
        check_real(self.quantile, "quantile", "ExcessRule", above=0.0, below=1.0)
        check_integer(self.window, "window", "ExcessRule", minimum=2)
        check_integer(self.lag, "lag", "ExcessRule", minimum=0)
        check_real(self.clip, "clip", "ExcessRule", at_least=1.0)
        check_integer(self.warm, "warm", "ExcessRule", minimum=1)
        check_integer(self.length, "length", "ExcessRule", minimum=2)
        check_integer(self.hold, "hold", "ExcessRule", minimum=1)
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


RULES: dict[str, type[AlarmRule]] = {rule.name: rule for rule in (PaperRule, ThresholdRule, ExcessRule)}
DEFAULT_RULE = "excess"


def make_rule(rule: str | AlarmRule, **options: Any) -> AlarmRule:
    """A rule by its name and options, or the rule itself.

    Examples
    --------
    >>> make_rule("paper", end="recovery").end
    'recovery'
    """
    if isinstance(rule, AlarmRule):
        if options:
            raise ParameterError(
                f"The options of a rule must be given where it is made. Got {', '.join(options)} besides {rule!r}."
            )
        return rule
    check_choice(rule, "rule", "make_rule", choices=RULES)
    known = inspect.signature(RULES[rule]).parameters
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ParameterError(
            f"The rule {rule!r} must have options among {', '.join(known)}. Got {unknown[0]!r} instead."
        )
    return RULES[rule](**options)

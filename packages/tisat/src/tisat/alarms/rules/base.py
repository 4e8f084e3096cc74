"""The interface of alarm rules: what a detector says of normal rows in, then evidence, a statistic and alarms.

A rule is two steps. The first turns what a detector says (:class:`Scored`) into **evidence**; it is learned from normal
data. The second accumulates evidence into a **statistic** and switches the alarm on and off at a threshold; it has
nothing to learn, which is why any threshold can be tried on the same evidence. :class:`RuleRun` runs both steps, a row or
an array at a time, from the same compiled loops. Where the threshold comes from is the business of
:mod:`tisat.alarms.calibration`; which rules there are, of :mod:`tisat.alarms.rules`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from tisat.alarms.control import CONTROLLED, FROZEN, Control, Movement, exempt, movement, no_control, threshold_of
from tisat.alarms.cusum import Trace, TraceRow
from tisat.errors import InputError, NotFittedError, ParameterError
from tisat.gap_filling import finite
from tisat.utils.parameters import Parametrized
from tisat.utils.stage import Stage, State, Stateless
from tisat.utils.types import AnyArray, Flags, Options, Params
from tisat.utils.types import Array as Array


class Scored(NamedTuple):
    """Points, scores and view scores of T rows."""

    points: Array  # (T, m): residual vectors, or the score itself
    scores: Array  # (T,): higher = more anomalous, NaN where there is none
    views: Array  # (T, V): the scores of each view of the series; the score alone for a detector with one view
    momentary: tuple[
        int, ...
    ] = ()  # numbers of the views that speak while something happens, not for as long as it lasts

    @classmethod
    def of(
        cls,
        points: npt.ArrayLike,
        scores: npt.ArrayLike | None = None,
        views: npt.ArrayLike | None = None,
        momentary: tuple[int, ...] = (),
        *,
        whose: str = "Scored",
    ) -> Scored:
        """Make it of points ``(T, m)`` or scores ``(T,)``, which are points with m = 1."""
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
        values = np.ascontiguousarray(values)
        columns = values[:, None] if views is None else np.ascontiguousarray(views, dtype=np.float64)
        if columns.ndim != 2 or len(columns) != len(array) or columns.shape[1] == 0:
            raise InputError(
                f"The views given to {whose} must have shape ({len(array)}, V). Got shape {columns.shape} instead."
            )
        return cls(array, values, columns, tuple(momentary))

    def __len__(self) -> int:  # rows, not fields
        return len(self.scores)

    def rows(self, which: slice | AnyArray) -> Scored:
        """Some of the rows."""
        return Scored(self.points[which], self.scores[which], self.views[which], self.momentary)

    def unknown(self, count: int) -> Scored:
        """Make ``count`` rows of the same shape that have no score."""
        points, views = (np.full((count, part.shape[1]), np.nan) for part in (self.points, self.views))
        return Scored(points, np.full(count, np.nan), views, self.momentary)

    @property
    def known(self) -> Flags:
        """``(T,)``: the rows that have a score."""
        return ~np.isnan(self.scores)


class Pointed(Protocol):
    """A detector, as far as what it makes of points."""

    def score_points(self, points: Array) -> Scored:
        """Scores of points ``(T, m)``, and of each view."""


class Aggregation(Stateless):
    """The stage from points of a fitted detector to scores and views."""

    def __init__(self, detector: Pointed) -> None:
        self._detector = detector

    def run(self, points: Array, /) -> Scored:
        """Score points ``(T, m)``."""
        return self._detector.score_points(finite(points))

    def step(self, point: Array, /) -> Scored:
        """Score one point ``(m,)``."""
        return self.run(point[None])


class Evidence(Stage[Scored, Scored, Array, Array], Protocol):
    """The first stage of a rule: what a detector says of rows in, evidence ``(T,)`` or ``(T, V)`` out."""

    def contribution(self, point: Array) -> Array:
        """Return what each coordinate ``(m,)`` of the last point added to its evidence, up to a factor."""


class Accumulator(Stage[npt.ArrayLike, float | Array, Trace, TraceRow], Protocol):
    """The second stage of a rule: evidence in, statistic, alarm and onset out."""

    def run_into(self, evidence: Array, trace: Trace) -> None:
        """Like :meth:`run`, into a trace of the caller; its arguments are not checked."""


class EvidenceStage:
    """Base of first stages: a row is a batch of one."""

    def run(self, scored: Scored, /) -> Array:
        """Return the evidence ``(T,)`` or ``(T, V)`` of rows."""
        raise NotImplementedError

    def step(self, row: Scored, /) -> Array:
        """Return the evidence ``(1,)`` or ``(1, V)`` of one row."""
        return self.run(row)

    def contribution(self, point: Array) -> Array:
        """Return squares, for the mean of squares."""
        return point**2


class Memoryless(EvidenceStage, Stateless):
    """Base of first stages that remember nothing from row to row: a subclass writes :meth:`run`."""


class RuleRun:
    """A rule at work on one entity at one threshold: a stage of the stages of evidence and of the accumulator.

    Made by :meth:`AlarmRule.start`.
    """

    def __init__(self, rule: AlarmRule, threshold: float, control: Control | None = None) -> None:
        self._evidence = rule._evidence_step()
        self._accumulator = rule._accumulator(threshold)
        self._trace = Trace.empty(1)
        self._calibrated = threshold
        self._control = no_control()
        if control is not None:
            if not rule.controllable:
                raise ParameterError(
                    f"A threshold that follows the alarms must belong to a rule whose statistic no alarm changes. Got {rule.name!r} instead; use control=False."
                )
            controlled: Any = self._accumulator
            controlled.follow(control)
            self._control = controlled.control

    def step(self, row: Scored, /, *, learn: bool = True) -> tuple[float, float, bool, int]:
        """Evidence, statistic, whether the alarm is on, and the onset estimate after one more row.

        Unless ``learn``, the row is measured by what the rule knows and teaches it nothing: a moving reference stays.
        """
        evidence = self._evidence.run(row) if learn else self._measured(row)  # a batch of one
        trace = self._trace
        self._control[FROZEN] = not learn
        self._accumulator.run_into(evidence, trace)
        return (
            float(np.add.reduce(evidence, axis=None)),
            float(trace.statistic[0]),
            bool(trace.active[0]),
            int(trace.onset[0]),
        )

    @property
    def used(self) -> float:
        """The threshold that was in force at the row :meth:`step` was given last."""
        return float(self._trace.threshold[0])

    def contribution(self, point: Array) -> Array:
        """Contribution of each coordinate ``(m,)`` of the last point, up to a factor."""
        return self._evidence.contribution(point)

    def run(self, scored: Scored, /, *, learn: Flags | None = None) -> tuple[Array, Trace]:
        """Evidence and trace of many rows, continuing from the last call."""
        if learn is None or learn.all():
            evidence = self._evidence.run(scored)
            return evidence, self._accumulated(evidence, learn=True)
        parts = np.split(np.arange(len(learn)), np.flatnonzero(np.diff(learn)) + 1)  # stretches of rows alike
        told = ((part, self._evidence.run if learn[part[0]] else self._unlearned) for part in parts)
        evidence = np.concatenate([run(scored.rows(part)) for part, run in told])
        if not self._control[CONTROLLED]:
            return evidence, self._accumulated(evidence, learn=True)
        traces = [self._accumulated(evidence[part], learn=bool(learn[part[0]])) for part in parts]
        statistic, active, onset, history = (
            np.concatenate([getattr(one, name) for one in traces])
            for name in ("statistic", "active", "onset", "threshold")
        )
        return evidence, Trace(statistic, active, onset, history)

    def _accumulated(self, evidence: Array, *, learn: bool) -> Trace:
        trace = Trace.empty(len(evidence))
        self._control[FROZEN] = not learn
        self._accumulator.run_into(evidence, trace)
        return trace

    @property
    def threshold(self) -> float:
        """The threshold in force for the next row."""
        return float(threshold_of(self._control, self._calibrated))

    @property
    def movement(self) -> Movement | None:
        """The change of the threshold and its cause; None where it is fixed."""
        return movement(self._control, self._calibrated, self.threshold)

    def exempt(self, *, on: bool, again: bool = False) -> None:
        """Do not count an alarm in the control of the threshold; see :func:`tisat.alarms.control.exempt`."""
        exempt(self._control, on=on, again=again)

    def _unlearned(self, scored: Scored) -> Array:
        return np.concatenate([self._measured(scored.rows(slice(t, t + 1))) for t in range(len(scored))])

    def _measured(self, row: Scored) -> Array:
        """The evidence of one row, of which nothing is learned."""
        stage: Any = self._evidence
        if hasattr(stage, "measure"):
            return np.asarray(stage.measure(row))
        known, evidence = stage.state(), stage.run(row)
        stage.restore(known)
        return np.asarray(evidence)

    def state(self) -> State:
        """Return everything that continues after a restart."""
        return {"evidence": self._evidence.state(), "accumulator": self._accumulator.state()}

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        self._evidence.restore(state.get("evidence", {}))
        self._accumulator.restore(state["accumulator"])


class AlarmRule(Parametrized, ABC):
    """Base of the rules: ``fit`` on normal rows, then ``evidence``, ``accumulate`` or ``start``.

    A subclass declares its parameters (:mod:`tisat.utils.parameters`), writes ``_fit``, ``_evidence_step`` and ``_accumulator``, and says what it is in the class
    attributes below: nobody asks for a rule's name to know what it can do.

    Examples
    --------
    >>> from tisat.alarms import make_rule
    >>> make_rule("excess", hold=20).hold
    20
    """

    name: ClassVar[str]  # as users type it
    title: ClassVar[str]  # as tables print it
    positive: ClassVar[bool] = True  # the statistic is 0 at rest and never below, so a threshold must be above 0
    bounded: ClassVar[bool] = False  # True: exp(-omega h) bounds its false alarms if evidence is independent
    feeds_back: ClassVar[bool] = False  # True: an alarm changes the statistic after it, so each threshold needs a run
    needs_points: ClassVar[bool] = False  # True: it looks at points, not only at scores; a store must keep its evidence
    controllable: ClassVar[bool] = (
        False  # True: no alarm changes its statistic, and its threshold may follow the alarms
    )
    added: ClassVar[tuple[str, ...]] = ()  # options that files of earlier versions do not have; see :meth:`earlier`
    has_unit: ClassVar[bool] = True  # False: the statistic is in the score's own unit, which differs between entities

    @abstractmethod
    def _fit(self, normal: Scored) -> None:
        """Learn from normal rows that all have a score, in time order."""

    @abstractmethod
    def _evidence_step(self) -> Evidence:
        """A fresh first step."""

    @abstractmethod
    def _accumulator(self, threshold: float) -> Accumulator:
        """A fresh second step."""

    def fit(
        self,
        points: npt.ArrayLike | Scored,
        *,
        scores: npt.ArrayLike | None = None,
        views: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn what is normal.

        Parameters
        ----------
        points : Scored, or array of shape (N, m) or (N,)
            Normal points in time order; a score the user brings is a point with m = 1.
        scores : array of shape (N,), optional
            Their scores: the points themselves where m = 1 and the mean of squares otherwise, unless given.
        views : array of shape (N, V), optional
            The scores of each view; the scores unless given.
        """
        caller = f"{type(self).__name__}.fit"
        normal = points if isinstance(points, Scored) else Scored.of(points, scores, views, whose=caller)
        normal = normal.rows(normal.known)
        if len(normal) < 2:
            raise InputError(f"The normal points of {caller} must be at least 2. Got {len(normal)} instead.")
        self._check_parameters()
        self._fit(normal)
        self.fitted_ = True
        return self

    def evidence(
        self,
        points: npt.ArrayLike | Scored,
        *,
        scores: npt.ArrayLike | None = None,
        views: npt.ArrayLike | None = None,
    ) -> Array:
        """Evidence of points ``(T, m)``, starting afresh; NaN where the point is."""
        whose = f"{type(self).__name__}.evidence"
        self._check_fitted()
        return self._evidence_step().run(
            points if isinstance(points, Scored) else Scored.of(points, scores, views, whose=whose)
        )

    def accumulate(self, evidence: npt.ArrayLike, *, threshold: float) -> Trace:
        """Statistic and alarms of evidence at one threshold, starting afresh."""
        return self._accumulator(threshold).run(evidence)

    def start(self, *, threshold: float, control: Control | None = None) -> RuleRun:
        """The rule at work on one entity, a row at a time; ``control`` moves the threshold with the alarms."""
        self._check_fitted()
        return RuleRun(self, threshold, control)

    def contributions(self, points: Array) -> Array:
        """Contribution of each coordinate to the evidence ``(T, m)``, up to a factor."""
        return np.asarray(points**2)

    def tail(self, views: int) -> tuple[float, float]:
        """Prior of the normal levels: the scale of their tail and the least threshold.

        Both on the logarithmic scale of :attr:`compression`; see :mod:`tisat.alarms.episodes`.
        """
        return 1.0, 0.0

    @property
    def compression(self) -> tuple[float, float] | None:
        """Centre and unit of a logarithmic scale for the statistic; None where it is on one already.

        Levels are compared and extrapolated on that scale: ``log(1 + (s - centre) / unit)``, 0 below the centre.
        """
        return None

    def compressed(self, statistic: Array) -> Array:
        """The statistic on a logarithmic scale; NaN stays."""
        if self.compression is None:
            return statistic
        centre, unit = self.compression
        return np.asarray(np.log1p(np.maximum(statistic - centre, 0.0) / unit))

    def identity(self) -> Params:
        """The options that identify this rule; later ones only where they change it."""
        params = self.params()
        before = self.complete_options({name: value for name, value in params.items() if name not in self.added})
        return {name: value for name, value in params.items() if name not in self.added or value != before[name]}

    @classmethod
    def complete_options(cls, options: Options) -> Params:
        """Complete the options of a model file that was written before some of them existed, so that nothing changes."""
        return dict(options)

    @classmethod
    def options(cls) -> Params:
        """The constructor's arguments and their defaults."""
        return {name: given.default for name, given in inspect.signature(cls).parameters.items()}

    def params(self) -> Params:
        """The constructor's arguments as they are here."""
        return {name: getattr(self, name) for name in self.options()}

    def _check_fitted(self) -> None:
        if not getattr(self, "fitted_", False):
            raise NotFittedError(f"This {type(self).__name__} must be fitted before it is used. Call fit first.")

    def __repr__(self, N_CHAR_MAX: int | None = None) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params().items())})"


RULES: dict[str, type[AlarmRule]] = {}  # by name; filled by the package, and by users


def register_rule(cls: type[AlarmRule]) -> type[AlarmRule]:
    """Add a rule of your own under its ``name``; usable as a decorator."""
    if RULES.get(cls.name, cls) is not cls:
        raise ParameterError(f"The rule name {cls.name!r} must be free. It already stands for {RULES[cls.name]!r}.")
    RULES[cls.name] = cls
    return cls

"""The contract of every detector: series in, points and scores out; higher = more anomalous.

A subclass writes three things and inherits the rest:

* ``_fit(parts)``: learn from clean arrays ``(T_i, C)``;
* ``_points(part)``: for every row of one clean array its **point** ``(T, m)``: a residual vector, or the score
  itself with m = 1; rows of NaN while warming up; the point at t depends on rows ``<= t`` only;
* ``_context()``: how many rows before t the point at t depends on (None: all of them, and then ``_stream`` too).

``aggregate(points)`` turns points ``(T, m)`` into scores ``(T,)``: the mean of squares where point c is channel c
(``points_are_channels``), the first of the m otherwise. Override it for another score.

What is missing: each channel is carried forward for at most ``MAX_GAP`` rows. A row that still lacks a value is
unusable, and so is the span of a jump in time longer than ``MAX_GAP`` sampling periods. A series is cut there into
**parts**; windows never reach across a cut, warm-up starts again after it, and unusable rows score NaN. Shorter jumps in
time are read as if the rows were adjacent. Nothing is ever replaced by 0.

Alarms are the business of :mod:`tisat.watch`; this module does not know labels.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, Unpack

import numpy as np
import numpy.typing as npt

from tisat.alarms.budget import BudgetLike
from tisat.alarms.explanation import Explanation
from tisat.alarms.rules.base import Scored
from tisat.detectors import explaining
from tisat.detectors._ranges import bounds, usual
from tisat.detectors._sklearn import channel_names, not_fitted_error, outlier_tags
from tisat.detectors.crossfit import Piece, cross_fitted, one_per_row
from tisat.detectors.fitting import fit_series, keep_normal
from tisat.detectors.point_blocks import point_blocks, points_and_deviations
from tisat.detectors.streaming import WindowStream as WindowStream
from tisat.gap_filling import TakenIn, bounded, take_in, usable_parts
from tisat.io.local_time import local_seconds
from tisat.persistence import estimator
from tisat.series import ManySeries, Series, SeriesLike
from tisat.utils.fitted_state import learned
from tisat.utils.parameters import Parametrized
from tisat.utils.types import AnyArray, Arrays, Integers, JsonDict, JsonMap, Params
from tisat.utils.types import Array as Array
from tisat.utils.validation import check_real
from tisat.watch.protocols import Stream as Stream
from tisat.watch.protocols import Training, WatchSettings, check_series
from tisat.watch.protocols import Traits as Traits
from tisat.watch.shortcuts import AlarmsInOneStep

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from tisat.watch.monitor import Monitor

NORMAL_QUANTILE = 0.99  # the level in whose units scores are compared across entities (spec, section 8)


class Detector(AlarmsInOneStep, Parametrized, ABC):
    """Base of all detectors: ``fit`` on normal data, then scores, alarms, a monitor, one file on disk.

    Examples
    --------
    >>> from tisat.detectors import LastValue
    >>> issubclass(LastValue, Detector), LastValue().fit([[0.0], [1.0], [2.0], [3.0]]).n_channels_
    (True, 1)
    """

    traits: ClassVar[Traits] = Traits()  # what it can do; a subclass declares its own
    _restored_apart: ClassVar[frozenset[str]] = frozenset()  # learned attributes that a subclass keeps in its own way

    # Learned by fit
    channels_: tuple[str, ...] = learned()  # names of the channels, in order
    n_channels_: int = learned()  # C
    n_points_: int = learned()  # m
    normal_: Array = learned("N, m")  # points of normal data, in time order, for calibration
    normal_breaks_: Integers = learned(
        "B", kind="i", low=0, high="N + 1"
    )  # rows that do not follow from the one before
    usual_squares_: Array = learned("m")  # mean square of each coordinate of the normal points
    normal_source_: str = learned()  # "cross-fitted", "held-out tail" or "training rows"
    usual_: Array = learned("2, C")  # median and spread of each channel in training, in the user's units
    trained_on_: Training = learned()  # what fit saw, for people
    bounds_: Array = learned("2, C")  # values beyond these are cut off: REACH training ranges away

    if TYPE_CHECKING:  # each class has the parameters that it declares

        def __init__(self, **params: object) -> None: ...

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if lost := {field.name for field in fields(Traits)} & set(vars(cls)) - set(cls._parameters):
            raise TypeError(
                f"{cls.__name__} must declare {min(lost)!r} in its traits: traits = Traits({min(lost)}=...)."
            )

    # ------------------------------------------------------------------ what a subclass writes

    @abstractmethod
    def _fit(self, parts: Sequence[Array]) -> None:
        """Learn from clean arrays ``(T_i, C)``; set attributes that end in an underscore."""

    @abstractmethod
    def _points(self, part: Array) -> Array:
        """Points ``(T, m)`` of one clean array, NaN rows while warming up."""

    @abstractmethod
    def _context(self) -> int | None:
        """How many earlier rows the point at t depends on; None where all of them matter."""

    def _points_of_windows(self, windows: Array) -> Array:
        """Points ``(n, m)`` of the last row of each window ``(n, context + 1, C)``; override where a batch is cheaper."""
        return np.stack([self._points(window)[-1] for window in windows])

    def _answers(self, windows: Array) -> Array:
        """Points of the last rows of many windows, for :class:`WindowStream`."""
        return self._points_of_windows(windows)

    def _stream(self) -> Stream:
        """A stream for one entity; a detector with unbounded memory overrides this."""
        context = self._context()
        assert context is not None, "a detector with unbounded memory writes its own _stream"
        return WindowStream(self, context)

    def _minimum_rows(self) -> int:
        """Fewest clean rows ``_fit`` can learn from."""
        return (self._context() or 0) + 2

    def _normal_points(self, parts: Sequence[Array]) -> list[Array]:
        """Points of the training parts themselves; override where a training row would find itself."""
        return [self._points(part) for part in parts]

    @classmethod
    def _test_params(cls) -> Params:
        """Parameters that make the contract tests quick for this class."""
        return {}

    # ------------------------------------------------------------------ from points to scores

    def aggregate(self, points: Array) -> Array:
        """Scores ``(T,)`` of points ``(T, m)``: the mean of squares where points are channels, else their first column.

        Where channels are missing they count as usual, so that the rest is neither louder nor quieter than it was.
        """
        if not self.traits.points_are_channels:
            return points[:, 0]
        scores = np.asarray(np.add.reduce(points * points, axis=1) / points.shape[1])
        if not self.traits.partial or not math.isnan(np.add.reduce(scores)):
            return scores
        known = ~np.isnan(points)
        filled = np.where(known, points**2, self.usual_squares_).mean(axis=1)
        return np.where(known.any(axis=1), filled, np.nan)

    def score_points(self, points: Array) -> Scored:
        """Score points ``(T, m)``: scores ``(T,)``, and the scores ``(T, V)`` of each view where the detector has several."""
        scores = self.aggregate(points)
        return Scored(points, scores, scores[:, None])

    def fit(self, series: ManySeries, y: object = None, *, holdout: float | None = None) -> Self:
        """Learn what is normal.

        Parameters
        ----------
        series : Series, array, dataframe, file path, or a list of them
            Normal data. Labels, if it carries any, are not looked at.
        y : ignored
            There for scikit-learn's sake.
        holdout : float, optional
            The tail of each series kept from the model, so that alarm budgets are calibrated on rows it has not seen.
            0 gives every row to the model and calibrates on the training rows. None: the model gets every row, and each
            block of rows is scored by one fitted on the others (cross-fitting), where fitting is cheap; a tail of 0.2
            where it is not. ``normal_source_`` says which.
        """
        fit_series(self, series, holdout=holdout, learn=self._fit)
        return self

    def _adapt_to(self, series: Series) -> None:
        """Take the normal points from this series; see :func:`tisat.detectors.adapting.adapt`."""
        parts = [values for _, values in self._usable(series)]
        self._look_at(parts)
        points = [found[~np.isnan(found).any(axis=1)] for found in map(self._points, parts)]
        self._keep_normal(parts, [], points)
        self.normal_source_ = "own rows, shared model"
        before = self.trained_on_
        self.trained_on_ = {**before, "shared_by": before["series"], "series": [series.name], "rows": len(series)}

    def decision_function(self, series: SeriesLike) -> Array:
        """Scores ``(T,)``: higher = more anomalous, NaN in warm-up and at unusable rows."""
        return self.aggregate(self.points(series))

    def points(self, series: SeriesLike, *, period: float | None = None) -> Array:
        """Points ``(T, m)``, what the alarm layer measures distances between; NaN where there is no score.

        Parameters
        ----------
        series : Series, array, dataframe or file path
            Channels go by name where both sides have names.
        period : float, optional
            Seconds between two rows, in which jumps in time are measured; that of the training data unless given.
        """
        return self._points_and_deviations(series, period=period)[0]

    def _points_and_deviations(self, series: SeriesLike, *, period: float | None = None) -> tuple[Array, Array | None]:
        """Points ``(T, m)`` and, where the detector has them, deviations ``(T, C)`` that tell whether a channel is still different."""
        checked, trained = check_series(self, series), self.trained_on_.get("period_seconds")
        step = trained if period is None else period
        return points_and_deviations(self, checked, take_in(checked, period=step, partial=self.traits.partial))

    def _point_blocks(self, checked: Series, seen: TakenIn) -> Iterator[tuple[slice, Array]]:
        """Points and deviations of a checked series, in blocks of rows; see :mod:`tisat.detectors.point_blocks`."""
        return point_blocks(self, checked, seen)

    def _usable(
        self, series: Series, *, period: float | None = None, partial: bool = False
    ) -> list[tuple[slice, Array]]:
        """The clean stretches of a series, with the local time of each row as a last column where the detector wants it."""
        parts = usable_parts(series, period=period, partial=partial)
        if not self.traits.clocked:
            return parts
        clock = local_seconds(series)
        return [(rows, np.column_stack([values, clock[rows]])) for rows, values in parts]

    def predict(self, series: SeriesLike, *, quantile: float = NORMAL_QUANTILE) -> npt.NDArray[np.int8]:
        """1 where the score exceeds this quantile of the normal scores, else 0.

        Warm-up is 0.

        For alarms that keep a false-alarm budget use :meth:`monitor` or :meth:`alarms`; this is the plain threshold.
        """
        level = self.normal_level(quantile=quantile)
        scores = self.decision_function(series)
        return (np.nan_to_num(scores, nan=-np.inf) > level).astype(np.int8)

    def normal_level(self, *, quantile: float = NORMAL_QUANTILE) -> float:
        """A quantile of the normal scores: the unit in which scores of several entities are pooled."""
        self._check_fitted()
        share = check_real(quantile, "quantile", type(self).__name__, at_least=0.0, at_most=1.0)
        return float(np.quantile(self.aggregate(self.normal_), share))

    def stream(self) -> Stream:
        """Row-by-row scoring of one entity: clean rows in, points out, equal to :meth:`points`."""
        self._check_fitted()
        return self._stream()

    def explain(self, row: Array, point: Array) -> Explanation:
        """Explain why a row is unusual: kind of fault, channels, what was seen and expected in the user's units.

        Parameters
        ----------
        row : array of shape (C,)
            The values, as they came.
        point : array of shape (m,)
            The point it made of them.
        """
        self._check_fitted()
        seen = np.asarray(row, dtype=np.float64)
        return replace(self._explain(bounded(self, seen), np.asarray(point, dtype=np.float64)), seen=seen)

    def expected(self, series: SeriesLike, *, at: Integers | None = None) -> tuple[Array, Array]:
        """Compute what is expected of each channel at each row and the usual spread, ``(T, C)`` each, in the user's units.

        It is what :meth:`explain` says of the rows: a forecast where the detector makes one, else the usual value. NaN where there is no score,
        and beside the rows ``at`` where some are given: a picture of a long series draws few.
        """
        usual = self.usual_ if type(self)._explain is Detector._explain else None
        return explaining.expected(self, check_series(self, series), usual=usual, at=at)

    def _explain(self, row: Array, point: Array) -> Explanation:
        """Explain a row; override where a detector knows better than to look at contributions or to leave channels out."""
        return explaining.explain(self, row, point)

    def _left_out(self, row: Array) -> Array | None:
        """By how much the score falls when each channel is put back to its usual value ``(C,)``; None where that has no meaning."""
        return explaining.leave_one_out(self, row)

    def _watched(self, series: SeriesLike) -> tuple[Self, SeriesLike]:
        return self, series

    def _amounts(self, points: Array) -> Array | None:
        """Contribution of each channel to points ``(n, C)``; None where unknown."""
        return None

    def monitor(self, *, false_alarms: BudgetLike, name: str = "", **settings: Unpack[WatchSettings]) -> Monitor:
        """Make an online monitor within a false-alarm budget: short for ``Watch(self, budget=...).monitor()``; as :meth:`alarms`.

        Examples
        --------
        >>> import tisat
        >>> detector = tisat.registry.resolve("random-guess")().fit([[0.0]] * 5000)
        >>> monitor = detector.monitor(false_alarms="1/250 rows", rule="threshold")
        >>> monitor.update([0.0]).active
        False
        """
        from tisat.watch.watch import Watch

        return Watch(self, budget=false_alarms, **settings).monitor(name=name)

    # ------------------------------------------------------------------ one file on disk

    def save(self, path: str | Path) -> None:
        """Write the fitted detector to one file, atomically; refused where :func:`tisat.load` would refuse it."""
        estimator.save(self, path)

    def _state(self) -> tuple[JsonDict, Arrays]:
        """Learned attributes (their names end in one underscore), split into plain values and arrays."""
        return estimator.state_of(self)

    def _restore(self, plain: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
        """Set what :meth:`_state` returned, after it was checked against what the class declares to learn."""
        estimator.restore(self, plain, tensors)

    def _check_learned(self) -> None:
        """Refuse what was read from a file and fits its declared shape but not its meaning: indices, orders."""

    # ------------------------------------------------------------------ scikit-learn's names

    def fit_predict(self, series: SeriesLike, y: object = None) -> npt.NDArray[np.int8]:
        """Fit, and :meth:`predict` the same rows: 1 where a row exceeds :meth:`normal_level`, else 0."""
        return self.fit(series, y).predict(series)

    def score_samples(self, series: SeriesLike) -> Array:
        """Minus :meth:`decision_function`: scikit-learn's sign, **lower** = more anomalous; NaN in warm-up."""
        return -self.decision_function(series)

    @property
    def n_features_in_(self) -> int:
        """The number of channels; scikit-learn's name for ``n_channels_``."""
        self._check_fitted()
        return self.n_channels_

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """The names of the channels, where the training data had names.

        As in scikit-learn there is no such attribute otherwise.
        """
        self._check_fitted()
        return channel_names(self.channels_, whose=type(self).__name__)

    def _check_fitted(self) -> None:
        if not hasattr(self, "normal_"):
            raise not_fitted_error()(f"This {type(self).__name__} must be fitted before it is used. Call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "normal_")

    def __sklearn_tags__(self) -> Tags:
        return outlier_tags()

    # ------------------------------------------------------------------ learning

    def _cross_fitted(self, parts: Sequence[Array]) -> list[Array] | None:
        """Points of every row by a model fitted on the other blocks.

        None where there are too few rows for that.
        """
        return cross_fitted(self, parts)

    def _decide(self, parts: Sequence[Array]) -> None:
        """Decide on all rows what the models of the folds share; nothing unless overridden."""

    def _prepare_fold(self, other: Self) -> None:
        """Give the model of a fold what is decided once for all of them; nothing unless overridden."""

    def _learn_from_fold(self, scored: Sequence[Sequence[Array]], other: Self) -> None:
        """Take notice of points that the model of a fold gave to rows it has not seen, by part; nothing unless overridden."""

    def _keep_normal(self, parts: Sequence[Array], tails: Sequence[Piece], cross_fitted: list[Array] | None) -> None:
        """Keep points of normal data for calibration: cross-fitted ones, those of the tails, or those of the training parts."""
        keep_normal(self, parts, tails, cross_fitted)

    def _for_calibration(self, points: Array) -> Array:
        """Points without the deviations beside them."""
        return points

    def _whole_points(self, part: Array) -> Array:
        """Points with deviations beside them, where the detector has them."""
        return one_per_row(self._points(part), part, whose=type(self).__name__)

    def _look_at(self, parts: Sequence[Array]) -> None:
        """Learn the usual values and the clipping bounds of each channel."""
        values = [part[:, : self.n_channels_] for part in parts]
        self.bounds_, self.usual_ = bounds(values), usual(values)

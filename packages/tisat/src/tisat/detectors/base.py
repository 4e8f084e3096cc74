"""The contract of every detector: series in, points and scores out; higher = more anomalous.

A subclass writes three things and inherits the rest:

* ``_fit(parts)``: learn from clean arrays ``(T_i, C)``;
* ``_points(part)``: for every row of one clean array its **point** ``(T, m)``: a residual vector, or the score
  itself with m = 1; rows of NaN while warming up; the point at t depends on rows ``<= t`` only;
* ``_context()``: how many rows before t the point at t depends on (None: all of them, and then ``_stream`` too).

``aggregate(points)`` turns points into scores: the mean of squares where point c is channel c (``points_are_channels``),
the point itself otherwise.

What is missing: each channel is carried forward for at most ``MAX_GAP`` rows. A row that still lacks a value is
unusable, and so is the span of a jump in time longer than ``MAX_GAP`` sampling periods. A series is cut there into
**parts**; windows never reach across a cut, warm-up starts again after it, and unusable rows score NaN. Shorter jumps in
time are read as if the rows were adjacent. Nothing is ever replaced by 0.

Alarms are the business of :mod:`tisat.watch`; this module does not know labels.
"""

from __future__ import annotations

import copy
import datetime
import math
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tisat import __version__
from tisat.alarms.sentences import moves_every
from tisat.detectors._ranges import bounds, usual
from tisat.detectors._sklearn import SklearnOutlier
from tisat.detectors.crossfit import Piece, blocks, join, only_kept, score_pieces, split_tail, spread_stretches
from tisat.detectors.explaining import Explaining
from tisat.detectors.point_blocks import point_blocks, points_and_deviations
from tisat.detectors.streaming import WindowStream as WindowStream
from tisat.detectors.training_checks import check_training
from tisat.errors import SeriesError
from tisat.gap_filling import TakenIn, take_in, usable_parts
from tisat.io.counters import difference
from tisat.io.local_time import local_seconds
from tisat.persistence.estimator import OneFile
from tisat.series import ManySeries, Series, SeriesLike, as_series
from tisat.utils.fitted_state import learned
from tisat.utils.types import Array as Array
from tisat.utils.types import Integers
from tisat.utils.validation import check_real
from tisat.watch.protocols import Stream as Stream
from tisat.watch.shortcuts import InOneStep

HOLDOUT = 0.2  # the tail of normal data that a model which is expensive to fit is calibrated on
FEWEST_CROSS_FITTED = 40  # points; fewer tell nothing
NORMAL_QUANTILE = 0.99  # the level in whose units scores are compared across entities (spec, section 8)


class Detector(Explaining, InOneStep, OneFile, SklearnOutlier, ABC):
    """Base of all detectors: ``fit`` on normal data, then scores, alarms, a monitor, one file on disk.

    Examples
    --------
    >>> from tisat.detectors import LastValue
    >>> issubclass(LastValue, Detector), LastValue().fit([[0.0], [1.0], [2.0], [3.0]]).n_channels_
    (True, 1)
    """

    crossfit: ClassVar[int] = 0  # blocks of cross-fitting, where fitting is cheap; 0: a held-out tail
    learns_unseen: ClassVar[bool] = False  # True: what it makes of points depends on rows the model has not seen
    points_are_channels: ClassVar[bool] = False  # True: point c is channel c, so alarms can name channels
    partial: ClassVar[bool] = False  # True: it does without single channels, whose values are NaN, and scores the rest
    clocked: ClassVar[bool] = False  # True: rows come with one more column, their local time in seconds since 1970
    fault_kind: ClassVar[str] = "unusual"  # what an alarm of this detector is about, in one or two words
    rounding: ClassVar[float] = 1e-9  # relative; how far batch, prefix and stream may differ (float32 nets: more)
    exact_together: ClassVar[bool] = False  # True: an answer about many windows is, to the bit, the answers about each
    contract_exemptions: ClassVar[Mapping[str, str]] = {}  # contract name -> the reason this class is exempt

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
    trained_on_: dict[str, Any] = learned()  # what fit saw, for people
    bounds_: Array = learned("2, C")  # values beyond these are cut off: REACH training ranges away

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
        """What streams of :class:`WindowStream` are told about their windows, many at once: the points of the last rows."""
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
    def _test_params(cls) -> dict[str, Any]:
        """Parameters that make the contract tests quick for this class."""
        return {}

    # ------------------------------------------------------------------ from points to scores

    def aggregate(self, points: Array) -> Array:
        """Scores ``(T,)`` of points ``(T, m)``: the mean of squares where points are channels, else the point itself.

        Where channels are missing they count as usual, so that the rest is neither louder nor quieter than it was.
        """
        if not self.points_are_channels:
            return points[:, 0]
        scores = np.asarray(np.mean(points**2, axis=1))
        if not self.partial or not math.isnan(scores.sum()):
            return scores
        known = ~np.isnan(points)
        filled = np.where(known, points**2, self.usual_squares_).mean(axis=1)
        return np.where(known.any(axis=1), filled, np.nan)

    @property
    def n_views(self) -> int:
        """V, how many views of a series this detector has."""
        return 1

    @property
    def momentary_views(self) -> tuple[int, ...]:
        """Numbers of the views that speak while something happens, not for as long as it lasts; rules let them adapt faster."""
        return ()

    def scores_and_views(self, points: Array) -> tuple[Array, Array]:
        """What :meth:`aggregate` and :meth:`views` say of points; override where they have work in common."""
        scores = self.aggregate(points)
        return scores, scores[:, None] if type(self).views is Detector.views else self.views(points)

    def views(self, points: Array) -> Array:
        """The scores ``(T, V)`` of each view, from points ``(T, m)``: the score alone where there is one view.

        A detector with several views may measure their scores from their normal level: 0 is the level and -1 the median
        of the rows it was fitted on. Where there are several views, rules take scores below 0 for such a measure.
        """
        return self.aggregate(points)[:, None]

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
        return self._fit_series(series, holdout=holdout, learn=self._fit)

    def _fit_series(
        self, series: ManySeries, *, holdout: float | None, learn: Callable[[Sequence[Array]], None]
    ) -> Self:
        """:meth:`fit`, with what learns from the clean parts: a neural detector's has a checkpoint."""
        whose = type(self).__name__
        self._check_parameters()
        if holdout is not None:
            check_real(holdout, "holdout", f"{whose}.fit", at_least=0.0, at_most=0.5)
        many = check_training(series, whose)
        self.channels_ = many[0].channels
        self.n_channels_ = len(self.channels_)
        clean = [[values for _, values in self._usable(one)] for one in many]
        parts = [values for one in clean for values in one]
        normal = self._cross_fitted(parts) if holdout is None and self.crossfit > 1 else None
        share = 0.0 if normal is not None else HOLDOUT if holdout is None else holdout
        tails: list[Piece] = []
        if share > 0:
            cut = [split_tail(one, share, context=self._context() or 0) for one in clean]
            parts = [head for heads, _ in cut for head in heads]
            tails = [tail for _, ends in cut for tail in ends]
        rows = sum(map(len, parts))
        if rows < self._minimum_rows():
            raise SeriesError(
                f"The series given to {whose}.fit must have at least {self._minimum_rows()} usable rows "
                f"(after the {share:.0%} held out). Got {rows} instead."
            )
        self._look_at(parts)
        learn(parts)
        self._keep_normal(parts, tails, normal)
        self.trained_on_ = {
            "series": [one.name for one in many],
            "rows": int(sum(map(len, many))),
            "rows_used": int(rows),
            "missing_values": int(sum(one.missing for one in many)),
            **({"counters": list(many[0].differenced)} if many[0].differenced else {}),
            "moves_every": moves_every([part[:, : self.n_channels_] for part in parts]),
            "period_seconds": many[0].period,
            "start": None if many[0].timestamps is None else str(many[0].timestamps[0]),
            "stop": None if many[-1].timestamps is None else str(many[-1].timestamps[-1]),
            "fitted_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "tisat": __version__,
            "python": platform.python_version(),
        }
        return self

    def adapted_to(self, series: SeriesLike) -> Self:
        """The same model for one machine of many: its normal points are from this series, what the model learned is not.

        For a model that was fitted on several machines alike; budgets are then kept for each by its own rows.
        """
        one = self.check_series(series)
        mine = copy.copy(self)
        parts = [values for _, values in self._usable(one)]
        mine._look_at(parts)
        points = [found[~np.isnan(found).any(axis=1)] for found in map(self._points, parts)]
        mine._keep_normal(parts, [], points)
        mine.normal_source_ = "own rows, shared model"
        mine.trained_on_ = {
            **self.trained_on_,
            "shared_by": self.trained_on_["series"],
            "series": [one.name],
            "rows": len(one),
        }
        return mine

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
        return self.points_and_deviations(series, period=period)[0]

    def points_and_deviations(self, series: SeriesLike, *, period: float | None = None) -> tuple[Array, Array | None]:
        """Points ``(T, m)`` and, where the detector has them, deviations ``(T, C)`` that tell whether a channel is still different."""
        checked, trained = self.check_series(series), self.trained_on_.get("period_seconds")
        step = trained if period is None else period
        return points_and_deviations(self, checked, take_in(checked, period=step, partial=self.partial))

    def point_blocks(self, checked: Series, seen: TakenIn) -> Iterator[tuple[slice, Array]]:
        """Points and deviations of a checked series, in blocks of rows; see :mod:`tisat.detectors.point_blocks`."""
        return point_blocks(self, checked, seen)

    def bounded(self, rows: Array) -> Array:
        """The rows with values beyond all reason cut off, so that no arithmetic overflows and no memory is poisoned."""
        if rows.shape[-1] > self.n_channels_:  # the local time comes last
            return np.concatenate([self.bounded(rows[:, : self.n_channels_]), rows[:, self.n_channels_ :]], axis=1)
        return np.asarray(np.maximum(np.minimum(rows, self.bounds_[1]), self.bounds_[0]))

    def _usable(self, series: Series, **options: Any) -> list[tuple[slice, Array]]:
        """The clean stretches of a series, with the local time of each row as a last column where the detector wants it."""
        parts = usable_parts(series, **options)
        if not self.clocked:
            return parts
        clock = local_seconds(series)
        return [(rows, np.column_stack([values, clock[rows]])) for rows, values in parts]

    def predict(self, series: SeriesLike, *, quantile: float = NORMAL_QUANTILE) -> npt.NDArray[np.int8]:
        """1 where the score exceeds this quantile of the normal scores, else 0; warm-up is 0.

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

    def check_series(self, series: SeriesLike, *, ignore_extra: bool = False) -> Series:
        """The series with this detector's channels in its order, by name where both have names; refused otherwise."""
        self._check_fitted()
        whose = type(self).__name__
        checked = as_series(series, whose=whose).in_order(self.channels_, whose=whose, ignore_extra=ignore_extra)
        return difference(checked, self.counters, period=self.trained_on_.get("period_seconds"))

    @property
    def counters(self) -> tuple[str, ...]:
        """The channels whose growth per row the model was fitted on."""
        return tuple(self.trained_on_.get("counters", ()))

    def stream(self) -> Stream:
        """Row-by-row scoring of one entity: clean rows in, points out, equal to :meth:`points`."""
        self._check_fitted()
        return self._stream()

    def answers(self, windows: Array, *, exact: bool = False) -> Array:
        """What streams of :class:`WindowStream` are told about their windows, many at once.

        ``exact``: to the bit what each would be told alone.
        """
        if exact and not self.exact_together:
            return np.concatenate([self._answers(window[None]) for window in windows])
        return self._answers(windows)

    # ------------------------------------------------------------------ learning

    def _cross_fitted(self, parts: Sequence[Array]) -> list[Array] | None:
        """Points of every row by a model fitted on the other blocks; None where there are too few rows for that."""
        stretches: list[Array] = []
        context = self._context()
        spread = None if context is None else spread_stretches(parts, context=context)
        folds = [spread] if spread is not None else blocks(parts, self.crossfit, context=context)
        wanted: list[list[list[Piece]]] = []  # by fold and part
        for number, (rest, _) in enumerate(folds):
            if sum(map(len, rest)) < self._minimum_rows():
                return None
            other = type(self)(**self.get_params(deep=False))
            other.channels_, other.n_channels_ = self.channels_, self.n_channels_
            self._prepare_fold(other)
            try:
                other._fit(rest)
                if not wanted:
                    width = other._points(max(rest, key=len)[: (context or 0) + 1]).shape[1]
                    wanted = only_kept([pieces for _, pieces in folds], width, context=context)
                scored = [score_pieces(other._whole_points, pieces) for pieces in wanted[number]]
            except SeriesError:  # the rest has no stretch long enough
                return None
            self._learn_from_fold(scored, other)
            stretches += [other._for_calibration(one) for pieces in scored for one in pieces]
        return stretches if sum(map(len, stretches)) >= FEWEST_CROSS_FITTED else None

    def _prepare_fold(self, other: Self) -> None:
        """Give the model of a fold what is decided once for all of them; nothing unless overridden."""

    def _learn_from_fold(self, scored: Sequence[Sequence[Array]], other: Self) -> None:
        """Take notice of points that the model of a fold gave to rows it has not seen, by part; nothing unless overridden."""

    def _keep_normal(self, parts: Sequence[Array], tails: Sequence[Piece], cross_fitted: list[Array] | None) -> None:
        self.n_points_ = self._points(parts[0][: (self._context() or 0) + 1]).shape[1]
        self.normal_source_ = "held-out tail" if cross_fitted is None else "cross-fitted"
        stretches = score_pieces(self._whole_points, tails) if cross_fitted is None else cross_fitted
        if sum(map(len, stretches)) < 2:
            self.normal_source_ = "training rows"
            stretches = [one[~np.isnan(one).any(axis=1)] for one in self._normal_points(parts)]
        kept = [self._for_calibration(one) for one in stretches]
        self.normal_, self.normal_breaks_ = join(kept, kept[0].shape[1] if kept else self.n_points_)
        if len(self.normal_) == 0:
            raise SeriesError(
                f"The series given to {type(self).__name__}.fit must be longer than its warm-up. "
                f"Got {sum(map(len, parts))} usable rows in {len(parts)} parts, none of which got a score."
            )
        known = ~np.isnan(self.normal_)
        squares = np.where(known, self.normal_, 0.0) ** 2
        self.usual_squares_ = squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1)

    def _for_calibration(self, points: Array) -> Array:
        """Points without the deviations beside them."""
        return points

    def _whole_points(self, part: Array) -> Array:
        """Points with deviations beside them, where the detector has them."""
        return self._points(part)

    def _look_at(self, parts: Sequence[Array]) -> None:
        """What is usual in each channel, and beyond which values one is as gross as another."""
        values = [part[:, : self.n_channels_] for part in parts]
        self.bounds_, self.usual_ = bounds(values), usual(values)

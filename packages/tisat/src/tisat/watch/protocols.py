"""Protocols that a watch needs of a detector.

A detector comes in here by what it does, not by what it is: this package does not import :mod:`tisat.detectors.base`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypedDict

from tisat.alarms.explanation import Explanation
from tisat.alarms.rules import RuleLike, Scored
from tisat.gap_filling import TakenIn
from tisat.io.counters import difference
from tisat.io.durations import DurationLike
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.stage import Stage
from tisat.utils.types import Array as Array
from tisat.utils.types import Arrays, Integers, JsonDict, Options

CROSS_FITTED = "cross-fitted"  # the source of normal points made by models that were each fitted without a fold


class Stream(Stage[Array, Array, Array, Array], Protocol):
    """The stage from rows to points: clean rows ``(C,)`` in, points ``(m,)`` out, NaN while warming up."""

    def reset(self) -> None:
        """Forget the past: a gap was too long to bridge."""


@dataclass(frozen=True)
class Traits:
    """Declared abilities of a detector: ``traits = Traits(points_are_channels=True)``.

    Parameters
    ----------
    crossfit : int
        Blocks of cross-fitting, where fitting is cheap; 0: a held-out tail.
    learns_unseen : bool
        What it makes of points depends on rows the model has not seen.
    points_are_channels : bool
        Point c is channel c, so alarms can name channels.
    partial : bool
        It does without single channels, whose values are NaN, and scores the rest.
    clocked : bool
        Rows come with one more column, their local time in seconds since 1970.
    fault_kind : str
        What its alarms are about, in one or two words.
    rounding : float
        Relative; how far batch, prefix and stream may differ (float32 networks: more).
    exact_together : bool
        An answer about many windows is, to the bit, the answers about each.
    contract_exemptions : mapping of str to str
        Contracts of :mod:`tisat.testing` that it cannot obey, and the reason.
    retired : mapping of str to object
        Parameters that it had before, each with the one value that files and results may still name.

    Examples
    --------
    >>> Traits(partial=True).partial, Traits().rounding
    (True, 1e-09)
    """

    crossfit: int = 0
    learns_unseen: bool = False
    points_are_channels: bool = False
    partial: bool = False
    clocked: bool = False
    fault_kind: str = "unusual"
    rounding: float = 1e-9
    exact_together: bool = False
    contract_exemptions: Mapping[str, str] = field(default_factory=dict)
    retired: Options = field(default_factory=dict)


class Training(TypedDict, total=False):
    """Summary of the training data, ``detector.trained_on_``."""

    series: Sequence[str]
    rows: int
    rows_used: int
    missing_values: int
    counters: Sequence[str]
    moves_every: Sequence[float]
    stood: Sequence[float]
    period_seconds: float | None
    mean_seconds: float  # between two rows, without gaps, where that is another time
    start: str | None
    stop: str | None
    zone: str  # offsets from UTC its dates were written with, where they were
    fitted_at: str
    tisat: str
    python: str
    shared_by: Sequence[str]  # the series of the model that others share
    most_kept: int  # points of normal rows, where there were more
    left_out: str  # of contaminated training data
    left_out_rows: int
    constant: Sequence[str]  # channels that never moved
    labelled: int  # rows labelled anomalous


class CommonSettings(TypedDict, total=False):
    """Settings of :class:`tisat.watch.Watch` that functions pass on to it, without its seed."""

    rule: RuleLike
    method: str
    control: bool
    period: DurationLike | None
    counters: Sequence[str] | None
    rearm: DurationLike | None
    contaminated: bool


class WatchSettings(CommonSettings, total=False):
    """Settings of :class:`tisat.watch.Watch` that functions pass on to it."""

    random_state: int


class Checked(Protocol):
    """A fitted detector, as far as its channels."""

    channels_: tuple[str, ...]
    trained_on_: Training

    def _check_fitted(self) -> None: ...


class Scorer(Protocol):
    """The part of :class:`tisat.detectors.base.Detector` that alarms are made from."""

    traits: ClassVar[Traits]
    channels_: tuple[str, ...]
    n_channels_: int
    bounds_: Array
    normal_: Array
    normal_breaks_: Integers
    normal_source_: str
    trained_on_: Training

    def _check_fitted(self) -> None: ...
    def _points_and_deviations(
        self, series: SeriesLike, *, period: float | None = None
    ) -> tuple[Array, Array | None]: ...
    def _point_blocks(self, checked: Series, seen: TakenIn) -> Iterator[tuple[slice, Array]]: ...
    def _amounts(self, points: Array) -> Array | None: ...
    def _state(self) -> tuple[JsonDict, Arrays]: ...
    def get_params(self, deep: bool = True) -> JsonDict:  # noqa: FBT001, FBT002 - scikit-learn's signature
        """The parameters as given."""

    def points(self, series: SeriesLike, *, period: float | None = None) -> Array:
        """Points ``(T, m)`` of a series."""

    def aggregate(self, points: Array) -> Array:
        """Scores ``(T,)`` of points."""

    def score_points(self, points: Array) -> Scored:
        """Scores of points, and of each view."""

    def expected(self, series: SeriesLike, *, at: Integers | None = None) -> tuple[Array, Array]:
        """Expected value of each channel at each row, and the usual spread."""

    def explain(self, row: Array, point: Array) -> Explanation:
        """Why a row is unusual."""

    def stream(self) -> Stream:
        """Row-by-row scoring of one entity."""


def check_series(detector: Checked, series: SeriesLike, *, ignore_extra: bool = False) -> Series:
    """The series with the detector's channels in its order, by name where both have names, counters as growth; refused otherwise."""
    detector._check_fitted()
    whose = type(detector).__name__
    checked = as_series(series, whose=whose).in_order(detector.channels_, whose=whose, ignore_extra=ignore_extra)
    return difference(checked, fitted_counters(detector), period=detector.trained_on_.get("period_seconds"))


def fitted_counters(detector: Checked) -> tuple[str, ...]:
    """The channels whose growth per row the detector was fitted on."""
    return tuple(detector.trained_on_.get("counters", ()))

"""What a watch needs of a detector: the two contracts between the packages, written once.

A detector comes in here by what it does, not by what it is: this package does not import :mod:`tisat.detectors.base`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

from tisat.alarms.explanation import Explanation
from tisat.gap_filling import TakenIn
from tisat.series import Series, SeriesLike
from tisat.utils.stage import Stage
from tisat.utils.types import Array as Array
from tisat.utils.types import Arrays, Integers


class Stream(Stage[Array, Array, Array, Array], Protocol):
    """The stage from rows to points: clean rows ``(C,)`` in, points ``(m,)`` out, NaN while warming up."""

    def reset(self) -> None:
        """Forget the past: a gap was too long to bridge."""


class WindowedStream(Stream, Protocol):
    """A stream whose points are asked of the detector, many at once: :class:`tisat.detectors.base.WindowStream`."""

    one_at_a_time: bool  # True: the answer about a row must be taken in before the next row is

    def window(self, row: Array) -> Array | None:
        """Take in a row; what the detector is asked about it, or None while the window fills."""

    def point(self, answer: Array) -> Array:
        """The point ``(m,)`` of the row just taken in, from the detector's answer."""


class Scorer(Protocol):
    """The part of :class:`tisat.detectors.base.Detector` that alarms are made from."""

    points_are_channels: ClassVar[bool]
    partial: ClassVar[bool]
    rounding: ClassVar[float]
    channels_: tuple[str, ...]
    normal_: Array
    normal_breaks_: Integers
    trained_on_: dict[str, Any]

    def points(self, series: SeriesLike, *, period: float | None = None) -> Array:
        """Points ``(T, m)`` of a series."""

    def points_and_deviations(self, series: SeriesLike, *, period: float | None = None) -> tuple[Array, Array | None]:
        """Points ``(T, m)`` and, where there are any, deviations ``(T, C)`` of each channel."""

    def point_blocks(self, checked: Series, seen: TakenIn) -> Iterator[tuple[slice, Array]]:
        """Points with deviations beside them, for all rows of a checked series in blocks; NaN where there are none."""

    def aggregate(self, points: Array) -> Array:
        """Scores ``(T,)`` of points."""

    def scores_and_views(self, points: Array) -> tuple[Array, Array]:
        """Both, from what they have in common."""

    def views(self, points: Array) -> Array:
        """Scores ``(T, V)`` of each view."""

    @property
    def momentary_views(self) -> tuple[int, ...]:
        """Numbers of the views that speak while something happens."""

    def check_series(self, series: SeriesLike, *, ignore_extra: bool = False) -> Series:
        """The series with the detector's channels, in its order; refused where it cannot be."""

    def explain(self, row: Array, point: Array) -> Explanation:
        """Why a row is unusual."""

    def bounded(self, rows: Array) -> Array:
        """Rows with values beyond all reason cut off."""

    def stream(self) -> Stream:
        """Row-by-row scoring of one entity."""

    def answers(self, windows: Array, *, exact: bool = False) -> Array:
        """What streams with windows are told about them, many at once; ``exact``: to the bit as each alone."""

    def document(self) -> tuple[dict[str, Any], Arrays]:
        """What is kept on disk, as plain values and arrays."""

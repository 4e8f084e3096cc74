"""How a detector says why: which channels, what was seen, and what was expected of them, in the user's units.

The words are made in :mod:`tisat.alarms.explanation`. This module knows no particular detector.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tisat.alarms.explanation import Explanation, shares
from tisat.gap_filling import take_in
from tisat.series import Series, SeriesLike
from tisat.utils.types import Array


class Explaining:
    """Over ``points``, ``aggregate`` and what :meth:`fit` found usual in each channel."""

    if TYPE_CHECKING:  # what a detector brings
        points_are_channels: ClassVar[bool]
        fault_kind: ClassVar[str]
        usual_: Array
        trained_on_: dict[str, Any]

        def _check_fitted(self) -> None: ...
        def _context(self) -> int | None: ...
        def _points_of_windows(self, windows: Array) -> Array: ...
        def aggregate(self, points: Array) -> Array: ...  # noqa: D102
        def bounded(self, rows: Array) -> Array: ...  # noqa: D102
        def check_series(self, series: SeriesLike, *, ignore_extra: bool = False) -> Series: ...  # noqa: D102
        def points(self, series: SeriesLike, *, period: float | None = None) -> Array: ...  # noqa: D102

    def explain(self, row: Array, point: Array) -> Explanation:
        """Why a row is unusual: kind of fault, channels, what was seen and expected in the user's units.

        Parameters
        ----------
        row : array of shape (C,)
            The values, as they came.
        point : array of shape (m,)
            The point it made of them.
        """
        self._check_fitted()
        seen = np.asarray(row, dtype=np.float64)
        return replace(self._explain(self.bounded(seen), np.asarray(point, dtype=np.float64)), seen=seen)

    def expected(self, series: SeriesLike) -> tuple[Array, Array]:
        """What is expected of each channel at each row and the usual spread, ``(T, C)`` each, in the user's units.

        It is what :meth:`explain` says of the rows: a forecast where the detector makes one, else the usual value. NaN where there is no score.
        """
        checked = self.check_series(series)
        period = self.trained_on_.get("period_seconds")
        rows, points = self.bounded(take_in(checked, period=period).filled), self.points(checked)
        expected, spread = np.full((2, *rows.shape), np.nan)
        known = ~np.isnan(self.aggregate(points))
        if type(self)._explain is Explaining._explain:
            expected[known], spread[known] = self.usual_
            return expected, spread
        for t in np.flatnonzero(known):
            why = self._explain(rows[t], points[t])
            expected[t], spread[t] = why.expected, why.spread
        return expected, spread

    def amounts(self, points: Array) -> Array | None:
        """What each channel adds to the evidence of points ``(n, C)``; None where single points do not say it."""
        return None

    def _explain(self, row: Array, point: Array) -> Explanation:
        """Override where a detector knows better than to look at contributions or to leave channels out."""
        median, spread = self.usual_
        if self.points_are_channels:
            return Explanation(self.fault_kind, shares(point**2), row, median, spread, "contribution")
        left_out = self._left_out(row)
        if left_out is not None and (left_out > 0).any():
            how = "leaving channels out of the newest row, held for a window"
            return Explanation(self.fault_kind, shares(left_out), row, median, spread, how)
        with np.errstate(over="ignore"):
            distance = ((row - median) / spread) ** 2
        return Explanation(self.fault_kind, shares(distance), row, median, spread, "distance from the usual value")

    def _left_out(self, row: Array) -> Array | None:
        """By how much the score falls when each channel is put back to its usual value ``(C,)``; None where that has no meaning.

        A row has no past here, so it is held for as many rows as the detector looks at.
        """
        context = self._context()
        if context is None or np.isnan(row).any():
            return None
        rows = np.repeat(row[None], len(row) + 1, axis=0)
        np.fill_diagonal(rows[1:], self.usual_[0])
        windows = np.repeat(rows[:, None, :], context + 1, axis=1)
        scores = self.aggregate(self._points_of_windows(windows))
        return np.asarray(scores[0] - scores[1:])

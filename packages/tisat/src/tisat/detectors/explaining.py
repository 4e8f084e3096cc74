"""How a detector says why: which channels, what was seen, and what was expected of them, in the user's units.

The words are made in :mod:`tisat.alarms.explanation`. This module knows no particular detector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tisat.alarms.explanation import Explanation, shares
from tisat.gap_filling import bounded, take_in
from tisat.series import Series
from tisat.utils.types import Array, Integers

if TYPE_CHECKING:
    from tisat.detectors.base import Detector


def expected(
    detector: Detector, series: Series, *, usual: Array | None, at: Integers | None = None
) -> tuple[Array, Array]:
    """Compute what is expected at each row and the usual spread, ``(T, C)`` each.

    ``usual``: the same at all rows; ``at``: only at these rows.
    """
    period = detector.trained_on_.get("period_seconds")
    filled = take_in(series, period=period).filled
    admitted = take_in(series, period=period, partial=detector.traits.partial)
    asked_rows = np.full(len(series), at is None)
    asked_rows[slice(0) if at is None else at] = True
    centre, spread = np.full((2, *filled.shape), np.nan)
    for block, some in detector._point_blocks(series, admitted):  # points of a long series are not held together
        points = np.ascontiguousarray(some[:, : detector.n_points_])
        places = np.flatnonzero(asked_rows[block] & ~np.isnan(detector.aggregate(points)))
        rows = block.start + places
        if usual is not None:
            centre[rows], spread[rows] = usual
            continue
        for t, row, point in zip(rows, bounded(detector, filled[rows]), points[places], strict=True):
            why = detector._explain(row, point)
            centre[t], spread[t] = why.expected, why.spread
    return centre, spread


def explain(detector: Detector, row: Array, point: Array) -> Explanation:
    """Explain a row by the contributions of its point, or by leaving channels out, or by the distance from usual values."""
    kind, (median, spread) = detector.traits.fault_kind, detector.usual_
    if detector.traits.points_are_channels:
        return Explanation(kind, shares(point**2), row, median, spread, "contribution")
    left_out = detector._left_out(row)
    if left_out is not None and (left_out > 0).any():
        how = "leaving channels out of the newest row, held for a window"
        return Explanation(kind, shares(left_out), row, median, spread, how)
    with np.errstate(over="ignore"):
        distance = ((row - median) / spread) ** 2
    return Explanation(kind, shares(distance), row, median, spread, "distance from the usual value")


def leave_one_out(detector: Detector, row: Array) -> Array | None:
    """By how much the score falls when each channel is put back to its usual value ``(C,)``; None where that has no meaning.

    A row has no past here, so it is held for as many rows as the detector looks at.
    """
    context = detector._context()
    if context is None or np.isnan(row).any():
        return None
    rows = np.repeat(row[None], len(row) + 1, axis=0)
    np.fill_diagonal(rows[1:], detector.usual_[0])
    windows = np.repeat(rows[:, None, :], context + 1, axis=1)
    scores = detector.aggregate(detector._points_of_windows(windows))
    return np.asarray(scores[0] - scores[1:])

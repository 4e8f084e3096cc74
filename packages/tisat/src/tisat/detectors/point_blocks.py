"""The points of a long series in blocks of rows, so that what is held at a time does not grow with the series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tisat.gap_filling import TakenIn, bounded, finite, stretches_of
from tisat.io.local_time import local_seconds
from tisat.series import Series
from tisat.utils.types import Array

if TYPE_CHECKING:
    from tisat.detectors.base import Detector

BLOCK = 20_000  # rows whose points are held at a time


def point_blocks(detector: Detector, series: Series, seen: TakenIn) -> Iterator[tuple[slice, Array]]:
    """Rows and their points, with deviations beside them where there are any, for all rows in order; NaN at unusable ones.

    Parameters
    ----------
    detector : Detector
        Fitted.
    series : Series
        With the detector's channels in its order.
    seen : TakenIn
        How a monitor takes it in.
    """
    width = detector.n_points_ + (0 if getattr(detector, "deviation_limits", None) is None else detector.n_channels_)
    clock = local_seconds(series) if detector.traits.clocked else None
    context, scored = detector._context(), 0

    def unknown(end: int) -> Iterator[tuple[slice, Array]]:
        for first in range(scored, end, BLOCK):
            last = min(first + BLOCK, end)
            yield slice(first, last), np.full((last - first, width), np.nan)

    for part in stretches_of(seen):
        yield from unknown(part.start)
        first = part.start
        while first < part.stop:
            # The first block has the warm-up before it. Where all earlier rows matter there is one block.
            before = 0 if context is None else min(context, first - part.start)
            last = part.stop if context is None else min(first + BLOCK + context - before, part.stop)
            rows = seen.filled[first - before : last]
            if clock is not None:
                rows = np.column_stack([rows, clock[first - before : last]])
            yield slice(first, last), finite(detector._whole_points(bounded(detector, rows))[before:])
            first = last
        scored = part.stop
    yield from unknown(len(series))


def points_and_deviations(detector: Detector, series: Series, seen: TakenIn) -> tuple[Array, Array | None]:
    """Points ``(T, m)`` and, where the detector has them, deviations ``(T, C)``: :func:`point_blocks` put together."""
    m = detector.n_points_
    points = np.empty((len(series), m))
    deviations = None if getattr(detector, "deviation_limits", None) is None else np.empty((len(series), detector.n_channels_))  # fmt: skip
    for rows, some in point_blocks(detector, series, seen):
        points[rows] = some[:, :m]
        if deviations is not None:
            deviations[rows] = some[:, m:]
    return points, deviations

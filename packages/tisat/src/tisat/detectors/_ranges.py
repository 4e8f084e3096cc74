"""Ranges, usual values and clipping bounds of the training rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.gap_filling import HUGE, REACH
from tisat.utils.types import AnyFloats, Array


def channel_ranges(parts: Sequence[AnyFloats]) -> tuple[Array, Array]:
    """Smallest value and range ``(C,)``, leaving out what is missing.

    For a channel that was constant its level, at least 1.

    Examples
    --------
    >>> low, span = channel_ranges([np.array([[0.0, 7.0], [2.0, 7.0]]), np.array([[5.0, 7.0]])])
    >>> low.tolist(), span.tolist()
    ([0.0, 7.0], [5.0, 7.0])
    """
    low = np.min([np.nanmin(part, axis=0) for part in parts], axis=0)
    high = np.max([np.nanmax(part, axis=0) for part in parts], axis=0)
    return low, np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))


def usual(parts: Sequence[Array]) -> Array:
    """Median and spread ``(2, C)`` of each channel: half the distance of the 16th to the 84th percentile, never 0."""
    columns = (np.concatenate([part[:, c] for part in parts]) for c in range(parts[0].shape[1]))  # one at a time
    low, median, high = np.array([np.nanquantile(one, [0.16, 0.5, 0.84]) for one in columns]).T
    spread = high / 2 - low / 2
    smallest, largest = (np.array([extreme(part, axis=0) for part in parts]) for extreme in (np.nanmin, np.nanmax))
    span = largest.max(axis=0) / 2 - smallest.min(axis=0) / 2
    least = np.where(span > 0, 0.01 * span, 0.01 * np.maximum(np.abs(median), 1.0))
    return np.stack([median, np.maximum(spread, least)])


def bounds(parts: Sequence[Array]) -> Array:
    """The least and the greatest value ``(2, C)`` of each channel that is taken as it is."""
    low, span = channel_ranges(parts)
    high = np.max([part.max(axis=0) for part in parts], axis=0)
    return np.stack([np.maximum(low - REACH * span, -HUGE), np.minimum(high + REACH * span, HUGE)])

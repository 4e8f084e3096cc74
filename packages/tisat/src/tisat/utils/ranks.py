"""Ranks of values, ties by their mean: scipy's ``rankdata``, without the half second that importing ``scipy.stats`` takes."""

from __future__ import annotations

import numpy as np

from tisat.utils.types import Array


def average_ranks(values: Array) -> Array:
    """Rank values ``(T,)`` from 1 on; equal ones share the mean of their ranks.

    Examples
    --------
    >>> average_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2.0)[place.reshape(-1)])

"""Mean and covariance of flat windows, summed block by block: memory does not grow with the number of windows.

It knows second moments; what is done with them is the detector's business.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.detectors._windows import blocks_of, sliding_windows
from tisat.detectors.base import Array


def window_moments(parts: Sequence[Array], *, window: int) -> tuple[Array, Array]:
    """Mean ``(d,)`` and covariance ``(d, d)`` of all windows of ``parts``, flattened to ``d = window * C``.

    Examples
    --------
    >>> mean, covariance = window_moments([np.array([[0.0], [2.0], [0.0], [2.0]])], window=1)
    >>> mean.tolist(), covariance.tolist()
    ([1.0], [[1.0]])
    """
    size = window * parts[0].shape[1]
    n, total, products = 0, np.zeros(size), np.zeros((size, size))
    for part in parts:
        for _, block in blocks_of(sliding_windows(part, window=window)):
            flat = block.reshape(len(block), -1)
            n += len(flat)
            total += flat.sum(axis=0)
            products += flat.T @ flat
    mean = total / n
    covariance = products / n - np.outer(mean, mean)
    return mean, (covariance + covariance.T) / 2

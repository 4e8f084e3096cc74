"""Moments summed block by block, and the ridge regression they determine: memory does not grow with the number of rows."""

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


class RidgeMoments:
    """Sums over rows of inputs ``(n, L)`` and targets ``(n, k)``, and the ridge solution they determine."""

    def __init__(self, n_inputs: int, n_targets: int) -> None:
        self._rows = 0
        self._inputs = np.zeros(n_inputs)
        self._targets = np.zeros(n_targets)
        self._products = np.zeros((n_inputs, n_inputs))
        self._cross = np.zeros((n_inputs, n_targets))

    def add(self, inputs: Array, targets: Array) -> None:
        """Take in a block of rows."""
        self._rows += len(inputs)
        self._inputs += inputs.sum(axis=0)
        self._targets += targets.sum(axis=0)
        self._products += inputs.T @ inputs
        self._cross += inputs.T @ targets

    def solve(self, *, ridge: float) -> tuple[Array, Array]:
        """Weights ``(L, k)`` and intercepts ``(k,)``.

        The penalty is ``ridge`` times the mean variance of the inputs; the intercept is not penalised. Inputs that
        never move get weight 0.
        """
        mean_input, mean_target = self._inputs / self._rows, self._targets / self._rows
        covariance = self._products / self._rows - np.outer(mean_input, mean_input)
        covariance[np.diag_indices_from(covariance)] += ridge * np.trace(covariance) / len(covariance) + 1e-12
        right = self._cross / self._rows - np.outer(mean_input, mean_target)
        weights = np.asarray(np.linalg.solve(covariance, right), dtype=np.float64)
        return weights, mean_target - mean_input @ weights

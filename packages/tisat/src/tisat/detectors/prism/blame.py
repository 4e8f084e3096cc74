"""Which channel a deviation from the others comes from: a fault of one makes its partners deviate too."""

from __future__ import annotations

import numpy as np

from tisat.detectors.base import Array


def fault_patterns(weights: Array, spread: Array) -> Array:
    """What a fault of each channel does to the deviations of all ``(C, C)``, each row of length 1.

    Parameters
    ----------
    weights : array of shape (K C, C)
        Of the regression of each channel (column) on K means of the others.
    spread : array of shape (C,)
        In whose units deviations are.

    Examples
    --------
    >>> fault_patterns(np.array([[0.0, 0.75], [0.0, 0.0]]), np.ones(2)).round(2).tolist()
    [[0.8, -0.6], [0.0, 1.0]]
    """
    channels = len(spread)
    together = np.eye(channels) - weights.reshape(-1, channels, channels).sum(axis=0)
    patterns = together / spread
    return np.asarray(patterns / np.linalg.norm(patterns, axis=1, keepdims=True))


def blamed(deviations: Array, patterns: Array) -> Array:
    """Squares ``(n, C)`` of deviations, with what the fault of one channel explains best given to that channel; the sums are the same.

    Examples
    --------
    >>> blamed(np.array([[4.0, -3.0]]), np.array([[0.8, -0.6], [0.0, 1.0]])).round(6).tolist()
    [[25.0, 0.0]]
    """
    strengths = deviations @ patterns.T
    rows = np.arange(len(deviations))
    best = np.argmax(np.abs(strengths), axis=1)
    strength = strengths[rows, best]
    out = (deviations - strength[:, None] * patterns[best]) ** 2
    out[rows, best] += strength**2
    return np.asarray(out)

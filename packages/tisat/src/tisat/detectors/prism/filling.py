"""Missing values of a row from the others: the conditional mean of a normal distribution."""

from __future__ import annotations

import numpy as np

from tisat.detectors.base import Array


def conditional_means(rows: Array, mean: Array, covariance: Array) -> Array:
    """Rows ``(T, C)`` with each missing value replaced by its mean given the known values of its row.

    Examples
    --------
    >>> conditional_means(np.array([[2.0, np.nan]]), np.zeros(2), np.array([[1.0, 0.5], [0.5, 1.0]])).tolist()
    [[2.0, 1.0]]
    """
    missing = np.isnan(rows)
    if not missing.any():
        return rows
    rows = rows.copy()
    some = np.flatnonzero(missing.any(axis=1))
    patterns, which = np.unique(missing[some], axis=0, return_inverse=True)
    for number, gaps in enumerate(patterns):
        here = some[which.ravel() == number]
        present = ~gaps
        guess = np.broadcast_to(mean[gaps], (len(here), int(gaps.sum())))
        if present.any():
            solved = np.linalg.solve(covariance[np.ix_(present, present)], covariance[np.ix_(present, gaps)])
            guess = mean[gaps] + (rows[np.ix_(here, np.flatnonzero(present))] - mean[present]) @ solved
        rows[np.ix_(here, np.flatnonzero(gaps))] = guess
    return rows


def filling_weights(covariance: Array) -> Array:
    """Weights ``(C, C)`` with which each channel is filled from all others, 0 for itself."""
    precision = np.linalg.inv(covariance)
    weights = -precision / np.diag(precision)[:, None]
    np.fill_diagonal(weights, 0.0)
    return np.asarray(weights)

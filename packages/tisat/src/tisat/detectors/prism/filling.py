"""Missing values of a row from the others: the conditional mean of a normal distribution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tisat.detectors.base import Array
from tisat.utils.types import Flags, Integers


def alike(missing: Flags) -> Iterator[tuple[Integers, Flags]]:
    """The rows of ``missing`` (T, C) that lack the same values, and which those are.

    Examples
    --------
    >>> [(rows.tolist(), gaps.tolist()) for rows, gaps in alike(np.array([[True, False], [False, False], [True, False]]))]
    [([0, 2], [True, False])]
    """
    some = np.flatnonzero(missing.any(axis=1))
    words = np.packbits(missing[some], axis=1)  # np.unique of rows of flags takes ten times as long
    _, first, which = np.unique(words.view(f"V{words.shape[1]}").ravel(), return_index=True, return_inverse=True)
    for number, place in enumerate(first):
        yield some[which == number], missing[some[place]]


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
    for here, gaps in alike(missing):
        lost, present = np.flatnonzero(gaps), np.flatnonzero(~gaps)
        guess = np.broadcast_to(mean[lost], (len(here), len(lost)))
        if len(present):
            solved = np.linalg.solve(covariance[present][:, present], covariance[present][:, lost])
            guess = mean[lost] + (rows[here][:, present] - mean[present]) @ solved
        rows[here[:, None], lost] = guess
    return rows


def filling_weights(covariance: Array) -> Array:
    """Weights ``(C, C)`` with which each channel is filled from all others, 0 for itself."""
    precision = np.linalg.inv(covariance)
    weights = -precision / np.diag(precision)[:, None]
    np.fill_diagonal(weights, 0.0)
    return np.asarray(weights)

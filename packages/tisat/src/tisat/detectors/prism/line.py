"""The forecast behind the error views: a ridge line through each channel's last rows, measured from the last of them.

The same forecaster as :class:`tisat.detectors.LinearLast`, fitted from lagged products in one pass over the rows instead
of from all windows: its cost grows with ``rows * lags``, not with ``rows * lags ** 2``.

What the line is asked to weigh is cut off at the largest it saw in training: how far a row lay from one of the last rows
before it. So a gross fault is not remembered as gross for as long as it stays among the last rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tisat.detectors.base import Array
from tisat.utils.compiled import compiled
from tisat.utils.types import Integers


def _products(values: Array, lags: int) -> tuple[Array, Array]:
    """Sums over all stretches of ``lags + 1`` values: of their products (lags + 1, lags + 1), and of themselves."""
    n = len(values) - lags
    first, last = values[:lags], values[n:]
    # Along a diagonal the next entry loses the first product and gains one at the end. Read with one column more a row than
    # there are, diagonals are columns.
    table = np.zeros((lags + 1, 2 * lags + 1))
    table[0, : lags + 1] = [values[:n] @ values[j : j + n] for j in range(lags + 1)]
    table[1:, 1 : lags + 1] = np.outer(last, last) - np.outer(first, first)
    diagonals = as_strided(table, (lags + 1, lags), (table.strides[0] + table.strides[1], table.strides[1]))
    np.cumsum(diagonals, axis=0, out=diagonals)
    upper = np.triu(table[:, : lags + 1])
    sums = values[:n].sum() + np.concatenate([[0.0], np.cumsum(last - first)])
    return upper + np.triu(upper, 1).T, sums


@compiled()
def line_forecasts(
    rows: Array, at: Integers, weights: Array, intercepts: Array, farthest: Array, out: Array
) -> None:  # pragma: no cover - compiled
    """Forecast of each row asked about, from the rows before it."""
    lags = len(weights) + 1
    for i in range(len(at)):
        last, forecast = rows[at[i] - 1], out[i]
        for c in range(rows.shape[1]):
            forecast[c] = last[c] + intercepts[c]
        for j in range(lags - 1):
            row, weight = rows[at[i] - lags + j], weights[j]
            for c in range(rows.shape[1]):
                forecast[c] += weight[c] * min(max(row[c] - last[c], -farthest[c]), farthest[c])


def _farthest(values: Array, lags: int) -> float:
    """How far a value lies at most from one of the ``lags - 1`` before it."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    newest = lags // 2 - (lags % 2 == 0)  # windows end at each value
    high = maximum_filter1d(values, lags, origin=newest)[lags - 1 :] - values[lags - 1 :]
    low = values[lags - 1 :] - minimum_filter1d(values, lags, origin=newest)[lags - 1 :]
    return max(float(high.max()), float(low.max()))


def fit_line(parts: Sequence[Array], *, lags: int, ridge: float) -> tuple[Array, Array, Array]:
    """Weights ``(lags - 1, C)``, oldest row first, intercepts ``(C,)`` and largest differences ``(C,)`` of scaled parts.

    Examples
    --------
    >>> wave = np.sin(np.arange(400.0))[:, None]
    >>> line = fit_line([wave], lags=10, ridge=1e-9)
    >>> bool(np.abs(forecasts(wave, np.arange(10, 400), *line) - wave[10:]).max() < 1e-3)
    True
    """
    channels = parts[0].shape[1]
    centre = np.sum([part.sum(axis=0) for part in parts], axis=0) / sum(map(len, parts))
    from_last = np.zeros((lags, lags + 1))  # a stretch -> its inputs and its target, both measured from its last input
    from_last[: lags - 1, : lags - 1] = np.eye(lags - 1)
    from_last[lags - 1, lags] = 1.0
    from_last[:, lags - 1] -= 1.0
    weights, intercepts, farthest = np.zeros((lags - 1, channels)), np.zeros(channels), np.zeros(channels)
    long = [part for part in parts if len(part) > lags]
    n = sum(len(part) - lags for part in long)
    for c in range(channels):
        products, sums = np.zeros((lags + 1, lags + 1)), np.zeros(lags + 1)
        for part in long:
            values = np.ascontiguousarray(part[:, c] - centre[c])
            some, few = _products(values, lags)
            farthest[c] = max(farthest[c], _farthest(values, lags))
            products += some
            sums += few
        mean = from_last @ sums / n
        covariance = from_last @ products @ from_last.T / n - np.outer(mean, mean)
        gram = covariance[:-1, :-1].copy()
        gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram) + 1e-12
        weights[:, c] = np.linalg.solve(gram, covariance[:-1, -1])
        intercepts[c] = mean[-1] - mean[:-1] @ weights[:, c]
    return weights, intercepts, farthest


def forecasts(rows: Array, at: Integers, weights: Array, intercepts: Array, farthest: Array) -> Array:
    """Forecasts ``(n, C)`` of the rows ``at``, each at least ``lags`` rows after the first."""
    out = np.empty((len(at), rows.shape[1]))
    line_forecasts(rows, at, weights, intercepts, farthest, out)
    return out

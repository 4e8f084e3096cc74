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

TOGETHER, MOST = 1 << 18, 32  # values of channels that are looked at together, and channels


def _products(values: Array, lags: int) -> tuple[Array, Array]:
    """Sums over all stretches of ``lags + 1`` values of each channel ``(c, T)``: of their products (c, lags + 1, lags + 1), and of themselves."""
    n = values.shape[1] - lags
    first, last = values[:, :lags], values[:, n:]
    # Along a diagonal the next entry loses the first product and gains one at the end. Read with one column more a row than
    # there are, diagonals are columns.
    table = np.zeros((len(values), lags + 1, 2 * lags + 1))
    for j in range(lags + 1):
        np.vecdot(values[:, :n], values[:, j : j + n], out=table[:, 0, j])
    np.multiply(last[:, :, None], last[:, None], out=table[:, 1:, 1 : lags + 1])
    table[:, 1:, 1 : lags + 1] -= first[:, :, None] * first[:, None]
    each, row, column = table.strides
    diagonals = as_strided(table, (len(values), lags + 1, lags), (each, row + column, column))
    np.cumsum(diagonals, axis=1, out=diagonals)
    square = table[:, :, : lags + 1]
    above = np.tri(lags + 1, dtype=np.bool_).T  # with the diagonal
    sums = np.repeat(values[:, :n].sum(axis=1, keepdims=True), lags + 1, axis=1)
    sums[:, 1:] += np.cumsum(last - first, axis=1)
    return np.where(above, square, square.transpose(0, 2, 1)), sums


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


def _farthest(values: Array, lags: int) -> Array:
    """How far a value of each channel ``(c, T)`` lies at most from one of the ``lags - 1`` before it."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    newest = lags // 2 - (lags % 2 == 0)  # windows end at each value
    high = maximum_filter1d(values, lags, origin=newest)[:, lags - 1 :] - values[:, lags - 1 :]
    low = values[:, lags - 1 :] - minimum_filter1d(values, lags, origin=newest)[:, lags - 1 :]
    farthest: Array = np.maximum(high.max(axis=1), low.max(axis=1))
    return farthest


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
    weights, intercepts, farthest = np.zeros((lags - 1, channels)), np.zeros(channels), np.zeros(channels)
    long = [part for part in parts if len(part) > lags]
    n = sum(len(part) - lags for part in long)
    step = min(max(1, TOGETHER // max(map(len, long), default=1)), MOST)
    used, newest = np.append(np.arange(lags - 1), lags), lags - 1  # inputs and target are measured from the last input
    for start in range(0, channels, step):
        some = slice(start, min(start + step, channels))
        products, sums = np.zeros((some.stop - start, lags + 1, lags + 1)), np.zeros((some.stop - start, lags + 1))
        for part in long:
            values = np.ascontiguousarray((part[:, some] - centre[some]).T)
            of_part = _products(values, lags)
            products += of_part[0]
            sums += of_part[1]
            farthest[some] = np.maximum(farthest[some], _farthest(values, lags))
        mean = (sums[:, used] - sums[:, newest, None]) / n
        from_last = products[:, used] - products[:, newest, None]
        from_last = from_last[:, :, used] - from_last[:, :, newest, None]
        covariance = from_last / n - mean[:, :, None] * mean[:, None]
        gram = covariance[:, :-1, :-1].copy()
        diagonal = np.arange(lags - 1)
        penalty = ridge * np.trace(gram, axis1=1, axis2=2) / (lags - 1) + 1e-12
        gram[:, diagonal, diagonal] += penalty[:, None]
        weights[:, some] = np.linalg.solve(gram, covariance[:, :-1, -1, None])[:, :, 0].T
        intercepts[some] = [one[-1] - one[:-1] @ weights[:, c] for c, one in enumerate(mean, start)]
    return weights, intercepts, farthest


def forecasts(rows: Array, at: Integers, weights: Array, intercepts: Array, farthest: Array) -> Array:
    """Forecasts ``(n, C)`` of the rows ``at``, each at least ``lags`` rows after the first."""
    out = np.empty((len(at), rows.shape[1]))
    line_forecasts(rows, at, weights, intercepts, farthest, out)
    return out

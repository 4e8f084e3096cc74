"""Exact nearest neighbours, compiled: over sorted numbers, and over all points.

These functions trust their arguments; they do not know what a point means.
"""

from __future__ import annotations

import numpy as np

from tisat._compiled import compiled
from tisat._nearest import insert
from tisat._types import Array, Integers, Singles
from tisat.sequential._kernels import first_not_below


@compiled()
def nearest_sorted(queries: Array, ordered: Array, k: int, distance: Array, where: Integers) -> None:
    """The k-th smallest ``|query - value|`` over sorted values: two pointers walk outwards from the query's place."""
    n = len(ordered)
    for i in range(len(queries)):
        right = first_not_below(ordered, n, queries[i])
        left = right - 1
        last = -1
        for _ in range(k):
            if left < 0 or (right < n and ordered[right] - queries[i] <= queries[i] - ordered[left]):
                last = right
                right += 1
            else:
                last = left
                left -= 1
        distance[i] = abs(queries[i] - ordered[last])
        where[i] = last


@compiled()
def _approximate(query: Singles, single: Singles, squares: Singles) -> None:
    """Squared distances in float32, one coordinate after the other: the compiler makes eight or sixteen at once."""
    m, n = single.shape
    for j in range(n):
        step = query[0] - single[0, j]
        squares[j] = step * step
    for c in range(1, m):
        q = query[c]
        for j in range(n):
            step = q - single[c, j]
            squares[j] += step * step


@compiled()
def _kth_smallest(values: Singles, k: int, best: Array, index: Integers) -> float:
    """The k-th smallest value."""
    best[:] = np.inf
    for j in range(len(values)):
        if values[j] < best[k - 1]:
            insert(best, index, values[j], j)
    return float(best[k - 1])


@compiled()
def nearest_scanned(
    queries: Array,  # (n, m)
    points: Array,  # (N, m)
    centre: Array,  # (m,)
    single: Singles,  # (m, N): points less centre, in float32
    longest: float,  # length of the longest point less centre
    k: int,
    distance: Array,
    where: Integers,
) -> None:
    """Exact k-th nearest neighbours: every point in float32, those that rounding leaves in doubt again in float64.

    With u = 2^-24, rounding the coordinates moves a distance by at most u (|query| + |point|), and summing m squares in
    float32 changes it by a factor of at most 1 + (m + 4) u; a point whose float32 distance exceeds the k-th by more than
    both, twice, cannot be nearer.
    """
    n, m = points.shape
    squares = np.empty(n, dtype=np.float32)
    query = np.empty(m, dtype=np.float32)
    best = np.empty(k)
    index = np.empty(k, dtype=np.int64)
    unit = 2.0**-24
    for i in range(len(queries)):
        length = 0.0
        for c in range(m):
            step = queries[i, c] - centre[c]
            length += step * step
            query[c] = step
        limit = np.inf
        if length < 1e30:  # beyond it float32 overflows and every point is measured in float64
            _approximate(query, single, squares)
            kth = np.sqrt(_kth_smallest(squares, k, best, index))
            limit = (kth * (1.0 + 4.0 * (m + 4) * unit) + 4.0 * unit * (np.sqrt(length) + longest)) ** 2
        else:
            squares[:] = 0.0
        best[:] = np.inf
        index[:] = -1
        for j in range(n):
            if squares[j] <= limit:
                total = 0.0
                for c in range(m):
                    step = queries[i, c] - points[j, c]
                    total += step * step
                if total < best[k - 1]:
                    insert(best, index, total, j)
        distance[i] = np.sqrt(best[k - 1])
        where[i] = index[k - 1]

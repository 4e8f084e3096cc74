"""Exact nearest neighbours, compiled: over sorted numbers, over all points, and along a leading axis.

These functions trust their arguments; they do not know what a point means.
"""

from __future__ import annotations

import numpy as np

from tisat._compiled import compiled
from tisat.sequential._kernels import Floats, Integers, Singles, first_not_below


@compiled()
def nearest_sorted(queries: Floats, ordered: Floats, k: int, distance: Floats, where: Integers) -> None:
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
def _kth_smallest(values: Singles, k: int, best: Floats) -> float:
    """The k-th smallest value."""
    best[:] = np.inf
    for j in range(len(values)):
        if values[j] < best[k - 1]:
            place = k - 1
            while place > 0 and best[place - 1] > values[j]:
                best[place] = best[place - 1]
                place -= 1
            best[place] = values[j]
    return float(best[k - 1])


@compiled()
def nearest_scanned(
    queries: Floats,  # (n, m)
    points: Floats,  # (N, m)
    centre: Floats,  # (m,)
    single: Singles,  # (m, N): points less centre, in float32
    longest: float,  # length of the longest point less centre
    k: int,
    distance: Floats,
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
            kth = np.sqrt(_kth_smallest(squares, k, best))
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
                    place = k - 1
                    while place > 0 and best[place - 1] > total:
                        best[place] = best[place - 1]
                        index[place] = index[place - 1]
                        place -= 1
                    best[place] = total
                    index[place] = j
        distance[i] = np.sqrt(best[k - 1])
        where[i] = index[k - 1]


@compiled()
def rotate(point: Floats, rotation: Floats, rotated: Floats) -> None:
    """``rotated = point @ rotation``, summed in order so that one row and many agree."""
    for j in range(len(rotated)):
        total = 0.0
        for c in range(len(point)):
            total += point[c] * rotation[c, j]
        rotated[j] = total


@compiled()
def nearest_pruned(
    queries: Floats,  # (n, m), in the original axes
    points: Floats,  # (N, m), in the original axes, in the order of their first rotated coordinate
    rotated: Floats,  # (N, r) leading rotated coordinates, first one ascending
    rotation: Floats,  # (m, r), orthonormal columns
    rounding: float,  # what rounding can add to a rotated distance, relative to the length of the points
    longest: float,  # length of the longest point
    k: int,
    distance: Floats,
    where: Integers,
) -> None:
    """Exact k-th nearest neighbours: walk outwards along the leading axis, skip what the leading axes already exclude.

    A distance in a few orthonormal coordinates is a lower bound of the distance in all, so a skipped point cannot be
    nearer; the distance itself is summed in the original axes.
    """
    n, m = points.shape
    r = rotated.shape[1]
    q = np.empty(r)
    best = np.empty(k)
    index = np.empty(k, dtype=np.int64)
    for i in range(len(queries)):
        rotate(queries[i], rotation, q)
        best[:] = np.inf
        index[:] = -1
        length = 0.0
        for c in range(m):
            length += queries[i, c] * queries[i, c]
        slack = rounding * (np.sqrt(length) + longest)
        limit = np.inf
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            if rotated[middle, 0] < q[0]:
                low = middle + 1
            else:
                high = middle
        right = low
        left = low - 1
        while left >= 0 or right < n:
            if left < 0 or (right < n and rotated[right, 0] - q[0] <= q[0] - rotated[left, 0]):
                row = right
                right += 1
            else:
                row = left
                left -= 1
            step = rotated[row, 0] - q[0]
            bound = step * step
            if bound > limit:
                break  # everything further along the leading axis is further still
            for c in range(1, r):
                step = rotated[row, c] - q[c]
                bound += step * step
            if bound > limit:
                continue
            total = 0.0
            for c in range(m):
                step = queries[i, c] - points[row, c]
                total += step * step
            if total < best[k - 1]:
                j = k - 1
                while j > 0 and best[j - 1] > total:
                    best[j] = best[j - 1]
                    index[j] = index[j - 1]
                    j -= 1
                best[j] = total
                index[j] = row
                limit = (np.sqrt(best[k - 1]) + slack) ** 2
        distance[i] = np.sqrt(best[k - 1])
        where[i] = index[k - 1]

"""Exact nearest neighbours: the one search of the package, for windows, residuals and codes alike.

A few rows are measured against every stored one, in double. For many, candidates are found with one matrix product a block of
rows, in single precision; their distances are then computed from the differences in double, and where the rounding of the product
could have cost a true neighbour the row is measured against all. The distance itself is always summed by one loop, so a row
finds the same alone and in a crowd, to the bit, and a distance of 0 is 0. Trees are of no use in tens and hundreds of dimensions.
Nothing here knows what the points mean.
"""

from __future__ import annotations

import numpy as np

from tisat.utils.compiled import compiled
from tisat.utils.types import AnyArray, Array, Flags, Integers, Singles

BLOCK_DISTANCES = 500_000  # distances held at a time: 2 MB, near the processor
WORD = 8  # flags read at once
SPARE = 8  # candidates beyond k: rounding in the matrix product must not cost a true neighbour
HEAD = 8  # numbers of a stored row that are looked at first: one line of the processor's cache
GROUPS = 256  # of stored rows, of each of which the least is kept
ROUNDED = 1.0 + 1e-9  # far beyond what the order of a sum can change
FEW_ROWS = 32  # fewer are measured against all: converting what is stored would cost more


@compiled()
def insert(values: AnyArray, owners: Integers, value: float, owner: int) -> None:  # pragma: no cover - compiled
    """Put ``value`` in its place among ascending ``values``, with its ``owner``.

    The largest goes. It must be below the last.
    """
    slot = len(values) - 1
    while slot > 0 and values[slot - 1] > value:
        values[slot] = values[slot - 1]
        owners[slot] = owners[slot - 1]
        slot -= 1
    values[slot] = value
    owners[slot] = owner


@compiled(reorder=True)  # several sums at once, the same for every batch
def _square(first: Array, second: Array) -> float:  # pragma: no cover - compiled
    square = 0.0
    for f in range(len(first)):
        square += (first[f] - second[f]) ** 2
    return square


@compiled(reorder=True)
def _of_all(
    rows: Array, stored: Array, first: Integers, last: Integers, part: Array, squares: Array, indices: Integers
) -> None:  # pragma: no cover - compiled
    """The nearest stored rows outside ``[first, last)``: those are measured whose first numbers alone are not too far.

    ``part`` (N,) is room for that. Principal components come in the order of their variance, and few are measured.
    """
    k = squares.shape[1]
    wide = rows.shape[1] >= HEAD
    for i in range(len(rows)):
        row, closest = rows[i], -1
        for j in range(len(stored)):
            far, other = 0.0, stored[j]
            if wide:
                for f in range(HEAD):
                    far += (row[f] - other[f]) * (row[f] - other[f])
            part[j] = far
            if (closest < 0 or far < part[closest]) and not first[i] <= j < last[i]:
                closest = j
        limit = np.inf
        if k == 1 and closest >= 0:
            limit = _square(row, stored[closest]) * ROUNDED
        for j in range(len(stored)):
            if not part[j] > limit and not first[i] <= j < last[i]:
                square = _square(row, stored[j])
                if square < squares[i, k - 1]:
                    insert(squares[i], indices[i], square, j)
                    limit = min(limit, squares[i, k - 1] * ROUNDED)


def heads_of(stored: Array) -> Array:
    """The first numbers of each stored row ``(HEAD, N)``, as :func:`closest` looks at them."""
    return np.ascontiguousarray(stored[:, :HEAD].T)


@compiled(reorder=True)
def closest(row: Array, stored: Array, heads: Array, part: Array) -> int:  # pragma: no cover - compiled
    """The nearest stored row, as :func:`nearest` finds it.

    ``heads`` (HEAD, N) is read first, ``part`` (N,) is room for that.
    """
    count = len(part)
    lows = np.full(GROUPS, np.inf)  # of every GROUPS-th row: they are found side by side, the least of all one by one
    for first in range(0, count, GROUPS):
        some = part[first : first + GROUPS]
        for j in range(len(some)):
            some[j] = 0.0
        for f in range(0, len(heads) - 3, 4):
            a, b, c, d = row[f], row[f + 1], row[f + 2], row[f + 3]
            some_a, some_b = heads[f, first : first + GROUPS], heads[f + 1, first : first + GROUPS]
            some_c, some_d = heads[f + 2, first : first + GROUPS], heads[f + 3, first : first + GROUPS]
            for j in range(len(some)):
                near = (a - some_a[j]) * (a - some_a[j]) + (b - some_b[j]) * (b - some_b[j])
                some[j] += near + (c - some_c[j]) * (c - some_c[j]) + (d - some_d[j]) * (d - some_d[j])
        for j in range(len(some)):
            lows[j] = some[j] if some[j] < lows[j] else lows[j]
    place, least = 0, np.inf
    for g in range(GROUPS):
        if lows[g] < lows[place]:
            place = g
    for j in range(place, count, GROUPS):
        if part[j] < part[place]:
            place = j
    limit = _square(row, stored[place]) * ROUNDED
    for g in range(GROUPS):
        if lows[g] <= limit:
            for j in range(g, count, GROUPS):
                if part[j] <= limit:
                    square = _square(row, stored[j])
                    if square < least or (square == least and j < place):  # of equals the first, as in :func:`nearest`
                        place, least = j, square
                        limit = min(limit, least * ROUNDED)
    return place


@compiled()
def _of_candidates(
    rough: Singles,
    rows: Array,
    stored: Array,
    first: Integers,
    last: Integers,
    bound: Array,
    squares: Array,
    indices: Integers,
) -> Flags:  # pragma: no cover - compiled
    """The nearest stored rows outside ``[first, last)``, measured among the roughly nearest; for which rows they are certain.

    ``rough`` is the squared distance without the row's own, and at most ``bound - norm`` wrong.
    """
    count = min(squares.shape[1] + SPARE, rough.shape[1])
    certain = np.ones(len(rows), dtype=np.bool_)
    near = np.empty(count, dtype=rough.dtype)
    who = np.empty(count, dtype=np.int64)
    for i in range(len(rows)):
        near[:] = np.inf
        who[:] = -1
        for j in range(rough.shape[1]):
            value = rough[i, j]
            if value < near[count - 1] and not first[i] <= j < last[i]:
                insert(near, who, value, j)
        for candidate in who:
            if candidate >= 0:
                square = _square(rows[i], stored[candidate])
                if square < squares[i, -1]:
                    insert(squares[i], indices[i], square, candidate)
        if who[count - 1] >= 0 and count < rough.shape[1]:  # others were left out: could one of them be nearer?
            certain[i] = squares[i, -1] + bound[i] < near[count - 1]
    return certain


@compiled()
def _of_marked(
    near: Flags, words: AnyArray, rows: Array, stored: Array, squares: Array, indices: Integers
) -> None:  # pragma: no cover - compiled
    """The nearest of those that ``near`` (n, N) marks.

    ``words`` (n, N / 8) are the same flags, eight at a time.
    """
    for i in range(len(rows)):
        for word in range(words.shape[1]):
            if words[i, word] != 0:
                for j in range(WORD * word, WORD * word + WORD):
                    if near[i, j]:
                        square = _square(rows[i], stored[j])
                        if square < squares[i, 0]:
                            squares[i, 0] = square
                            indices[i, 0] = j


def _closest_one(
    rough: Singles, rows: Array, stored: Array, first: Integers, last: Integers, rounding: Array, squares: Array, indices: Integers
) -> Flags:  # fmt: skip
    """:func:`_of_candidates` for one neighbour, with whole-array operations: all that rounding could have put first are measured."""
    for i in np.flatnonzero(first < last):
        rough[i, first[i] : last[i]] = np.inf
    lowest = rough.min(axis=1)
    bound = np.nextafter((lowest + 2.0 * rounding).astype(rough.dtype), np.array(np.inf, dtype=rough.dtype))
    near = rough <= bound[:, None]
    known = np.isfinite(lowest)
    near[~known] = False
    _of_marked(near, near.view(np.uint64), rows, stored, squares, indices)
    certain: Flags = known | np.isposinf(lowest)
    return certain


def _search(rows: Array, stored: Array, first: Integers, last: Integers, squares: Array, indices: Integers) -> Flags:
    """Fill the nearest by products in single precision, measured from the middle of what is stored; for which rows they are certain."""
    centre, (count, width) = stored.mean(axis=0), stored.shape
    # What is stored, and its squared length as one more column: the product then has the sum. Whole words, filled up with what is far away.
    single = np.zeros((-(-count // WORD) * WORD, width + 1), dtype=np.float32)
    single[:count, :width] = stored - centre
    norms = np.einsum("nd,nd->n", single, single, dtype=np.float64)
    single[:, width] = norms
    single[count:, width] = np.inf
    longest = float(np.sqrt(norms.max()))
    unit = float(np.finfo(np.float32).eps) * (
        stored.shape[1] + 8
    )  # what a sum of d products of rounded numbers can lose, relative
    certain = np.empty(len(rows), dtype=np.bool_)
    step = max(1, BLOCK_DISTANCES // count)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        queries, apart = np.ascontiguousarray(rows[block]), rows[block] - centre
        lengths = np.sqrt(np.einsum("nd,nd->n", apart, apart))
        rounding = unit * longest * (2.0 * lengths + longest)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # beyond single precision: never certain, measured against all
            asked = np.ones((len(apart), width + 1), dtype=np.float32)
            asked[:, :width] = -2.0 * apart
            rough = asked @ single.T
        arguments = (rough, queries, stored, first[block], last[block])
        if squares.shape[1] == 1:
            certain[block] = _closest_one(*arguments, rounding, squares[block], indices[block])
        else:
            certain[block] = _of_candidates(*arguments, rounding - lengths**2, squares[block], indices[block])
        certain[block] &= lengths < 1e18 / max(longest, 1.0)
    return certain


def nearest(
    rows: Array, stored: Array, *, k: int, skip: tuple[Integers, Integers] | None = None
) -> tuple[Array, Integers]:
    """Distances ``(n, k)``, ascending, and indices of the ``k`` nearest of ``stored`` ``(N, d)`` to ``rows`` ``(n, d)``.

    Parameters
    ----------
    rows, stored : arrays
    k : int
    skip : pair of integer arrays of shape (n,), optional
        For each row the range ``[first, last)`` of stored rows it must not find. Where fewer than ``k`` are left the
        distance is infinite and the index -1.

    Examples
    --------
    >>> distances, indices = nearest(np.array([[0.0]]), np.array([[3.0], [1.0], [-2.0]]), k=2)
    >>> distances.tolist(), indices.tolist()
    ([[1.0, 2.0]], [[1, 2]])
    """
    stored, rows = np.ascontiguousarray(stored), np.ascontiguousarray(rows)
    nothing = np.zeros(len(rows), np.int64)
    first, last = skip if skip is not None else (nothing, nothing)
    squares, indices = np.full((len(rows), k), np.inf), np.full((len(rows), k), -1, dtype=np.int64)
    part = np.empty(len(stored))
    if len(rows) < FEW_ROWS:
        _of_all(rows, stored, first, last, part, squares, indices)
        return np.sqrt(squares), indices
    again = np.flatnonzero(~_search(rows, stored, first, last, squares, indices))
    if len(again):
        some, which = np.full((len(again), k), np.inf), np.full((len(again), k), -1, dtype=np.int64)
        _of_all(rows[again], stored, first[again], last[again], part, some, which)
        squares[again], indices[again] = some, which
    return np.sqrt(squares), indices


@compiled()
def nearest_sorted(
    queries: Array, ordered: Array, k: int, distance: Array, where: Integers
) -> None:  # pragma: no cover
    """The k-th smallest ``|query - value|`` over sorted values: two pointers walk outwards from the query's place."""
    n = len(ordered)
    for i in range(len(queries)):
        right = np.searchsorted(ordered, queries[i])
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

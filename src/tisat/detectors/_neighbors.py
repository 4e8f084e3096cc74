"""Exact nearest neighbours among stored windows, and the detectors built on them.

Candidates are found with one matrix product a block of rows, in single precision; their distances are then computed
again from the differences in double, so that a row scores the same alone and in a crowd and a distance of 0 is 0. Where
the rounding of the product could have cost a true neighbour the row is searched again in double. Trees are of no use in
hundreds of dimensions; the number of stored windows is what cost is made of, and ``max_windows`` bounds it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tisat._compiled import compiled
from tisat._nearest import insert
from tisat._types import Flags, Integers
from tisat._validation import check_integer
from tisat.base import Array
from tisat.detectors._windows import StandardWindowDetector, blocks_of, sliding_windows, training_windows
from tisat.errors import SeriesError
from tisat.parameters import integer, learned

BLOCK_DISTANCES = 1_000_000  # distances held at a time: 4 MB, near the processor
SPARE = 8  # candidates beyond k: rounding in the matrix product must not cost a true neighbour
FEW_ROWS = 32  # fewer are searched in double at once: converting what is stored would cost more


@compiled(reorder=True)  # several sums at once, the same for every batch
def _distance(first: Array, second: Array) -> float:  # pragma: no cover - compiled
    square = 0.0
    for f in range(len(first)):
        square += (first[f] - second[f]) ** 2
    return float(np.sqrt(square))


@compiled()
def _closest(
    rough: Array, rows: Array, stored: Array, k: int, spare: int, first: Integers, last: Integers, rounding: Array
) -> tuple[Array, Integers, Flags]:  # pragma: no cover - compiled
    """The k nearest stored rows outside ``[first, last)`` by exact distance, chosen among the roughly nearest.

    ``rough`` is the squared distance without the row's own norm, wrong by at most ``rounding``. The last array says for
    which rows no other stored row can be nearer than those chosen.
    """
    n, size = rough.shape
    wanted = min(k + spare, size)
    distances = np.full((n, k), np.inf)
    indices = np.full((n, k), -1)
    certain = np.ones(n, dtype=np.bool_)
    near = np.empty(wanted, dtype=rough.dtype)
    who = np.empty(wanted, dtype=np.int64)
    for i in range(n):
        near[:] = np.inf
        who[:] = -1
        for j in range(size):
            value = rough[i, j]
            if value < near[wanted - 1] and not first[i] <= j < last[i]:
                insert(near, who, value, j)
        for candidate in who:
            if candidate < 0:
                continue
            distance = _distance(rows[i], stored[candidate])
            if distance < distances[i, k - 1]:
                insert(distances[i], indices[i], distance, candidate)
        if who[wanted - 1] >= 0 and wanted < size:  # others were left out: could one of them be nearer?
            norm = 0.0
            for f in range(rows.shape[1]):
                norm += rows[i, f] ** 2
            certain[i] = distances[i, k - 1] ** 2 - norm + rounding[i] < near[wanted - 1]
    return distances, indices, certain


@compiled()
def _blank(rough: Array, first: Integers, last: Integers) -> None:  # pragma: no cover - compiled
    for i in range(len(rough)):
        for j in range(first[i], last[i]):
            rough[i, j] = np.inf


@compiled()
def _nearest_of(
    near: Flags, rows: Array, stored: Array, distances: Array, indices: Integers
) -> None:  # pragma: no cover - compiled
    """The nearest, by exact distance, of those that ``near`` (n, N) marks."""
    for i in range(len(rows)):
        for j in range(indices[i, 0], near.shape[1]):  # the first that is marked
            if near[i, j]:
                distance = _distance(rows[i], stored[j])
                if distance < distances[i, 0]:
                    distances[i, 0] = distance
                    indices[i, 0] = j


@compiled()
def _distances_to(rows: Array, stored: Array, indices: Integers, distances: Array) -> None:  # pragma: no cover
    for i in range(len(rows)):
        distances[i, 0] = _distance(rows[i], stored[indices[i, 0]])


def _closest_one(
    rough: Array, rows: Array, stored: Array, first: Integers, last: Integers, rounding: Array
) -> tuple[Array, Integers, Flags]:
    """:func:`_closest` for k = 1, with whole-array operations: all that rounding could have put first are looked at."""
    _blank(rough, first, last)
    lowest = rough.min(axis=1)
    bound = np.nextafter((lowest + 2.0 * rounding).astype(rough.dtype), np.array(np.inf, dtype=rough.dtype))
    near = rough <= bound[:, None]
    indices = near.argmax(axis=1)[:, None].astype(np.int64)
    distances = np.full((len(rows), 1), np.inf)
    none, certain = np.isposinf(lowest), np.isfinite(lowest)
    one = np.count_nonzero(near, axis=1) == 1
    single = np.flatnonzero(one & certain)
    found = np.empty((len(single), 1))
    _distances_to(np.ascontiguousarray(rows[single]), stored, indices[single], found)
    distances[single] = found
    several = np.flatnonzero(~one & certain)
    if len(several):
        far, which = np.full((len(several), 1), np.inf), indices[several]
        _nearest_of(near[several], np.ascontiguousarray(rows[several]), stored, far, which)
        distances[several], indices[several] = far, which
    indices[none] = -1
    return distances, indices, certain | none


def _search(
    rows: Array, stored: npt.NDArray[Any], exact: Array, k: int, first: Integers, last: Integers
) -> tuple[Array, Integers, Flags]:
    """One pass over ``rows`` with a product in the precision of ``stored``, a copy of ``exact``."""
    norms = np.einsum("nd,nd->n", exact, exact)
    longest = float(np.sqrt(norms.max()))
    unit = float(np.finfo(stored.dtype).eps) * (exact.shape[1] + 4)  # what a sum of d products can lose, relative
    norms = norms.astype(stored.dtype)
    distances = np.empty((len(rows), k))
    indices = np.empty((len(rows), k), dtype=np.int64)
    certain = np.empty(len(rows), dtype=np.bool_)
    step = max(1, BLOCK_DISTANCES // len(exact))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        some = np.ascontiguousarray(rows[block])
        lengths = np.sqrt(np.einsum("nd,nd->n", some, some))
        rounding = unit * longest * (2.0 * lengths + longest)
        with np.errstate(over="ignore", invalid="ignore"):  # beyond single precision: never certain, searched in double
            rough = (-2.0 * some).astype(stored.dtype) @ stored.T
            rough += norms
        if k == 1:
            found = _closest_one(rough, some, exact, first[block], last[block], rounding)
        else:
            found = _closest(rough, some, exact, k, SPARE, first[block], last[block], rounding)
        distances[block], indices[block], certain[block] = found
        if stored.dtype == np.float32:
            certain[block] &= lengths < 1e18 / max(longest, 1.0)
    return distances, indices, certain


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
    stored = np.ascontiguousarray(stored)
    first, last = skip if skip is not None else (np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64))
    if len(rows) < FEW_ROWS:
        return _search(rows, stored, stored, k, first, last)[:2]
    distances, indices, certain = _search(rows, stored.astype(np.float32), stored, k, first, last)
    again = np.flatnonzero(~certain)
    if len(again):
        distances[again], indices[again], _ = _search(rows[again], stored, stored, k, first[again], last[again])
    return distances, indices


class NeighborDetector(StandardWindowDetector):
    """A windowed detector that compares each window with stored nominal ones.

    A subclass writes ``_score_neighbors``. Scores of the training
    rows themselves (``nominal_`` without a held-out tail) leave out every stored window that shares a row with the one
    being scored; otherwise each would find itself.
    """

    crossfit: ClassVar[int] = 5
    exact_together: ClassVar[bool] = True  # the distance that counts is always summed by one loop
    fault_kind: ClassVar[str] = "pattern"

    n_neighbors: int = integer(1, at_least=1, doc="Neighbours: the score looks at this many nearest stored windows.")
    max_windows: int | None = integer(
        5_000,
        at_least=2,
        none="all of them, the exact method",
        doc="Stored nominal windows, spread evenly over training.",
    )

    stored_: Array = learned("S, window * C")  # (N, d) standardised flat windows
    when_: Integers = learned(
        "S", kind="i"
    )  # (N,) first row of each stored window, parts numbered on with a gap of one window

    @abstractmethod
    def _score_neighbors(self, distances: Array, indices: Integers) -> Array:
        """Points ``(n, m)`` from the ``n_neighbors`` nearest stored windows."""

    def _fit_stored(self) -> None:
        """Learn from ``stored_`` what scoring needs beyond it."""

    def _fit_windows(self, parts: Sequence[Array]) -> None:
        whose = type(self).__name__
        k = self.n_neighbors
        if self.max_windows is not None:
            check_integer(self.max_windows, "max_windows", whose, minimum=k + 1)
        windows = training_windows(parts, window=self.window, limit=self.max_windows)
        if len(windows) <= k:
            raise SeriesError(
                f"The series given to {whose}.fit must have more than n_neighbors = {k} windows. Got {len(windows)} instead."
            )
        self.stored_ = windows.reshape(len(windows), -1)
        clock = np.concatenate([rows for rows, _ in self._numbered(parts)])
        chosen = training_windows([clock[:, None].astype(np.float64)], window=1, limit=self.max_windows)
        self.when_ = chosen[:, 0, 0].astype(np.int64)
        self._fit_stored()

    def _numbered(self, parts: Sequence[Array]) -> list[tuple[Integers, Array]]:
        """For each part the numbers of its windows' first rows; windows of different parts never overlap."""
        numbered, offset = [], 0
        for part in parts:
            numbered.append((np.arange(offset, offset + len(part) - self.window + 1), part))
            offset += len(part) + self.window
        return numbered

    def _score_windows(self, flat: Array) -> Array:
        return self._score_neighbors(*nearest(flat, self.stored_, k=self.n_neighbors))

    def _nominal_points(self, parts: Sequence[Array]) -> list[Array]:
        scored = []
        for numbers, part in self._numbered([part for part in parts if len(part) >= self.window]):
            for block, windows in blocks_of(sliding_windows(part, window=self.window)):
                flat = self._standardise(windows).reshape(len(windows), -1)
                first = np.searchsorted(self.when_, numbers[block] - self.window + 1, side="left")
                last = np.searchsorted(self.when_, numbers[block] + self.window - 1, side="right")
                distances, indices = nearest(flat, self.stored_, k=self.n_neighbors, skip=(first, last))
                known = indices[:, -1] >= 0
                scored.append(self._score_neighbors(distances[known], indices[known]))
        return scored

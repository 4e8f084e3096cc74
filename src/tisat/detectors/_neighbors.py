"""Exact nearest neighbours among stored windows, and the detectors built on them.

Candidates are found with one matrix product a block of rows; their distances are then computed again from the
differences, so that a row scores the same alone and in a crowd and a distance of 0 is 0. Trees are of no use in hundreds
of dimensions; the number of stored windows is what cost is made of, and ``max_windows`` bounds it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from tisat._validation import check_integer
from tisat.base import Array
from tisat.detectors._windows import StandardWindowDetector, blocks_of, training_windows, windows_of
from tisat.errors import SeriesError

Integers = npt.NDArray[np.int64]

BLOCK_DISTANCES = 4_000_000  # distances held at a time: 32 MB
SPARE = 8  # candidates beyond k: rounding in the matrix product must not cost a true neighbour


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # several sums at once, the same for every batch
def _distance(first: Array, second: Array) -> float:  # pragma: no cover - compiled
    square = 0.0
    for f in range(len(first)):
        square += (first[f] - second[f]) ** 2
    return float(np.sqrt(square))


@numba.njit(cache=True, nogil=True)
def _closest(
    rough: Array, rows: Array, stored: Array, k: int, spare: int, first: Integers, last: Integers
) -> tuple[Array, Integers]:  # pragma: no cover - compiled
    """The k nearest stored rows outside ``[first, last)`` by exact distance, chosen among the roughly nearest."""
    n, size = rough.shape
    wanted = min(k + spare, size)
    distances = np.full((n, k), np.inf)
    indices = np.full((n, k), -1)
    for i in range(n):
        near = np.full(wanted, np.inf)
        who = np.full(wanted, -1)
        for j in range(size):
            value = rough[i, j]
            if value < near[wanted - 1] and not first[i] <= j < last[i]:
                slot = wanted - 1
                while slot > 0 and near[slot - 1] > value:
                    near[slot] = near[slot - 1]
                    who[slot] = who[slot - 1]
                    slot -= 1
                near[slot] = value
                who[slot] = j
        for candidate in who:
            if candidate < 0:
                continue
            distance = _distance(rows[i], stored[candidate])
            if distance < distances[i, k - 1]:
                slot = k - 1
                while slot > 0 and distances[i, slot - 1] > distance:
                    distances[i, slot] = distances[i, slot - 1]
                    indices[i, slot] = indices[i, slot - 1]
                    slot -= 1
                distances[i, slot] = distance
                indices[i, slot] = candidate
    return distances, indices


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
    norms = np.einsum("nd,nd->n", stored, stored)
    first, last = skip if skip is not None else (np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64))
    distances = np.empty((len(rows), k))
    indices = np.empty((len(rows), k), dtype=np.int64)
    step = max(1, BLOCK_DISTANCES // len(stored))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        some = np.ascontiguousarray(rows[block])
        rough = norms - 2.0 * (some @ stored.T)  # the squared distance but for the row's own norm
        distances[block], indices[block] = _closest(rough, some, stored, k, SPARE, first[block], last[block])
    return distances, indices


class NeighborDetector(StandardWindowDetector):
    """A windowed detector that compares each window with stored nominal ones.

    A subclass has ``n_neighbors`` and ``max_windows`` parameters and writes ``_score_neighbors``. Scores of the training
    rows themselves (``nominal_`` without a held-out tail) leave out every stored window that shares a row with the one
    being scored; otherwise each would find itself.
    """

    n_neighbors: int
    max_windows: int | None
    stored_: Array  # (N, d) standardised flat windows
    when_: Integers  # (N,) first row of each stored window, parts numbered on with a gap of one window

    @abstractmethod
    def _score_neighbors(self, distances: Array, indices: Integers) -> Array:
        """Points ``(n, m)`` from the ``n_neighbors`` nearest stored windows."""

    def _fit_stored(self) -> None:
        """Learn from ``stored_`` what scoring needs beyond it."""

    def _fit_windows(self, parts: Sequence[Array]) -> None:
        whose = type(self).__name__
        k = check_integer(self.n_neighbors, "n_neighbors", whose, minimum=1)
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
            for block, windows in blocks_of(windows_of(part, window=self.window)):
                flat = self._standardise(windows).reshape(len(windows), -1)
                first = np.searchsorted(self.when_, numbers[block] - self.window + 1, side="left")
                last = np.searchsorted(self.when_, numbers[block] + self.window - 1, side="right")
                distances, indices = nearest(flat, self.stored_, k=self.n_neighbors, skip=(first, last))
                known = indices[:, -1] >= 0
                scored.append(self._score_neighbors(distances[known], indices[known]))
        return scored

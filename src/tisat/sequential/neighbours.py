"""Exact nearest neighbours, by whatever is quickest at each dimension.

Four ways to the same number: a sorted array (m = 1), scipy's k-d tree, a walk along the leading principal axis that
skips what the leading axes already exclude, and a float32 matrix product whose candidates are measured again in float64.
All are exact, and the distance itself is always summed by one loop, so one query and a thousand agree to the bit.
``benchmarks/bench_neighbours.py`` measures which is quickest where. There is no approximate index here: on real
residuals HNSW agreed with the exact distance in only 60 % of the cases. Nothing here knows what the points mean.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tisat._validation import check_choice, check_integer
from tisat.errors import InputError
from tisat.sequential import _kernels

METHODS = ("sorted", "tree", "pruned", "product")
LEADING = 8  # principal axes looked at before a point is measured in full
BLOCK = 4_194_304  # float32 values of one matrix product: 16 MB
EPSILON = float(np.finfo(np.float32).eps)


class Neighbours:
    """The k-th nearest of a fixed set of points.

    Parameters
    ----------
    points : array of shape (N, m)
    k : int
        Which neighbour; 1 is the nearest.
    method : str
        ``auto``, or one of ``sorted`` (m = 1 only), ``tree``, ``pruned``, ``product``.

    Examples
    --------
    >>> Neighbours([[0.0], [1.0], [5.0]], k=2).distances([[0.2], [4.0]]).tolist()
    [0.8, 3.0]
    """

    def __init__(self, points: npt.ArrayLike, *, k: int = 1, method: str = "auto") -> None:
        self.points = np.ascontiguousarray(points, dtype=np.float64)
        if self.points.ndim != 2 or not np.isfinite(self.points).all():
            raise InputError(
                f"The points of Neighbours must be a finite (N, m) array. Got shape {self.points.shape} instead."
            )
        self.k = check_integer(k, "k", "Neighbours", minimum=1, maximum=len(self.points))
        check_choice(method, "method", "Neighbours", choices=("auto", *METHODS))
        m = self.points.shape[1]
        if method == "sorted" and m != 1:
            raise InputError(f"The 'sorted' method of Neighbours must have points of one dimension. Got {m} instead.")
        self.method = ("sorted" if m == 1 else "pruned") if method == "auto" else method
        getattr(self, f"_build_{self.method}")()

    def distances(self, queries: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Distance ``(n,)`` of each query ``(n, m)`` to its k-th nearest point; NaN where the query has a NaN."""
        return self.search(queries)[0]

    def search(self, queries: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Distances ``(n,)`` and the rows of the points ``(n,)`` they lead to; NaN and -1 where the query has a NaN."""
        asked = np.ascontiguousarray(queries, dtype=np.float64)
        distance = np.full(len(asked), np.nan)
        where = np.full(len(asked), -1, dtype=np.int64)
        known = ~np.isnan(asked).any(axis=1)
        if known.all():
            getattr(self, f"_search_{self.method}")(asked, distance, where)
        elif known.any():
            some_distance, some_where = self.search(asked[known])
            distance[known] = some_distance
            where[known] = some_where
        return distance, where

    def _build_sorted(self) -> None:
        self._order = np.argsort(self.points[:, 0], kind="stable")
        self._ordered = np.ascontiguousarray(self.points[self._order, 0])

    def _search_sorted(
        self, queries: npt.NDArray[np.float64], distance: npt.NDArray[np.float64], where: npt.NDArray[np.int64]
    ) -> None:
        _kernels.nearest_sorted(queries[:, 0], self._ordered, self.k, distance, where)
        where[:] = self._order[where]

    def _build_tree(self) -> None:
        from scipy.spatial import cKDTree

        self._tree = cKDTree(self.points)

    def _search_tree(
        self, queries: npt.NDArray[np.float64], distance: npt.NDArray[np.float64], where: npt.NDArray[np.int64]
    ) -> None:
        _, found = self._tree.query(queries, k=[self.k])
        where[:] = found[:, 0]
        _kernels.distances_to(queries, self.points, where, distance)

    def _build_pruned(self) -> None:
        m = self.points.shape[1]
        centred = self.points - self.points.mean(axis=0)
        _, axes = np.linalg.eigh(centred.T @ centred)
        self._rotation = np.ascontiguousarray(axes[:, ::-1][:, : min(LEADING, m)])
        rotated = np.empty((len(self.points), self._rotation.shape[1]))
        for row in range(len(self.points)):
            _kernels.rotate(self.points[row], self._rotation, rotated[row])
        self._order = np.argsort(rotated[:, 0], kind="stable")
        self._rotated = np.ascontiguousarray(rotated[self._order])
        self._ordered = np.ascontiguousarray(self.points[self._order])
        self._longest = float(np.sqrt((self.points**2).sum(axis=1).max()))
        self._rounding = 8.0 * m * float(np.finfo(np.float64).eps)

    def _search_pruned(
        self, queries: npt.NDArray[np.float64], distance: npt.NDArray[np.float64], where: npt.NDArray[np.int64]
    ) -> None:
        _kernels.nearest_pruned(
            queries,
            self._ordered,
            self._rotated,
            self._rotation,
            self._rounding,
            self._longest,
            self.k,
            distance,
            where,
        )
        where[:] = self._order[where]

    def _build_product(self) -> None:
        self._centre = self.points.mean(axis=0)
        self._single = np.ascontiguousarray((self.points - self._centre).T, dtype=np.float32)  # (m, N)
        self._squares = (self._single.astype(np.float64) ** 2).sum(axis=0)

    def _search_product(
        self, queries: npt.NDArray[np.float64], distance: npt.NDArray[np.float64], where: npt.NDArray[np.int64]
    ) -> None:
        m, n_points = self._single.shape
        best, index = np.empty(self.k), np.empty(self.k, dtype=np.int64)
        every = np.arange(n_points)
        step = max(1, BLOCK // n_points)
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            with np.errstate(over="ignore", invalid="ignore"):
                single = (block - self._centre).astype(np.float32)
                lengths = (single.astype(np.float64) ** 2).sum(axis=1)
                guess = (self._squares - 2.0 * (single @ self._single)).astype(
                    np.float32
                )  # (n, N): squared, less the query's
            # A float32 product of m terms errs by at most about m eps |x||y|; rounding the inputs adds eps of each.
            doubt = (4.0 * (m + 4) * EPSILON) * (lengths + self._squares.max())
            kth = guess.min(axis=1) if self.k == 1 else np.partition(guess, self.k - 1, axis=1)[:, self.k - 1]
            for row, query in enumerate(block):
                near = np.flatnonzero(guess[row] <= kth[row] + doubt[row]) if np.isfinite(kth[row]) else every
                distance[start + row] = _kernels.kth_distance(query, self.points, near, self.k, best, index)
                where[start + row] = index[self.k - 1]

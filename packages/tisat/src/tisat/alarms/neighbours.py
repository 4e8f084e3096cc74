"""Exact nearest neighbours, by whatever is quickest at each dimension.

Two ways to the same number: a sorted array (m = 1), and the search of :mod:`tisat.utils.neighbors` over all points. Both are exact, and one
query and a thousand agree to the bit. ``benchmarks/bench_neighbours.py`` measures them beside scipy's k-d tree and a matrix
product. There is no approximate index here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tisat.errors import InputError
from tisat.utils.neighbors import nearest, nearest_sorted
from tisat.utils.types import Array, Integers
from tisat.utils.validation import check_choice, check_integer

METHODS = ("sorted", "scan")


class Neighbours:
    """The k-th nearest of a fixed set of points.

    Parameters
    ----------
    points : array of shape (N, m)
        Normal points.
    k : int
        Which neighbour; 1 is the nearest.
    method : str
        ``auto``, or one of ``sorted`` (m = 1 only), ``scan``.

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
        quickest = "sorted" if m == 1 else "scan"
        self.method = quickest if method == "auto" else method
        if self.method == "sorted":
            self._order = np.argsort(self.points[:, 0], kind="stable")
            self._ordered = np.ascontiguousarray(self.points[self._order, 0])

    def distances(self, queries: npt.ArrayLike) -> Array:
        """Distance ``(n,)`` of each query ``(n, m)`` to its k-th nearest point.

        NaN where the query has a NaN.
        """
        return self.search(queries)[0]

    def search(self, queries: npt.ArrayLike) -> tuple[Array, Integers]:
        """Distances ``(n,)`` and the rows of the points ``(n,)`` they lead to.

        NaN and -1 where the query has a NaN.
        """
        query_rows = np.ascontiguousarray(queries, dtype=np.float64)
        distance = np.full(len(query_rows), np.nan)
        where = np.full(len(query_rows), -1, dtype=np.int64)
        complete = ~np.isnan(query_rows).any(axis=1)
        if self.method == "sorted":
            some, places = np.empty(complete.sum()), np.empty(complete.sum(), dtype=np.int64)
            nearest_sorted(np.ascontiguousarray(query_rows[complete, 0]), self._ordered, self.k, some, places)
            distance[complete], where[complete] = some, self._order[places]
        else:
            far, places = nearest(query_rows[complete], self.points, k=self.k)
            distance[complete], where[complete] = far[:, -1], places[:, -1]
        return distance, where

"""Detectors that compare a window with stored normal ones.

The search is :mod:`tisat.utils.neighbors`.

The number of stored windows is what cost is made of, and ``max_windows`` bounds it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from tisat.detectors._windows import (
    StandardWindowDetector,
    blocks_of,
    numbered,
    numbered_windows,
    overlapping,
    sliding_windows,
)
from tisat.detectors.base import Array, Traits
from tisat.errors import SeriesError
from tisat.utils.neighbors import nearest
from tisat.utils.parameters import integer, learned
from tisat.utils.types import Integers
from tisat.utils.validation import check_integer


class NeighborDetector(StandardWindowDetector):
    """A windowed detector that compares each window with stored normal ones.

    A subclass writes ``_score_neighbors``. Scores of the training
    rows themselves (``normal_`` without a held-out tail) leave out every stored window that shares a row with the one
    being scored; otherwise each would find itself.
    """

    # exact_together: the distance that counts is always summed by one loop
    traits: ClassVar[Traits] = Traits(crossfit=5, exact_together=True, fault_kind="pattern")

    n_neighbors: int = integer(1, at_least=1, doc="Neighbours: the score looks at this many nearest stored windows.")
    max_windows: int | None = integer(
        5_000,
        at_least=2,
        none="all of them, the exact method",
        doc="Stored normal windows, spread evenly over training.",
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
        caller = type(self).__name__
        k = self.n_neighbors
        if self.max_windows is not None:
            check_integer(self.max_windows, "max_windows", caller, minimum=k + 1)
        windows, self.when_ = numbered_windows(parts, window=self._length(), limit=self.max_windows)
        if len(windows) <= k:
            raise SeriesError(
                f"The series given to {caller}.fit must have more than n_neighbors = {k} windows. Got {len(windows)} instead."
            )
        self.stored_ = self._shapes(windows.reshape(len(windows), -1))
        self._fit_stored()

    def _shapes(self, flat: Array) -> Array:
        """The flat windows ``(n, window * C)`` in the form in which they are compared."""
        return flat

    def _nearest(self, flat: Array, skip: tuple[Integers, Integers] | None = None) -> tuple[Array, Integers]:
        """Distances and indices ``(n, k)`` of the stored windows nearest to each.

        Index -1 where there are too few.
        """
        return nearest(flat, self.stored_, k=self.n_neighbors, skip=skip)

    def _score_windows(self, flat: Array) -> Array:
        return self._score_neighbors(*self._nearest(self._shapes(flat)))

    def _normal_points(self, parts: Sequence[Array]) -> list[Array]:
        scored = []
        length = self._length()
        long = [part for part in parts if len(part) >= length]
        for numbers, part in zip(numbered(long, window=length), long, strict=True):
            for block, windows in blocks_of(sliding_windows(part, window=length)):
                flat = self._shapes(self._standardise(windows).reshape(len(windows), -1))
                itself = overlapping(self.when_, numbers[block], window=length)
                distances, indices = self._nearest(flat, itself)
                known = indices[:, -1] >= 0
                scored.append(self._score_neighbors(distances[known], indices[known]))
        return scored

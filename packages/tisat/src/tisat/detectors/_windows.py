"""Points -> windows -> points, with one rule for the warm-up: the window of row t ends at t.

The first ``window - 1`` rows have no window and so no score. Windows are views of the series; only one block of
them is ever copied, so memory does not grow with the length of the series. Nothing here learns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tisat.detectors._forecast import StandardisedDetector
from tisat.detectors.base import Array, Detector
from tisat.errors import SeriesError
from tisat.utils.parameters import integer
from tisat.utils.types import Integers

BLOCK_VALUES = 4_000_000  # values copied at a time: 32 MB


def sliding_windows(part: Array, *, window: int) -> Array:
    """All windows of one array as a view ``(T - window + 1, window, C)``.

    None where it is shorter than a window.
    """
    if len(part) < window:
        return np.empty((0, window, part.shape[1]))
    return sliding_window_view(part, window, axis=0).transpose(0, 2, 1)  # (n, window, C)


def blocks_of(windows: Array) -> Iterator[tuple[slice, Array]]:
    """Windows in blocks of bounded size, copied contiguously one at a time."""
    step = max(1, BLOCK_VALUES // max(1, windows.shape[1] * windows.shape[2]))
    for start in range(0, len(windows), step):
        rows = slice(start, min(start + step, len(windows)))
        yield rows, np.ascontiguousarray(windows[rows])


def parts_longer_than(length: int, parts: Sequence[Array], *, whose: str) -> list[Array]:
    """The parts with more than ``length`` rows; an error where there are none."""
    long = [part for part in parts if len(part) > length]
    if not long:
        raise SeriesError(
            f"The series given to {whose}.fit must have more than {length} rows without a gap. "
            f"Got at most {max((len(part) for part in parts), default=0)} instead."
        )
    return long


def training_windows(parts: Sequence[Array], *, window: int, stride: int = 1, limit: int | None = None) -> Array:
    """Windows of all parts ``(n, window, C)``, every ``stride``-th, thinned evenly to at most ``limit``."""
    views = [sliding_windows(part, window=window)[::stride] for part in parts]
    total = sum(map(len, views))
    if limit is None or total <= limit:
        return np.concatenate(views)
    chosen = np.linspace(0, total - 1, limit).round().astype(np.int64)
    edges = np.cumsum([0, *map(len, views)])
    inside = (chosen[(chosen >= a) & (chosen < b)] - a for a, b in pairwise(edges))
    return np.concatenate([view[rows] for view, rows in zip(views, inside, strict=True)])


def numbered(parts: Sequence[Array], *, window: int) -> list[Integers]:
    """For each part the numbers of its windows' first rows.

    Windows of different parts never overlap.
    """
    starts = np.cumsum([0, *(len(part) + window for part in parts)])
    return [start + np.arange(len(part) - window + 1) for start, part in zip(starts, parts, strict=False)]


def numbered_windows(parts: Sequence[Array], *, window: int, limit: int | None) -> tuple[Array, Integers]:
    """Training windows ``(n, window, C)``, evenly spread, and the number ``(n,)`` of each."""
    clock = np.concatenate(numbered(parts, window=window))[:, None].astype(np.float64)
    numbers = training_windows([clock], window=1, limit=limit)[:, 0, 0]
    return training_windows(parts, window=window, limit=limit), numbers.astype(np.int64)


def overlapping(kept: Array | Integers, numbers: Integers, *, window: int) -> tuple[Integers, Integers]:
    """For each number the range of the kept windows, in ascending order, that share a row with it."""
    first = np.searchsorted(kept, numbers - window + 1, side="left")
    return first, np.searchsorted(kept, numbers + window - 1, side="right")


class WindowedDetector(Detector):
    """A detector that sees, at row t, the window of rows that ends at t.

    A subclass writes ``_fit`` and ``_window_points``.
    """

    window: int = integer(10, at_least=1, doc="Rows of a window, the newest included; 1 looks at single rows.")

    @abstractmethod
    def _window_points(self, windows: Array) -> Array:
        """Points ``(n, m)`` of windows ``(n, window, C)``: of their last rows."""

    def _length(self) -> int:
        """Rows of a window."""
        return self.window

    def _context(self) -> int:
        return self._length() - 1

    def _points(self, part: Array) -> Array:
        windows = sliding_windows(part, window=self._length())
        blocks = [self._window_points(block) for _, block in blocks_of(windows)]
        if not blocks:
            return np.full((len(part), getattr(self, "n_points_", 1)), np.nan)
        points = np.concatenate(blocks)
        warm_up = np.full((self._length() - 1, points.shape[1]), np.nan)
        return np.concatenate([warm_up, points])

    def _points_of_windows(self, windows: Array) -> Array:
        return self._window_points(windows)


class StandardWindowDetector(StandardisedDetector, WindowedDetector):
    """A windowed detector that works on standardised channels and flattened windows.

    Each channel is centred at its training mean and divided by its training standard deviation, floored as in
    :func:`tisat.detectors._forecast.normal_spread`. A subclass writes ``_fit_windows`` and ``_score_windows`` on rows
    ``(n, window * C)``, oldest row first.
    """

    @abstractmethod
    def _fit_windows(self, parts: Sequence[Array]) -> None:
        """Learn from standardised parts, each at least a window long."""

    @abstractmethod
    def _score_windows(self, flat: Array) -> Array:
        """Points ``(n, m)`` of standardised flat windows ``(n, window * C)``."""

    def _fit(self, parts: Sequence[Array]) -> None:
        window = self._context() + 1
        long = parts_longer_than(window - 1, parts, whose=type(self).__name__)
        self._learn_scale(long)
        self._fit_windows([self._standardise(part) for part in long])

    def _window_points(self, windows: Array) -> Array:
        return self._score_windows(self._standardise(windows).reshape(len(windows), -1))

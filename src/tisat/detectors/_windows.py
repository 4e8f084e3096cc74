"""Points -> windows -> points, with one rule for the warm-up: the window of instant t ends at t.

The first ``window - 1`` instants have no window and so no score. Windows are views of the series; only one block of
them is ever copied, so memory does not grow with the length of the series. Nothing here learns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tisat._validation import check_integer
from tisat.base import Array, Detector

BLOCK_VALUES = 4_000_000  # values copied at a time: 32 MB


def windows_of(part: Array, *, window: int) -> Array:
    """All windows of one array as a view ``(T - window + 1, window, C)``; none where it is shorter than a window."""
    if len(part) < window:
        return np.empty((0, window, part.shape[1]))
    return sliding_window_view(part, window, axis=0).transpose(0, 2, 1)  # (n, window, C)


def blocks_of(windows: Array) -> Iterator[tuple[slice, Array]]:
    """Windows in blocks of bounded size, copied contiguously one at a time."""
    step = max(1, BLOCK_VALUES // max(1, windows.shape[1] * windows.shape[2]))
    for start in range(0, len(windows), step):
        rows = slice(start, min(start + step, len(windows)))
        yield rows, np.ascontiguousarray(windows[rows])


def training_windows(parts: Sequence[Array], *, window: int, stride: int = 1, limit: int | None = None) -> Array:
    """Windows of all parts ``(n, window, C)``, every ``stride``-th, thinned evenly to at most ``limit``."""
    views = [windows_of(part, window=window)[::stride] for part in parts]
    total = sum(map(len, views))
    if limit is None or total <= limit:
        return np.concatenate(views)
    chosen = np.linspace(0, total - 1, limit).round().astype(np.int64)
    edges = np.cumsum([0, *map(len, views)])
    inside = (chosen[(chosen >= a) & (chosen < b)] - a for a, b in zip(edges[:-1], edges[1:], strict=True))
    return np.concatenate([view[rows] for view, rows in zip(views, inside, strict=True)])


class WindowedDetector(Detector):
    """A detector that sees, at instant t, the window of rows that ends at t.

    A subclass has a ``window`` parameter and writes ``_fit`` and ``_window_points``.
    """

    window: int

    @abstractmethod
    def _window_points(self, windows: Array) -> Array:
        """Points ``(n, m)`` of windows ``(n, window, C)``: of their last instants."""

    def _context(self) -> int:
        return check_integer(self.window, "window", type(self).__name__, minimum=1) - 1

    def _points(self, part: Array) -> Array:
        windows = windows_of(part, window=self.window)
        blocks = [self._window_points(block) for _, block in blocks_of(windows)]
        if not blocks:
            return np.full((len(part), getattr(self, "n_points_", 1)), np.nan)
        points = np.concatenate(blocks)
        warm_up = np.full((self.window - 1, points.shape[1]), np.nan)
        return np.concatenate([warm_up, points])

    def _points_of_windows(self, windows: Array) -> Array:
        return self._window_points(windows)

"""Row by row from a bounded past: the stream of a detector whose points depend on a bounded number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tisat.utils.stage import State
from tisat.utils.types import Array

if TYPE_CHECKING:
    from tisat.detectors.base import Detector

LEAST_BLOCK = 200  # rows that are worth the code for whole series, which looks at the context once more
BLOCK_ROUNDING = 1e-9  # relative; networks, whose points of many rows differ by more, are asked about each


class RowStream:
    """Base of streams of detectors: a stage from rows to points that calls :meth:`step` for each row."""

    def step(self, row: Array, /) -> Array:
        """Return the point ``(m,)`` of the next row ``(C,)``; NaN while warming up."""
        raise NotImplementedError

    def run(self, rows: Array, /) -> Array:
        """Return the points ``(T, m)`` of the next rows ``(T, C)``."""
        return np.stack([np.asarray(self.step(row)) for row in rows])


class WindowStream(RowStream):
    """The stream of a detector whose points depend on a bounded number of rows: a buffer of exactly those."""

    one_at_a_time: ClassVar[bool] = False  # True: the answer about a row must be taken in before the next row is
    whole: ClassVar[bool] = True  # its points are those that the detector gives for a series

    def __init__(self, detector: Detector, context: int) -> None:
        self._detector = detector
        width = detector.n_channels_ + int(detector.traits.clocked)  # the local time of each row comes last
        self._length = context + 1
        self._storage = np.full((2 * self._length, width), np.nan)  # rows are moved once in context + 1
        self._end = self._length  # of the newest row
        self._filled = 0
        self.deviations: Array | None = None  # (C,) of the row whose point was given last, where the detector has them

    @property
    def _buffer(self) -> Array:
        """The last rows ``(context + 1, C)``, newest last."""
        return self._storage[self._end - self._length : self._end]

    def window(self, row: Array) -> Array | None:
        """Take in a row; what the detector is asked about it, the full buffer ``(context + 1, C)``, or None while it fills."""
        storage, length, end = self._storage, self._length, self._end
        if end == len(storage):
            storage[: length - 1] = storage[end - length + 1 :]
            end = length - 1
        storage[end, : len(row)] = row
        if len(row) < storage.shape[1]:
            storage[end, len(row) :] = np.nan
        self._end = end + 1
        if self._filled < length:
            self._filled += 1
        return storage[end + 1 - length : end + 1] if self._filled == length else None

    def answers(self, windows: Array, *, exact: bool = False) -> Array:
        """The detector's answers about windows of this stream and of others like it.

        ``exact``: to the bit as about each alone.
        """
        if exact and not self._detector.traits.exact_together:
            return np.concatenate([self._detector._answers(window[None]) for window in windows])
        return self._detector._answers(windows)

    def point(self, answer: Array) -> Array:
        """The point ``(m,)`` of the row just taken in, from the detector's answer."""
        width = self._detector.n_points_
        self.deviations = answer[width:] if len(answer) > width else None
        return answer[:width]

    def step(self, row: Array, /) -> Array:
        """Return the point ``(m,)`` of the next row; NaN while the buffer fills."""
        window = self.window(row)
        if window is None:
            self.deviations = None
            return np.full(self._detector.n_points_, np.nan)
        return self.point(self._detector._answers(window[None])[0])

    @property
    def takes_blocks(self) -> bool:
        """Whether many rows at a time go through the detector's code for whole series, with the rounding of sums in double precision."""
        return self.whole and self._detector.traits.rounding <= BLOCK_ROUNDING

    def run(self, rows: Array, /) -> Array:
        """Return the points ``(T, m)`` of the next rows ``(T, C)``; of many by the detector's code for whole series."""
        if len(rows) < LEAST_BLOCK or not self.takes_blocks:
            return super().run(rows)
        return self.run_with_deviations(rows)[0]

    def run_with_deviations(self, rows: Array) -> tuple[Array, Array | None]:
        """Points ``(T, m)`` of the next rows by the detector's code for whole series, and deviations ``(T, C)`` where it has them."""
        length, width, storage = self._length, self._detector.n_points_, self._storage
        given = np.full((len(rows), storage.shape[1]), np.nan)
        given[:, : rows.shape[1]] = rows
        seen = np.concatenate([self._buffer, given])
        known = min(self._filled, length - 1)
        points = self._detector._whole_points(seen[length - known :])[known:]
        storage[:length], self._end = seen[-length:], length
        self._filled = min(self._filled + len(rows), length)
        deviations = points[:, width:] if points.shape[1] > width else None
        self.deviations = None if deviations is None else deviations[-1]
        return np.ascontiguousarray(points[:, :width]), deviations

    def reset(self) -> None:
        """Start a new warm-up."""
        self._filled = 0

    def state(self) -> State:
        """Return the buffer."""
        return {"buffer": self._buffer.copy(), "filled": np.array(self._filled)}

    def restore(self, state: State, /) -> None:
        """Continue from a buffer."""
        self._storage[: self._length], self._end = state["buffer"], self._length
        self._filled = min(max(int(state["filled"]), 0), self._length)

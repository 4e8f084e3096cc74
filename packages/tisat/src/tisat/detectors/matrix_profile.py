"""MatrixProfile: how unlike every normal shape the last window of each channel is.

The distance is between z-normalised windows: level and size do not count, shape does. The reference is the training
series (the matrix profile of the join of the new series with it), so memory is bounded and a fault that repeats stays a
discord. It does not see a change of level or of scale, and in a quiet channel it compares noise with noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors._windows import (
    blocks_of,
    numbered,
    numbered_windows,
    overlapping,
    parts_longer_than,
    sliding_windows,
)
from tisat.detectors.base import Array, Detector, Traits
from tisat.utils.neighbors import nearest
from tisat.utils.parameters import integer, learned


def z_normalised(windows: Array) -> Array:
    """Windows ``(n, window)`` with mean 0 and standard deviation 1 each.

    A flat one becomes zeros.

    Two flat windows are then at distance 0 and a flat one is at ``sqrt(window)`` from any other, as in stumpy.

    Examples
    --------
    >>> z_normalised(np.array([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred = windows - windows.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    flat = spread <= 1e-12 * np.abs(windows).max(axis=1, keepdims=True)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


class MatrixProfile(Detector):
    """Discord score of each channel: distance of its newest window to the nearest training window.

    Meant for one channel or a few; each is treated alone and the score is the mean of squares.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(600.0) / 5)
    >>> detector = MatrixProfile(window=30).fit(wave)
    >>> test = wave[:200].copy()
    >>> test[100:110] = test[100]  # a short flat stretch
    >>> scores = detector.decision_function(test)
    >>> bool(np.nanmax(scores[:100]) < 0.1 < scores[109])
    True

    References
    ----------
    Yeh et al.: Matrix Profile I, ICDM 2016. Equal to ``stumpy.stump(new, window, T_B=training, ignore_trivial=False)``
    where all windows are kept.
    """

    window: int = integer(50, at_least=4, doc="Rows of a shape.")
    max_windows: int = integer(
        20_000,
        at_least=2,
        doc="Training windows kept as reference, spread evenly; the cost of scoring is proportional to it.",
    )

    traits: ClassVar[Traits] = Traits(points_are_channels=True, fault_kind="pattern")
    stored_: Array = learned("C, S, window")  # z-normalised training windows of each channel
    when_: Array = learned("S")  # first row of each, parts numbered on with a gap of one window

    def _fit(self, parts: Sequence[Array]) -> None:
        long = parts_longer_than(self.window, parts, whose="MatrixProfile")
        kept, numbers = numbered_windows(long, window=self.window, limit=self.max_windows)
        self.stored_ = np.stack([z_normalised(kept[:, :, c]) for c in range(kept.shape[2])])
        self.when_ = numbers.astype(np.float64)

    def _points(self, part: Array) -> Array:
        points = np.full_like(part, np.nan)
        for c in range(part.shape[1]):
            for rows, block in blocks_of(sliding_windows(part[:, c : c + 1], window=self.window)):
                distances, _ = nearest(z_normalised(block[:, :, 0]), self.stored_[c], k=1)
                points[self.window - 1 :, c][rows] = distances[:, 0]
        return points

    def _normal_points(self, parts: Sequence[Array]) -> list[Array]:
        """Each training window against those that share no row with it."""
        long = [part for part in parts if len(part) > self.window]
        scored = []
        for part, numbers in zip(long, numbered(long, window=self.window), strict=True):
            itself = overlapping(self.when_, numbers, window=self.window)
            points = np.full((len(numbers), part.shape[1]), np.nan)
            for c in range(part.shape[1]):
                windows = sliding_windows(part[:, c : c + 1], window=self.window)[:, :, 0]
                points[:, c] = nearest(z_normalised(windows), self.stored_[c], k=1, skip=itself)[0][:, 0]
            scored.append(points[np.isfinite(points).all(axis=1)])
        return scored

    def _context(self) -> int:
        return self.window - 1

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 20}

"""ECOD: how improbable each value of a row is, by the training data's own tail probabilities, summed over channels.

There is nothing to tune. Tail probabilities come from training rows alone, so a score never depends on the other rows
of a batch (PyOD's ECOD ranks the rows of a batch among themselves and cannot be used causally as it is). It looks at one
channel and one row at a time and does not know relations of any sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.stats import skew

from tisat.detectors.base import Array, Detector, Traits
from tisat.utils.parameters import learned

MAX_ROWS = 20_000  # training rows kept, spread evenly: a tail probability of 1/20,000 is finer than any score needs


class Ecod(Detector):
    """Empirical-cumulative-distribution outlier detection.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.random.default_rng(0).standard_normal((500, 2))
    >>> scores = Ecod().fit(train).decision_function([[0.0, 0.0], [6.0, 6.0]])
    >>> bool(scores[0] < 4 < scores[1])
    True

    References
    ----------
    Li, Zhao, Hu, Botta, Ionescu, Chen: ECOD: unsupervised outlier detection using empirical cumulative distribution
    functions, TKDE 2022. Algorithm 1, with the tails of a new row taken from the training rows.
    """

    traits: ClassVar[Traits] = Traits(crossfit=5)

    sorted_: Array = learned("S, C")  # (n, C) training values, each channel ascending
    left_tail_: Array = learned("C")  # (C,) 1 where the automatic score uses the left tail (negative skewness), else 0

    def _fit(self, parts: Sequence[Array]) -> None:
        rows = np.concatenate(parts)
        chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).round().astype(np.int64))
        self.sorted_ = np.sort(rows[chosen], axis=0)
        moving = np.ptp(rows, axis=0) > 1e-12 * np.maximum(np.abs(rows).max(axis=0), 1.0)
        lean = np.zeros(rows.shape[1])
        lean[moving] = skew(rows[:, moving], axis=0)
        self.left_tail_ = (lean < 0).astype(np.float64)

    def _points(self, part: Array) -> Array:
        n = len(self.sorted_)
        left = np.empty_like(part)
        right = np.empty_like(part)
        for c in range(part.shape[1]):
            below = np.searchsorted(self.sorted_[:, c], part[:, c], side="right")
            above = n - np.searchsorted(self.sorted_[:, c], part[:, c], side="left")
            left[:, c] = -np.log((below + 1.0) / (n + 1.0))  # the row itself counts: a tail is never empty
            right[:, c] = -np.log((above + 1.0) / (n + 1.0))
        automatic = self.left_tail_ * left + (1 - self.left_tail_) * right
        return np.asarray(np.max([left.sum(axis=1), right.sum(axis=1), automatic.sum(axis=1)], axis=0))[:, None]

    def _context(self) -> int:
        return 0

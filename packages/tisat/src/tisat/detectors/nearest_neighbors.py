"""NearestNeighbors: how far a window is from the nearest normal window.

It sees shapes and levels that did not occur in training, whatever they are, and takes any number of normal regimes. It
does not know which channels matter: in many dimensions a small change in one drowns in the noise of the others.
"""

from __future__ import annotations

from tisat.detectors._neighbors import NeighborDetector
from tisat.detectors.base import Array
from tisat.utils.parameters import integer
from tisat.utils.types import Integers


class NearestNeighbors(NeighborDetector):
    """Distance to the k-th nearest normal window, on standardised channels.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(600.0) / 5)[:, None]
    >>> detector = NearestNeighbors(window=8).fit(wave)
    >>> level = detector.normal_level()
    >>> bool(detector.decision_function(wave)[-1] <= level < detector.decision_function(-0.5 * wave)[-1])
    True

    References
    ----------
    Ramaswamy, Rastogi, Shim: Efficient algorithms for mining outliers from large data sets, SIGMOD 2000.
    """

    n_neighbors: int = integer(1, doc="k: the distance to the k-th nearest stored window is the score.")

    def _score_neighbors(self, distances: Array, indices: Integers) -> Array:
        return distances[:, -1:]

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 3, "max_windows": 200}

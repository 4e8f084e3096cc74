"""LOF: how much thinner the normal windows are around this one than around its neighbours.

The local outlier factor in its novelty form: densities are learned from normal windows only, and a new window never
becomes a neighbour. It adapts to regimes of different density; where training holds many identical windows their density
is without bound and so is the factor beside them.
"""

from __future__ import annotations

import numpy as np

from tisat.detectors._neighbors import NeighborDetector
from tisat.detectors.base import Array
from tisat.utils.neighbors import nearest
from tisat.utils.parameters import integer, learned
from tisat.utils.types import Integers


class LOF(NeighborDetector):
    """Local outlier factor on standardised windows; 1 is normal.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.random.default_rng(0).standard_normal((500, 2))
    >>> detector = LOF(window=1).fit(train)
    >>> detector.decision_function([[0.0, 0.0], [6.0, 6.0]]).round(1).tolist()
    [1.0, 8.4]

    References
    ----------
    Breunig, Kriegel, Ng, Sander: LOF: identifying density-based local outliers, SIGMOD 2000. Equal to scikit-learn's
    LocalOutlierFactor with ``novelty=True`` on the same windows.
    """

    n_neighbors: int = integer(20, doc="Neighbours that make a neighbourhood.")
    max_windows: int | None = 2_000

    reach_: Array = learned("S")  # (N,) distance of each stored window to its k-th neighbour
    density_: Array = learned("S")  # (N,) local reachability density of each stored window

    def _fit_stored(self) -> None:
        itself = np.arange(len(self.stored_))
        distances, indices = nearest(self.stored_, self.stored_, k=self.n_neighbors, skip=(itself, itself + 1))
        self.reach_ = distances[:, -1].copy()
        self.density_ = self._density(distances, indices)

    def _density(self, distances: Array, indices: Integers) -> Array:
        reachability = np.maximum(distances, self.reach_[indices])
        return np.asarray(1.0 / (reachability.mean(axis=1) + 1e-10))  # as scikit-learn: identical windows stay finite

    def _score_neighbors(self, distances: Array, indices: Integers) -> Array:
        around = self.density_[indices].mean(axis=1)
        return np.asarray(around / self._density(distances, indices))[:, None]

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 3, "max_windows": 200, "n_neighbors": 10}

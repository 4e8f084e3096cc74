"""PCA: what the leading principal components of normal windows cannot reproduce.

A window is projected on the few directions that carry most of the normal variance; the error of that reconstruction is
the point, one number for each channel. It sees broken relations between channels and neighbouring rows; it does not see a
deviation along the directions it keeps, however large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors._moments import window_moments
from tisat.detectors._windows import StandardWindowDetector
from tisat.detectors.base import Array, Traits
from tisat.utils.parameters import learned, real


class PCA(StandardWindowDetector):
    """Principal component reconstruction error on standardised windows.

    Point c is the root mean square reconstruction error of channel c over the window; the score is the mean of its
    squares, that is the mean squared reconstruction error.

    Examples
    --------
    >>> import numpy as np
    >>> load = np.sin(np.arange(500.0))[:, None]
    >>> three = load + 0.1 * np.random.default_rng(0).standard_normal((500, 3))  # channels that move together
    >>> points = PCA(window=1).fit(three).points([[3.0, 3.0, 3.0], [1.0, 1.0, -1.0]])
    >>> points.argmax(axis=1)[1], bool(points[0].max() < points[1].max())  # the one that left, and how far it went
    (np.int64(2), True)

    References
    ----------
    Shyu, Chen, Sarinnapakorn, Chang: A novel anomaly detection scheme based on principal component classifier, ICDM
    workshop 2003 (the minor components); Lakhina, Crovella, Diot: Diagnosing network-wide traffic
    anomalies, SIGCOMM 2004.
    """

    traits: ClassVar[Traits] = Traits(crossfit=5, fault_kind="broken correlation", points_are_channels=True)

    variance: float = real(
        0.9,
        above=0.0,
        below=1.0,
        doc="Share of the normal variance the kept components carry; at least one is kept and at least one left.",
    )

    mean_: Array = learned("window * C")  # (d,) mean of the flat windows
    components_: Array = learned("window * C, Q")  # (d, q) kept directions, orthonormal

    def _fit_windows(self, parts: Sequence[Array]) -> None:
        self.mean_, covariance = window_moments(parts, window=self.window)
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        enough = int(np.searchsorted(np.cumsum(values), self.variance * values.sum())) + 1
        kept = int(np.clip(enough, 1, max(len(values) - 1, 0)))
        self.components_ = np.ascontiguousarray(vectors[:, :kept])

    def _score_windows(self, flat: Array) -> Array:
        centred = flat - self.mean_
        error = centred - (centred @ self.components_) @ self.components_.T
        squares = (error**2).reshape(len(flat), self.window, -1)
        return np.asarray(np.sqrt(squares.mean(axis=1)))

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 5}

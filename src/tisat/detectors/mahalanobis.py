"""Mahalanobis: how far a window lies from the nominal mean, in units of the nominal covariance.

Directions in which nominal windows hardly move count most, so it sees broken relations between channels and between
neighbouring instants at once. It assumes one cloud: where nominal data have several regimes, the space between them
looks nominal too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat._validation import check_real
from tisat.base import Array
from tisat.detectors._moments import window_moments
from tisat.detectors._windows import StandardWindowDetector


class Mahalanobis(StandardWindowDetector):
    """Squared Mahalanobis distance of standardised windows, divided by their dimension.

    Parameters
    ----------
    window : int
        Rows a window, the newest included; 1 looks at single rows.
    ridge : float
        Added to the diagonal of the covariance, as a share of its mean diagonal: directions in which nominal windows
        never moved get a finite weight.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((500, 1))
    >>> train = common + 0.1 * rng.standard_normal((500, 3))  # three channels that move together
    >>> detector = Mahalanobis(window=1).fit(train)
    >>> scores = detector.decision_function([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
    >>> bool(scores[0] < detector.nominal_level() < scores[1])
    True

    References
    ----------
    Hotelling: Multivariate quality control, 1947 (the T² statistic).
    """

    mean_: Array  # (d,) mean of the flat windows
    whitening_: Array  # (d, d): the squared norm of (x - mean) @ whitening is the squared distance

    def __init__(self, *, window: int = 10, ridge: float = 1e-3) -> None:
        self.window = window
        self.ridge = ridge

    def _fit_windows(self, parts: Sequence[Array]) -> None:
        ridge = check_real(self.ridge, "ridge", "Mahalanobis", above=0.0)
        self.mean_, covariance = window_moments(parts, window=self.window)
        mean_variance = np.trace(covariance) / len(covariance)
        covariance[np.diag_indices_from(covariance)] += ridge * (mean_variance if mean_variance > 0 else 1.0)
        values, vectors = np.linalg.eigh(covariance)
        self.whitening_ = vectors / np.sqrt(values)

    def _score_windows(self, flat: Array) -> Array:
        return np.asarray(np.mean(((flat - self.mean_) @ self.whitening_) ** 2, axis=1, keepdims=True))

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 5}

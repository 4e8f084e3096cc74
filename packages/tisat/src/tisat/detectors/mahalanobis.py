"""Mahalanobis: how far a window lies from the normal mean, in units of the normal covariance.

Directions in which normal windows hardly move count most, so it sees broken relations between channels and between
neighbouring rows at once. It assumes one cloud: where normal data have several regimes, the space between them
looks normal too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dtrtri

from tisat.alarms.explanation import Explanation, shares
from tisat.detectors._moments import window_moments
from tisat.detectors._windows import StandardWindowDetector
from tisat.detectors.base import Array, Traits
from tisat.utils.parameters import learned, real
from tisat.utils.types import Flags

SAYS = 9.0  # squared spreads from what the others say, from which on that explains a row
COLUMNS = 250  # of the whitening that are multiplied at once


class Mahalanobis(StandardWindowDetector):
    """Squared Mahalanobis distance of standardised windows, divided by their dimension.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((500, 1))
    >>> train = common + 0.1 * rng.standard_normal((500, 3))  # three channels that move together
    >>> detector = Mahalanobis(window=1).fit(train)
    >>> scores = detector.decision_function([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
    >>> bool(scores[0] < detector.normal_level() < scores[1])
    True

    References
    ----------
    Hotelling: Multivariate quality control, 1947 (the T² statistic).
    """

    # partial: what is missing counts as usual: the distance to be expected, given the rest
    traits: ClassVar[Traits] = Traits(crossfit=5, partial=True, fault_kind="broken correlation")

    ridge: float = real(
        1e-3,
        above=0.0,
        doc="Added to the diagonal of the covariance, as a share of its mean diagonal: directions in which normal windows never "
        "moved get a finite weight.",
    )

    mean_: Array = learned("window * C")  # (d,) mean of the flat windows
    whitening_: Array = learned(
        "window * C, window * C"
    )  # (d, d), upper triangular: the squared norm of (x - mean) @ whitening is the squared distance

    def _fit_windows(self, parts: Sequence[Array]) -> None:
        self.mean_, covariance = window_moments(parts, window=self.window)
        self._row_precision: Array | None = None
        mean_variance = np.trace(covariance) / len(covariance)
        covariance[np.diag_indices_from(covariance)] += self.ridge * (mean_variance if mean_variance > 0 else 1.0)
        try:
            self.whitening_ = np.ascontiguousarray(dtrtri(np.linalg.cholesky(covariance), lower=1)[0].T)
            self._triangular = True
        except np.linalg.LinAlgError:  # rounding made a direction negative, as values near the largest float do
            values, vectors = np.linalg.eigh(covariance)
            self.whitening_ = vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))
            self._triangular = False

    def _score_windows(self, flat: Array) -> Array:
        missing = np.isnan(flat)
        if not missing.any():
            return np.asarray(np.mean(self._whitened(flat - self.mean_) ** 2, axis=1, keepdims=True))
        points = np.full((len(flat), 1), np.nan)
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for i, gaps in enumerate(patterns):
            rows = which.ravel() == i
            here = flat[rows][:, ~gaps] - self.mean_[~gaps]
            if here.shape[1]:
                squares = (here @ self._whitening_of(gaps)) ** 2
                points[rows, 0] = (squares.sum(axis=1) + gaps.sum()) / len(gaps)  # a normal value adds 1 on average
        return points

    def _whitened(self, centred: Array) -> Array:
        """``centred @ whitening``, without most of the zeros below its diagonal: one row takes as long as reading the weights."""
        weights = self.whitening_
        if not hasattr(self, "_triangular"):  # models of earlier versions are not
            self._triangular = not np.tril(weights, -1).any()
        if not self._triangular:
            return np.asarray(centred @ weights)
        out = np.empty_like(centred)
        for first in range(0, len(weights), COLUMNS):
            columns, last = slice(first, first + COLUMNS), first + COLUMNS
            np.matmul(centred[:, :last], weights[:last, columns], out=out[:, columns])
        return out

    def _whitening_of(self, gone: Flags) -> Array:
        """The whitening of the values that are there: of their own covariance, the others summed over."""
        if not gone.any():
            return self.whitening_
        covariance = np.linalg.inv(self.whitening_ @ self.whitening_.T)[np.ix_(~gone, ~gone)]
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        return np.asarray(vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny)))

    def _explain(self, row: Array, point: Array) -> Explanation:
        """The distance of each channel from what the others of the row say, where that says something."""
        if np.isnan(row).any() or len(row) < 2:
            return super()._explain(row, point)
        if getattr(self, "_row_precision", None) is None:
            covariance = np.linalg.inv(self.whitening_ @ self.whitening_.T)[-len(row) :, -len(row) :]
            self._row_precision = np.linalg.inv(covariance)
        precision: Array = np.asarray(self._row_precision)
        own = np.diag(precision)
        beside = (precision @ (self._standardise(row[None])[0] - self.mean_[-len(row) :])) / own
        squares = beside**2 * own
        if squares.max() < SAYS:
            return super()._explain(row, point)
        expected, spread = row - beside * self.scale_, self.scale_ / np.sqrt(own)
        return Explanation(self.traits.fault_kind, shares(squares), row, expected, spread, "contribution")

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 5}

"""NearestNeighbors: how far a window is from the nearest normal window.

It sees shapes and levels that did not occur in training, whatever they are, and takes any number of normal regimes. It
does not know which channels matter: in many dimensions a small change in one drowns in the noise of the others. With
``window="period"`` each channel is compared alone and without its mean, in windows of the data's own period: shapes
count, levels do not. For a whole file :meth:`NearestNeighbors.centred_scores` scores a row by all windows that contain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tisat.detectors._neighbors import NeighborDetector
from tisat.detectors.base import Array
from tisat.errors import ArtefactError, ParameterError
from tisat.series import SeriesLike
from tisat.utils.neighbors import nearest
from tisat.utils.parameters import integer, learned, value
from tisat.utils.period import own_period
from tisat.utils.types import Integers
from tisat.utils.validation import check_integer

PERIOD = "period"


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

    window: Any = value(
        10,
        doc="Rows of a window, the newest included; 1 looks at single rows. 'period': as many as the period of the training rows (by "
        "autocorrelation, at most half of them; 125 where there is none), each channel compared alone and without its mean.",
    )
    n_neighbors: int = integer(1, doc="k: the distance to the k-th nearest stored window is the score.")

    stored_: Array = learned("S, D")  # (N, window * C) standardised flat windows; without their means for a period

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.window != PERIOD:
            if isinstance(self.window, str):
                raise ParameterError(
                    f"The 'window' parameter of NearestNeighbors must be an integer >= 1 or 'period'. Got {self.window!r} instead."
                )
            check_integer(self.window, "window", "NearestNeighbors", minimum=1)

    def _check_learned(self) -> None:
        super()._check_learned()
        width = self.stored_.shape[1]
        if width != self._length() * self.n_channels_ or not width:
            raise ArtefactError(
                f"The 'stored_' of NearestNeighbors must have window * C = {self._length() * self.n_channels_} columns. Got {width} instead."
            )

    def _length(self) -> int:
        if self.window == PERIOD:
            return self.stored_.shape[1] // self.n_channels_ if hasattr(self, "stored_") else 1
        return int(self.window)

    def _fit(self, parts: Sequence[Array]) -> None:
        if self.window == PERIOD:
            longest = max(parts, key=len)
            rows = max(2, min(own_period(longest), len(longest) // 2))
            self.stored_ = np.empty((0, rows * longest.shape[1]))  # says how long a window is
        super()._fit(parts)

    def _shapes(self, flat: Array) -> Array:
        if self.window != PERIOD:
            return flat
        windows = flat.reshape(len(flat), self._length(), -1)
        return np.asarray((windows - windows.mean(axis=1, keepdims=True)).reshape(len(flat), -1))

    def _nearest(self, flat: Array, skip: tuple[Integers, Integers] | None = None) -> tuple[Array, Integers]:
        channels = self.n_channels_
        if self.window != PERIOD or channels == 1:
            return super()._nearest(flat, skip)
        squares = np.zeros((len(flat), self.n_neighbors))
        moving = [c for c in range(channels) if self.stored_[:, c::channels].any()]
        indices = np.zeros((len(flat), self.n_neighbors), dtype=np.int64)
        for c in moving or [0]:
            own, stored = (np.ascontiguousarray(windows[:, c::channels]) for windows in (flat, self.stored_))
            distances, indices = nearest(own, stored, k=self.n_neighbors, skip=skip)
            squares += distances**2
        for c in set(range(channels)) - set(moving or [0]):  # every stored window is 0: nothing to search
            squares += (flat[:, c::channels] ** 2).sum(axis=1, keepdims=True)
        return np.sqrt(squares), indices

    def _score_neighbors(self, distances: Array, indices: Integers) -> Array:
        return distances[:, -1:]

    def centred_scores(self, series: SeriesLike) -> Array:
        """Score each row ``(T,)`` of a whole file by the mean distance of all windows that contain it.

        For rankings of files, where a row may be scored by what comes after it; no threshold is calibrated for it.
        """
        scores = self.decision_function(series)
        known, length = np.isfinite(scores), self._length()
        sums, counts = (
            np.concatenate([[0.0], np.cumsum(values)]) for values in (np.where(known, scores, 0.0), known.astype(float))
        )
        stop = np.minimum(np.arange(len(scores)) + length, len(scores))
        number = counts[stop] - counts[:-1]
        total = sums[stop] - sums[:-1]
        return np.asarray(np.divide(total, number, out=np.full(len(scores), np.nan), where=number > 0))

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 3, "max_windows": 200}

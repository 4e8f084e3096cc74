"""The rhythm view: each channel's steps follow each other otherwise than they used to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numba
import numpy as np

from tisat.base import Array
from tisat.detectors.views.base import Integers, Scene, View, thinned

ROWS = 60  # steps looked at
LAGS = 8  # how far apart
LEAST_STEP = 1e-3  # of the training range
LEAST_SPREAD = 0.05  # of an autocorrelation
LEARNED_FROM = 6000  # instants


@numba.njit(cache=True, nogil=True)
def _echoes(rows: Array, at: Integers, length: int, least: float, out: Array) -> None:  # pragma: no cover - compiled
    """Autocorrelations of the last ``length`` steps at lags 1, 2, ...: ``out`` (n, lags, C)."""
    lags, channels = out.shape[1], out.shape[2]
    steps = np.empty((length + lags, channels))
    energy = np.empty(channels)
    for i in range(len(at)):
        first = at[i] - length - lags + 1
        for j in range(length + lags):
            for c in range(channels):
                steps[j, c] = rows[first + j, c] - rows[first + j - 1, c]
        energy[:] = length * least * least
        for j in range(lags, length + lags):
            for c in range(channels):
                energy[c] += steps[j, c] * steps[j, c]
        for lag in range(lags):
            echo = out[i, lag]
            echo[:] = 0.0
            for j in range(lags, length + lags):
                for c in range(channels):
                    echo[c] += steps[j, c] * steps[j - lag - 1, c]
            for c in range(channels):
                echo[c] /= energy[c]


class Rhythm(View):
    """Distance of the autocorrelations of each channel's steps over 60 rows from nominal ones (Mahalanobis, per channel).

    Autocorrelations do not depend on how large the steps are, so a machine that is merely louder under load is nominal.
    """

    name = "rhythm"
    kind = "rhythm"
    sees: ClassVar[str] = (
        "an oscillation that was not there, a changed frequency, noise where there was a wave, a stuck sensor"
    )
    blind: ClassVar[str] = "single spikes, levels and drifts; a rhythm slower than about 40 rows"
    context: ClassVar[int] = ROWS + LAGS
    reach: ClassVar[float] = 2.0
    learned: ClassVar[dict[str, tuple[str, ...]]] = {"usual": ("C", "lags"), "whitening": ("C", "lags", "lags")}

    usual: Array  # (C, LAGS)
    whitening: Array  # (C, LAGS, LAGS)

    def _autocorrelations(self, scene: Scene) -> Array:
        out = np.empty((len(scene.at), LAGS, scene.rows.shape[1]))
        _echoes(scene.rows, scene.at, ROWS, LEAST_STEP, out)
        return out.transpose(0, 2, 1)  # (n, C, lags)

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is nominal."""
        echoes = np.concatenate([self._autocorrelations(scene) for scene in thinned(scenes, LEARNED_FROM)])
        self.usual = echoes.mean(axis=0)
        centred = (echoes - self.usual).transpose(1, 2, 0)  # (C, lags, n)
        covariance = centred @ centred.transpose(0, 2, 1) / len(echoes) + LEAST_SPREAD**2 * np.eye(LAGS)
        values, vectors = np.linalg.eigh(covariance)
        self.whitening = vectors / np.sqrt(values)[:, None, :]

    def contributions(self, scene: Scene) -> Array:
        """How far each channel is from nominal ``(n, C)``."""
        centred = (self._autocorrelations(scene) - self.usual).transpose(1, 0, 2)  # (C, n, lags)
        return np.asarray(np.mean((centred @ self.whitening) ** 2, axis=2).T)

"""The rhythm view: each channel's steps follow each other otherwise than they used to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numba
import numpy as np

from tisat.base import Array
from tisat.detectors.views.base import Integers, Scene, View, rare_unit, thinned

ROWS = 60  # steps looked at
LAGS = 8  # how far apart
LEAST_STEP = 0.01  # of the training range
LARGEST = 3.0  # usual steps; larger ones are cut off
LEAST_ENERGY = 0.25  # of the usual energy: added to it, so that a channel at rest has no rhythm
LEAST_SPREAD = 0.05  # of an autocorrelation
LEARNED_FROM = 6000  # instants


@numba.njit(cache=True, nogil=True)
def _echoes(
    rows: Array, at: Integers, length: int, largest: Array, least: Array, out: Array
) -> None:  # pragma: no cover - compiled
    """Autocorrelations of the last ``length`` steps, cut off, at lags 1, 2, ...: ``out`` (n, lags, C)."""
    lags, channels = out.shape[1], out.shape[2]
    steps = np.empty((length + lags, channels))
    energy = np.empty(channels)
    for i in range(len(at)):
        first = at[i] - length - lags + 1
        for j in range(length + lags):
            for c in range(channels):
                step = rows[first + j, c] - rows[first + j - 1, c]
                steps[j, c] = min(max(step, -largest[c]), largest[c])
        energy[:] = length * least
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

    Autocorrelations hardly depend on how large the steps are, so a machine that is merely louder under load is nominal. Steps
    are cut off at 3 times their usual size, so that one jump is not a rhythm, and a channel that hardly moves has none.
    """

    name = "rhythm"
    kind = "rhythm"
    sees: ClassVar[str] = (
        "an oscillation that was not there, a changed frequency, noise where there was a wave, a stuck sensor"
    )
    blind: ClassVar[str] = "single spikes, levels and drifts; a rhythm slower than about 40 rows"
    context: ClassVar[int] = ROWS + LAGS
    reach: ClassVar[float] = 2.0
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        "step": ("C",), "usual": ("C", "lags"), "whitening": ("C", "lags", "lags")
    }  # fmt: skip

    step: Array  # (C,) r.m.s. step in training
    usual: Array  # (C, LAGS)
    whitening: Array  # (C, LAGS, LAGS)

    def _autocorrelations(self, scene: Scene) -> Array:
        out = np.empty((len(scene.at), LAGS, scene.rows.shape[1]))
        _echoes(scene.rows, scene.at, ROWS, LARGEST * self.step, LEAST_ENERGY * self.step**2, out)
        return out.transpose(0, 2, 1)  # (n, C, lags)

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is nominal."""
        squares = np.concatenate([np.diff(scene.rows, axis=0) ** 2 for scene in scenes]).mean(axis=0)
        self.step = np.maximum(np.sqrt(squares), LEAST_STEP)
        echoes = np.concatenate([self._autocorrelations(scene) for scene in thinned(scenes, LEARNED_FROM)])
        self.usual = echoes.mean(axis=0)
        centred = (echoes - self.usual).transpose(1, 2, 0)  # (C, lags, n)
        covariance = centred @ centred.transpose(0, 2, 1) / len(echoes) + LEAST_SPREAD**2 * np.eye(LAGS)
        values, vectors = np.linalg.eigh(covariance)
        self.whitening = vectors / np.sqrt(values)[:, None, :]
        own = self._distances(echoes)
        self.whitening /= np.sqrt(rare_unit(own))[:, None, None]

    def _distances(self, echoes: Array) -> Array:
        """Mean squared whitened deviation ``(n, C)`` of autocorrelations ``(n, C, lags)``."""
        centred = (echoes - self.usual).transpose(1, 0, 2)  # (C, n, lags)
        return np.asarray(np.mean((centred @ self.whitening) ** 2, axis=2).T)

    def contributions(self, scene: Scene) -> Array:
        """How far each channel is from nominal ``(n, C)``."""
        return self._distances(self._autocorrelations(scene))

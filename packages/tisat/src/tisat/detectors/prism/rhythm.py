"""The rhythm view: each channel's steps follow each other otherwise than they used to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.view import Scene, View, blocks_of, gathered, rare_unit, thinned
from tisat.utils.compiled import compiled
from tisat.utils.types import Flags, Integers

ROWS = 60  # steps looked at
LAGS = 8  # how far apart
LEAST_STEP = 0.01  # of the training range
LARGEST = 3.0  # usual steps; larger ones are cut off
LEAST_ENERGY = 0.25  # of the usual energy: added to it, so that a channel at rest has no rhythm
LEAST_SPREAD = 0.05  # of an autocorrelation
LEARNED_FROM = 6000  # rows
TEN, STRETCH = 10, 300  # rows summed together (ROWS is a multiple), and looked at together


@compiled()
def make_echoes(
    rows: Array,
    at: Integers,
    length: int,
    largest: Array,
    least: Array,
    steps: Array,
    needed: Flags,
    tens: Array,
    energy: Array,
    out: Array,
) -> None:  # pragma: no cover - compiled
    """Autocorrelations of the last ``length`` steps, cut off, at lags 1, 2, ...: ``out`` (n, lags, C).

    Products are summed ten rows at a time, and the tens are shared by the rows of a stretch. Each sum is made afresh and in
    the same order for one row and for many. ``steps``, ``needed``, ``tens`` and ``energy`` are room for a stretch.
    """
    lags, channels = out.shape[1], out.shape[2]
    begin = 0
    while begin < len(at):
        end = begin + 1
        while end < len(at) and at[end - 1] < at[end] < at[begin] + STRETCH:
            end += 1
        base = at[begin] - length + TEN  # the first row a ten ends at
        count = at[end - 1] - base + 1
        for j in range(
            count + TEN - 1 + lags
        ):  # rows are taken out before each inner loop: it is then one vector operation
            before, after, step = rows[base - TEN - lags + j], rows[base - TEN - lags + j + 1], steps[j]
            for c in range(channels):
                step[c] = min(max(after[c] - before[c], -largest[c]), largest[c])
        for r in range(count):
            needed[r] = False
        for i in range(begin, end):
            for r in range(at[i] - base - length + TEN, at[i] - base + 1, TEN):
                needed[r] = True
        for r in range(count):
            if not needed[r]:
                continue
            for lag in range(lags + 1):
                total = tens[r, lag]
                for c in range(channels):
                    total[c] = 0.0
                for j in range(r + lags, r + lags + TEN):
                    step, earlier = steps[j], steps[j - lag]
                    for c in range(channels):
                        total[c] += step[c] * earlier[c]
        for i in range(begin, end):
            last = at[i] - base
            for lag in range(lags + 1):
                total = energy if lag == 0 else out[i, lag - 1]
                for c in range(channels):
                    total[c] = length * least[c] if lag == 0 else 0.0
                for r in range(last - length + TEN, last + 1, TEN):
                    ten = tens[r, lag]
                    for c in range(channels):
                        total[c] += ten[c]
                if lag > 0:
                    for c in range(channels):
                        total[c] /= energy[c]
        begin = end


@compiled()
def echo_distances(
    echoes: Array, usual: Array, whitening: Array, along: Array, out: Array
) -> None:  # pragma: no cover - compiled
    """Mean squared whitened deviation ``(n, C)`` of autocorrelations ``(n, lags, C)``."""
    lags, channels = usual.shape
    for i in range(len(echoes)):
        for k in range(lags):
            for c in range(channels):
                along[c] = 0.0
            for lag in range(lags):
                echo, centre, weight = echoes[i, lag], usual[lag], whitening[lag, k]
                for c in range(channels):
                    along[c] += (echo[c] - centre[c]) * weight[c]
            total = out[i]
            for c in range(channels):
                total[c] += along[c] * along[c] / lags


def echoes(rows: Array, at: Integers, largest: Array, least: Array, out: Array | None = None) -> Array:
    """Autocorrelations ``(n, LAGS, C)`` of the last ROWS steps, cut off at ``largest``, with ``least`` added to their mean square."""
    channels, most = rows.shape[1], ROWS + (STRETCH if len(at) > 1 else 0)
    out = np.empty((len(at), LAGS, channels)) if out is None else out
    room = np.empty((most + LAGS, channels)), np.empty(most, dtype=np.bool_), np.empty((most, LAGS + 1, channels))
    make_echoes(rows, at, ROWS, largest, least, *room, np.empty(channels), out)
    return out


class Rhythm(View):
    """Distance of the autocorrelations of each channel's steps over 60 rows from normal ones (Mahalanobis, per channel).

    Autocorrelations hardly depend on how large the steps are, so a machine that is merely louder under load is normal. Steps
    are cut off at 3 times their usual size, so that one jump is not a rhythm, and a channel that hardly moves has none.

    Sees: an oscillation that was not there, a changed frequency, noise where there was a wave, a stuck sensor.
    Blind to: single spikes, levels and drifts; a rhythm slower than about 40 rows.
    """

    name = "rhythm"
    kind = "rhythm"
    context: ClassVar[int] = ROWS + LAGS
    reach: ClassVar[float] = 2.0
    slow: ClassVar[bool] = True
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        "step": ("C",), "usual": ("lags", "C"), "whitening": ("lags", "lags", "C")
    }  # fmt: skip

    step: Array  # (C,) r.m.s. step in training
    usual: Array  # (LAGS, C)
    whitening: Array  # (LAGS, LAGS, C): lags to whitened directions, channel by channel

    @staticmethod
    def sizes(n_channels: int) -> dict[str, int]:  # compiled loops count to LAGS
        """As many lags as are looked at."""
        return {"lags": LAGS}

    def _autocorrelations(self, scene: Scene, out: Array | None = None) -> Array:
        return echoes(scene.rows, scene.at, LARGEST * self.step, LEAST_ENERGY * self.step**2, out)

    def _distances(self, echoes: Array) -> Array:
        out = np.zeros((len(echoes), echoes.shape[2]))
        echo_distances(echoes, self.usual, self.whitening, np.empty(echoes.shape[2]), out)
        return out

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal."""
        squares, steps = np.zeros(scenes[0].rows.shape[1]), sum(len(scene.rows) - 1 for scene in scenes)
        for scene in scenes:
            for some in blocks_of(len(scene.rows) - 1):
                step = np.diff(scene.rows[some.start : some.stop + 1], axis=0)
                squares += np.einsum("nc,nc->c", step, step) / steps
        self.step = np.maximum(np.sqrt(squares), LEAST_STEP)
        echoes = gathered(thinned(scenes, LEARNED_FROM), (LAGS, len(squares)), self._autocorrelations)
        self.usual = echoes.mean(axis=0)
        covariance = np.empty((echoes.shape[2], LAGS, LAGS))
        for i in range(LAGS):
            for j in range(i + 1):  # pair by pair: the array is large, and is never copied
                products = np.einsum("nc,nc->c", echoes[:, i], echoes[:, j]) / len(echoes)
                covariance[:, i, j] = covariance[:, j, i] = products - self.usual[i] * self.usual[j]
        covariance += LEAST_SPREAD**2 * np.eye(LAGS)
        values, vectors = np.linalg.eigh(covariance)
        self.whitening = np.ascontiguousarray((vectors / np.sqrt(values)[:, None, :]).transpose(1, 2, 0))
        self.whitening = self.whitening / np.sqrt(rare_unit(self._distances(echoes)))

    def contributions(self, scene: Scene) -> Array:
        """How far each channel is from normal ``(n, C)``."""
        return self._distances(self._autocorrelations(scene))

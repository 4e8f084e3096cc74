"""The activity view: channels that move too little or too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.view import Scene, View, gathered, rare_unit, variances
from tisat.utils.compiled import compiled
from tisat.utils.types import Integers

ROWS = 20  # steps averaged
LEAST_STEP = 1e-3  # of the training range
LEAST_SPREAD = 0.1  # of the logarithm of the activity


@compiled()
def mean_squares(rows: Array, at: Integers, length: int, out: Array) -> None:  # pragma: no cover - compiled
    """Mean square step of each channel over the last ``length`` steps."""
    for i in range(len(at)):
        square = out[i]
        for t in range(at[i] - length + 1, at[i] + 1):
            before, after = rows[t - 1], rows[t]
            for c in range(rows.shape[1]):
                square[c] += (after[c] - before[c]) ** 2
        for c in range(rows.shape[1]):
            square[c] /= length


class Activity(View):
    """Squared deviation of the logarithm of the r.m.s. step over 20 rows from its usual value.

    Sees: a sensor that is stuck or damped, a channel that has become noisy.
    Blind to: levels, drifts, relations; a stuck channel that often stands still for 20 rows.
    """

    name = "activity"
    kind = "stuck"
    context: ClassVar[int] = ROWS
    signed: ClassVar[bool] = True
    learned: ClassVar[dict[str, tuple[str, ...]]] = {"usual": ("C",), "spread": ("C",)}

    usual: Array  # (C,) mean of the logarithm
    spread: Array  # (C,)

    def logarithms(self, scene: Scene, out: Array | None = None) -> Array:
        """Logarithm of the r.m.s. step ``(n, C)``."""
        out = np.empty((len(scene.at), scene.rows.shape[1])) if out is None else out
        out[...] = 0.0
        mean_squares(scene.rows, scene.at, ROWS, out)
        out += LEAST_STEP**2
        np.log(out, out=out)
        out *= 0.5
        return out

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal."""
        every = gathered(scenes, (scenes[0].rows.shape[1],), self.logarithms)
        self.usual, variance = variances(np.split(every, np.cumsum([len(scene.at) for scene in scenes[:-1]])))
        self.spread = np.maximum(np.sqrt(variance), LEAST_SPREAD)
        every -= self.usual
        every /= self.spread
        every *= every
        self.spread *= np.sqrt(rare_unit(every, own=True))

    def deviations(self, scene: Scene) -> Array:
        """How much livelier (above 0) or quieter each channel is than usual, in its usual spread."""
        return np.asarray((self.logarithms(scene) - self.usual) / self.spread)

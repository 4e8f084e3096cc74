"""The error view: how far each channel is from its one-step forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.view import Scene, View, variances

LEAST_SPREAD = 0.01  # of the training range


class Error(View):
    """Squared forecast errors in units of each channel's usual error.

    Sees: jumps, spikes, sudden steps, anything a forecast from the last rows did not expect.
    Blind to: a sensor that is stuck, a slow drift, a level once it has been reached.
    """

    name = "error"
    kind = "spike"
    context: ClassVar[int] = 0  # of its own; the forecast's comes on top
    signed: ClassVar[bool] = True
    momentary: ClassVar[bool] = True
    learned: ClassVar[dict[str, tuple[str, ...]]] = {"spread": ("C",)}

    spread: Array  # (C,)

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal."""
        self.spread = np.maximum(np.sqrt(variances([scene.errors for scene in scenes])[1]), LEAST_SPREAD)

    def deviations(self, scene: Scene) -> Array:
        """The same with a sign."""
        return np.asarray(scene.errors / self.spread)

"""The joint view: forecast errors that do not go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.error import LEAST_SPREAD
from tisat.detectors.prism.filling import alike
from tisat.detectors.prism.shape import ROWS, distances, own_distances, training_shapes
from tisat.detectors.prism.view import Scene, View, moments
from tisat.utils.types import Flags


class Joint(View):
    """Mahalanobis form of the forecast errors, split into what each channel adds to it.

    With one channel its errors have nothing to go with: it looks at shapes instead (:mod:`tisat.detectors.prism.shape`), the last
    20 rows without their mean against those of training.

    Sees: channels that usually move together and now do not, from one row to the next.
    Blind to: what the error view is blind to; relations that were broken slowly.
    """

    name = "joint"
    kind = "multivariate residual"
    context: ClassVar[int] = 0
    momentary: ClassVar[bool] = True
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        "mean": ("C",), "precision": ("C", "C"), "shapes": ("shapes", "rows"), "when": ("shapes",)
    }  # fmt: skip
    added: ClassVar[tuple[str, ...]] = ("shapes", "when")

    mean: Array  # (C,)
    precision: Array  # (C, C)
    shapes: Array  # (n, 20): of the only channel, in training; empty where there are several
    when: Array  # (n,): row of each among those of training

    @staticmethod
    def sizes(n_channels: int) -> dict[str, int]:
        """Shapes are of the only channel, and of as many rows as are compared."""
        return {"rows": ROWS} if n_channels == 1 else {"rows": ROWS, "shapes": 0}

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal."""
        self.mean, covariance = moments([scene.errors for scene in scenes])
        covariance[np.diag_indices_from(covariance)] += LEAST_SPREAD**2
        precision = np.linalg.inv(covariance)
        self.precision = (precision + precision.T) / 2
        self.shapes, self.when = training_shapes(scenes if len(self.mean) == 1 else ())

    def expected(self, errors: Array, unknown: Flags) -> Array:
        """Errors ``(n, C)`` with those that are not known replaced by what the others of the row say."""
        errors = errors.copy()
        for here, gone in alike(unknown):
            lost, rest = np.flatnonzero(gone), np.flatnonzero(~gone)
            known = errors[here][:, rest] - self.mean[rest]
            inverse = self.precision[lost]
            errors[here[:, None], lost] = (
                self.mean[lost] - known @ np.linalg.solve(inverse[:, lost], inverse[:, rest]).T
            )
        return errors

    def contributions(self, scene: Scene) -> Array:
        """How far each channel is from normal ``(n, C)``."""
        if len(self.shapes):
            return distances(scene, self.shapes)
        centred = scene.errors - self.mean
        return np.asarray(centred * (centred @ self.precision))

    def own(self, scenes: Sequence[Scene]) -> Array:
        """Of training rows; a shape must not find itself."""
        return own_distances(scenes, self.shapes, self.when) if len(self.shapes) else super().own(scenes)

"""Which contributions of a view rest on filled values."""

from __future__ import annotations

import numpy as np

from tisat.detectors.prism.modes import Mode
from tisat.detectors.prism.view import Scene, View
from tisat.utils.types import Flags


def touched(missing: Flags, scene: Scene, view: View, reach: int) -> Flags:
    """Where the rows a view looks at hold a filled value of the channel itself ``(n, C)``, or of any for a mode view.

    ``missing`` (T, C) are the filled values; a forecast looks ``reach`` rows back.
    """
    at, back = scene.at, reach if view.name in ("error", "joint") else 0
    so_far = np.concatenate([np.zeros((1, missing.shape[1]), dtype=np.int64), np.cumsum(missing, axis=0)])
    filled = np.asarray(so_far[at + 1] - so_far[at - max(view.context, back)] > 0)
    if isinstance(view, Mode):
        lost: Flags = np.asarray(filled.any(axis=1))
        if view.calendar[0] and scene.clock is not None:
            lost = lost | np.isnan(scene.clock[at])
        return np.repeat(lost[:, None], missing.shape[1], axis=1)
    return filled

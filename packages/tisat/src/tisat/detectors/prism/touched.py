"""Which contributions of a view rest on filled values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.detectors.prism.modes import Mode
from tisat.detectors.prism.view import Scene, View
from tisat.utils.types import Flags


def touched(missing: Flags, scene: Scene, views: Sequence[View], reach: int) -> Flags:
    """Where the rows each view looks at hold a filled value of the channel itself ``(n, V, C)``, or of any for a mode view.

    ``missing`` (T, C) are the filled values; a forecast looks ``reach`` rows back.
    """
    at, so_far = scene.at, np.zeros((len(missing) + 1, missing.shape[1]), dtype=np.int64)
    np.cumsum(missing, axis=0, out=so_far[1:])
    out = np.empty((len(at), len(views), missing.shape[1]), dtype=np.bool_)
    for v, view in enumerate(views):
        back = max(view.context, reach if view.name in ("error", "joint") else 0)
        np.greater(so_far[at + 1], so_far[at - back], out=out[:, v])
        if isinstance(view, Mode):
            lost: Flags = np.asarray(out[:, v].any(axis=1))
            if view.calendar[0] and scene.clock is not None:
                lost |= np.isnan(scene.clock[at])
            out[:, v] = lost[:, None]
    return out

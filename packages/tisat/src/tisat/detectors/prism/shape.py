"""Shapes of one channel: the last rows without their mean, against those of training.

The mean is what a level is; without it only the form is compared, and a form that training has at another level is none to speak of.
Distances are exact. Used by the joint view where there is one channel only, and nothing for its errors to go with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.view import Scene
from tisat.utils.neighbors import nearest
from tisat.utils.types import Integers

ROWS = 20  # of a window
STORED = 4000  # windows of training, evenly spread
APART = 100  # rows either side that a training window may not find a neighbour in


def shapes_of(rows: Array, at: Integers) -> Array:
    """The windows ``(n, ROWS)`` of one channel that end at each row, without their mean."""
    windows: Array = rows[at[:, None] + np.arange(1 - ROWS, 1), 0]
    total = np.zeros(len(windows))
    for j in range(ROWS):  # in order, so that one window alone and many together have the same mean
        total += windows[:, j]
    return np.asarray(windows - (total / ROWS)[:, None])


def training_shapes(scenes: Sequence[Scene]) -> tuple[Array, Array]:
    """Shapes ``(STORED, ROWS)`` of training rows, and when each was, parts numbered on with a gap."""
    total = sum(len(scene.at) for scene in scenes)
    picked: Integers = np.unique(np.linspace(0, max(total - 1, 0), min(total, STORED)).round().astype(np.int64))
    shapes: list[Array] = [np.empty((0, ROWS))]
    when: list[Array] = [np.empty(0)]
    first = offset = 0
    for scene in scenes:
        some = picked[(picked >= first) & (picked < first + len(scene.at))] - first
        shapes.append(shapes_of(scene.rows, scene.at[some]))
        when.append((scene.at[some] + offset).astype(np.float64))
        first, offset = first + len(scene.at), offset + len(scene.rows) + APART
    return np.concatenate(shapes), np.concatenate(when)


def distances(scene: Scene, shapes: Array) -> Array:
    """Squared distance ``(n, 1)`` of each row's shape to the nearest of training."""
    return np.asarray(nearest(shapes_of(scene.rows, scene.at), shapes, k=1)[0] ** 2)


def own_distances(scenes: Sequence[Scene], shapes: Array, when: Array) -> Array:
    """The same of training rows, which must not find themselves; rows that have no other are left out."""
    parts, offset = [np.empty((0, 1))], 0
    apart = min(APART, len(when) // 4)
    for scene in scenes:
        numbers = scene.at + offset
        span = (np.searchsorted(when, numbers - apart, "left"), np.searchsorted(when, numbers + apart, "right"))
        found, where = nearest(shapes_of(scene.rows, scene.at), shapes, k=1, skip=span)
        parts.append(found[where[:, 0] >= 0] ** 2)
        offset += len(scene.rows) + APART
    return np.concatenate(parts)

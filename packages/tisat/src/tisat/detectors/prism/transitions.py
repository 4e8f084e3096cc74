"""How long ago a switch was, and how much louder the views are then: what training has seen dozens of times is normal.

A switch is that of a channel, or a time of the week at which jumps recur (:mod:`tisat.detectors.prism.schedule`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism import VIEWS
from tisat.detectors.prism.hours import Hours
from tisat.detectors.prism.schedule import SLOT, SLOTS, are_places, slots_of, table_of
from tisat.detectors.prism.switches import DAY, MOST_SWITCHES, WEEKDAYS
from tisat.detectors.prism.view import Scene, View
from tisat.errors import ArtefactError
from tisat.utils.compiled import compiled
from tisat.utils.types import AnyArray, Arrays, Flags, Integers

EDGES = np.array([3.0, 8.0, 21.0, 30.0, 60.0])  # rows since the last switch that divide cells; the last cell is calm
RARE_SHARE = 50  # one in so many rows of a cell makes its level
ENOUGH = 4000  # rows after switches that levels are learned from
NAME = "transitions"  # in files


def units_of(contributions: Array, cells: Integers) -> Array:
    """By how much contributions ``(n, V, C)`` are larger in each cell than in calm rows: ``(cells, V, C)``, at least 1.

    First each channel, then what is left of their mean: at a switch many channels are loud in the same row.
    """
    units = _louder(contributions, cells)
    together = (contributions / units[cells]).mean(axis=2, keepdims=True)
    return np.asarray(units * _louder(together, cells))


def _louder(contributions: Array, cells: Integers) -> Array:
    levels = np.zeros((len(EDGES) + 1, *contributions.shape[1:]))
    calm = levels[0]
    for cell in range(len(levels)):
        here = contributions[cells == cell]
        if len(here):
            most = max(2, len(here) // RARE_SHARE)
            levels[cell] = np.sort(here, axis=0)[-most:].mean(axis=0)
        if len(here) >= RARE_SHARE:
            calm = levels[cell]  # where no row is long after a switch: those that are longest
    return np.asarray(np.maximum(levels / np.maximum(calm, 1e-9), 1.0))


@compiled()
def cell_of(age: float, edges: Array) -> int:  # pragma: no cover - compiled
    """The place of so many rows since a switch among the edges."""
    cell = 0
    while cell < len(edges) and edges[cell] <= age:
        cell += 1
    return cell


@compiled()
def cell_of_window(
    rows: Array, window: Array, switches: Integers, scheduled: Flags, edges: Array
) -> int:  # pragma: no cover - compiled
    """How long ago the last switch was: :meth:`Transitions.cells` of the last row."""
    age, channels = 0, rows.shape[1]
    while age < edges[-1] and age + 1 < len(rows):
        if len(scheduled):
            clock = window[len(rows) - 1 - age, channels]
            if clock == clock and scheduled[int((clock + 3 * DAY) % (WEEKDAYS * DAY) // SLOT)]:
                return cell_of(age, edges)
        for c in switches:
            if rows[len(rows) - 1 - age, c] != rows[len(rows) - 2 - age, c]:
                return cell_of(age, edges)
        age += 1
    return len(edges)


class Transitions:
    """The views in units of how loud they usually are so many rows after a switch, where mode views are not taken."""

    def __init__(self, switches: Array, times: Array, units: Array | None = None) -> None:
        self.switches = switches  # (K,) channels
        self.times = times  # slots of the week at which the series jumps
        self.scheduled = table_of(times)
        self.channels: Integers = switches.astype(np.int64)
        self.units = np.ones((len(EDGES) + 1, len(VIEWS), 0)) if units is None else units  # (cells, V, C)

    def cells(self, scene: Scene) -> Integers:
        """The cell ``(n,)`` of each row of a scene: how long ago the last switch was."""
        positions = scene.rows[:, self.channels]
        moved = np.append(False, (positions[1:] != positions[:-1]).any(axis=1))
        if len(self.times) and scene.clock is not None:
            moved |= self.scheduled[slots_of(scene.clock)]
        last = np.maximum.accumulate(np.where(moved, np.arange(len(moved)), -len(moved) - int(EDGES[-1])))
        return np.asarray(np.digitize(np.minimum(scene.at - last[scene.at], EDGES[-1]), EDGES))

    def fit(
        self,
        views: Sequence[View],
        scenes: Sequence[Scene],
        few: Sequence[Scene],
        own: Sequence[Array],
        hours: Hours | None,
    ) -> list[Array]:
        """Learn from all training rows; the contributions ``own`` of each view at the rows of ``few``, in the units learned."""
        cells = np.concatenate([self.cells(scene) for scene in few])
        after = []  # switches are rare: rows evenly spread hardly meet them
        for scene in scenes:
            near = np.flatnonzero(self.cells(scene) < len(EDGES))
            near = near[:: max(1, len(near) // ENOUGH)]
            if len(near):
                after.append(Scene(scene.rows, scene.at[near], scene.errors[near], scene.clock))
        self.units = np.ones((len(EDGES) + 1, len(VIEWS), own[0].shape[1]))
        out = list(own)
        if not after:  # a fold without a switch
            return out
        after_cells = np.concatenate([self.cells(scene) for scene in after])
        calm = cells == len(EDGES)
        every = [view.own(after) for view in views]
        for v, loud in enumerate(every if hours is None else hours.divided(after, every)):
            if len(own[v]) == len(cells) and len(loud) == len(after_cells):
                both = np.concatenate([own[v][calm], loud])
                self.units[:, v] = units_of(both[:, None], np.append(cells[calm], after_cells))[:, 0]
                out[v] = own[v] / self.units[cells, v]
        return out

    def arrays(self) -> Arrays:
        """What was learned."""
        return {f"{NAME}.switches": self.switches, f"{NAME}.times": self.times, f"{NAME}.units": self.units}

    @classmethod
    def restored(cls, tensors: Mapping[str, AnyArray], n_channels: int) -> Transitions | None:
        """From arrays that may come from a file; None where there are none, refused where they do not fit."""
        if f"{NAME}.switches" not in tensors:
            return None
        switches, units = (np.asarray(tensors[f"{NAME}.{name}"]) for name in ("switches", "units"))
        times = np.asarray(tensors.get(f"{NAME}.times", np.zeros(0)))  # older files have none
        good = (
            switches.dtype == times.dtype == units.dtype == np.float64
            and switches.ndim == times.ndim == 1
            and len(switches) <= MOST_SWITCHES
            and len(switches) + len(times) > 0
            and are_places(switches, n_channels)
            and are_places(times, SLOTS)
            and units.shape == (len(EDGES) + 1, len(VIEWS), n_channels)
            and bool(np.isfinite(units).all() and (units >= 1).all())
        )
        if not good:
            raise ArtefactError(
                "The switches of a model file must be channels and times of the week with units of at least 1. They are not."
            )
        return cls(switches, times, units)

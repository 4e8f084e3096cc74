"""What the contributions of views are measured in where there are no mode views: how loud they are at each hour and after switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.hours import Hours
from tisat.detectors.prism.modes import Plan
from tisat.detectors.prism.transitions import Transitions
from tisat.detectors.prism.view import Scene, View
from tisat.utils.types import AnyArray, Arrays


@dataclass
class Units:
    """The units of contributions, as far as there are some."""

    hours: Hours | None = None
    transitions: Transitions | None = None

    def fit(
        self, views: Sequence[View], scenes: Sequence[Scene], few: Sequence[Scene], own: list[Array], plan: Plan | None
    ) -> list[Array]:
        """Learn from training rows; the contributions ``own`` of each view at the rows of ``few``, in the units learned."""
        self.hours = Hours.learned(few, own)
        if self.hours is not None:
            own = self.hours.divided(few, own)
        if plan is not None:
            self.transitions = Transitions(plan.switches.astype(np.float64), plan.times)
            own = self.transitions.fit(views, scenes, few, own, self.hours)
        return own

    def divide(self, parts: Array, scene: Scene) -> None:
        """Bring contributions ``(n, V, C)`` at the rows of a scene into these units, in place."""
        if self.hours is not None:
            parts /= self.hours.at(scene)
        if self.transitions is not None:
            parts /= self.transitions.units[self.transitions.cells(scene)]

    def arrays(self) -> Arrays:
        """What was learned."""
        return {
            name: array
            for one in (self.hours, self.transitions)
            if one is not None
            for name, array in one.arrays().items()
        }

    @classmethod
    def restored(cls, tensors: Mapping[str, AnyArray], n_channels: int) -> Units:
        """From arrays that may come from a file; refused where they do not fit."""
        return cls(Hours.restored(tensors, n_channels), Transitions.restored(tensors, n_channels))

"""The activity view: channels that move too little or too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.schedule import PER_DAY, places_of, slots_of
from tisat.detectors.prism.view import Scene, View, gathered, rare_unit, variances
from tisat.utils.compiled import compiled
from tisat.utils.types import Integers

ROWS = 20  # steps averaged
LEAST_STEP = 1e-3  # of the training range
LEAST_SPREAD = 0.1  # of the logarithm of the activity
FEWEST = 10  # rows of a slot


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

    At the times of the week at which jumps recur, from what is usual then: a nightly job that does not run is too quiet.

    Sees: a sensor that is stuck or damped, a channel that has become noisy.
    Blind to: levels, drifts, relations; a stuck channel that often stands still for 20 rows.
    """

    name = "activity"
    kind = "stuck"
    context: ClassVar[int] = ROWS
    signed: ClassVar[bool] = True
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        "usual": ("C",), "spread": ("C",), "slots": ("S",), "slot_usual": ("S", "C"), "slot_spread": ("S", "C"),
    }  # fmt: skip
    added: ClassVar[tuple[str, ...]] = ("slots", "slot_usual", "slot_spread")

    usual: Array  # (C,) mean of the logarithm
    spread: Array  # (C,)
    slots: Array  # (S,) of a week, at which jumps recur
    slot_usual: Array  # (S, C): the same there
    slot_spread: Array  # (S, C)

    def __init__(self, times: Array | None = None) -> None:
        self.slots = np.zeros(0) if times is None else times

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
        self._fit_slots(scenes)

    def _fit_slots(self, scenes: Sequence[Scene]) -> None:
        """Learn what is usual where jumps recur: of a slot that is one on all days from all of them."""
        self.slot_usual, self.slot_spread = (np.tile(one, (len(self.slots), 1)) for one in (self.usual, self.spread))
        if not len(self.slots):
            return
        known = [scene for scene in scenes if scene.clock is not None]
        of_week = np.concatenate([slots_of(scene.clock[scene.at]) for scene in known if scene.clock is not None])
        near = np.isin(of_week, self.slots)
        logarithms, of_week = np.concatenate([self.logarithms(scene) for scene in known])[near], of_week[near]
        daily = {
            slot % PER_DAY for slot in self.slots if np.isin(slot % PER_DAY + PER_DAY * np.arange(7), self.slots).all()
        }
        for k, slot in enumerate(self.slots):
            here = of_week % PER_DAY == slot % PER_DAY if slot % PER_DAY in daily else of_week == slot
            if here.sum() >= FEWEST:
                self.slot_usual[k] = logarithms[here].mean(axis=0)
                spread = np.sqrt(logarithms[here].var(axis=0) + LEAST_SPREAD**2)
                squares = ((logarithms[here] - self.slot_usual[k]) / spread) ** 2
                self.slot_spread[k] = spread * np.sqrt(rare_unit(squares))

    def deviations(self, scene: Scene) -> Array:
        """How much livelier (above 0) or quieter each channel is than usual, in its usual spread."""
        logarithms = self.logarithms(scene)
        found = np.asarray((logarithms - self.usual) / self.spread)
        if len(self.slots) and scene.clock is not None:
            place = places_of(self.slots)[slots_of(scene.clock[scene.at])]
            some = place >= 0
            found[some] = (logarithms[some] - self.slot_usual[place[some]]) / self.slot_spread[place[some]]
        return found

"""Counts behind SPD, per entity: delay saved, events found and false alarms at common thresholds.

Kept per entity, they give the pooled score, each entity's own, and the score of any resample of the entities, exactly and
without returning to the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tisat.metrics.spd import points_of
from tisat.metrics.windows import Windows
from tisat.utils.compiled import compiled
from tisat.utils.types import AnyArray, Array, Arrays, Integers, Params


@dataclass(frozen=True, eq=False)
class EntityCounts:
    """Counts at common descending thresholds, entity by entity."""

    thresholds: Array  # (K,), descending
    saved: Integers  # (E, K), delta_max * events - sum of delays
    true_alarms: Integers  # (E, K)
    false_alarms: Integers  # (E, K)
    n_events: Integers  # (E,)
    delta_max: int

    def to_arrays(self) -> Arrays:
        """The fields as arrays, to be kept in a file."""
        return {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, AnyArray]) -> EntityCounts:
        """The counts that :meth:`to_arrays` described."""
        given: Params = {**arrays, "delta_max": int(arrays["delta_max"])}
        return cls(**given)

    def pooled(self, weights: npt.ArrayLike | None = None) -> Array:
        """SPD with one threshold for all entities, for each row of ``weights`` (B, E): how often an entity is counted.

        NaN where no event is counted. Without weights every entity counts once, and the result has shape (1,).
        """
        w = (
            np.ones((1, len(self.n_events)))
            if weights is None
            else np.atleast_2d(np.asarray(weights, dtype=np.float64))
        )
        false_alarms = w @ self.false_alarms.astype(np.float64)  # (B, K)
        area = _areas(w, *self._changes, false_alarms)
        events = w @ self.n_events
        scores: Array = np.divide(area, events * self.delta_max, out=np.full(len(w), np.nan), where=events > 0)
        return scores

    @cached_property
    def _changes(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Where delay saved or events found change, by threshold: its number, the entity, by how much. Few entities move at one."""
        saved, found = (np.diff(counts, axis=1, prepend=0) for counts in (self.saved, self.true_alarms))
        at, who = np.nonzero((saved != 0).T | (found != 0).T)  # thresholds in order
        return at, who, saved[who, at], found[who, at]

    def curve(self) -> tuple[Array, Array]:
        """Pooled NADD and precision at each threshold that lowers NADD, from the highest: the steps whose area is SPD."""
        saved = self.saved.sum(axis=0)
        useful = saved > np.maximum.accumulate(np.append(0, saved))[:-1]
        true_alarms, false_alarms = (counts.sum(axis=0)[useful] for counts in (self.true_alarms, self.false_alarms))
        return 1.0 - saved[useful] / (self.n_events.sum() * self.delta_max), true_alarms / (true_alarms + false_alarms)

    def per_entity(self) -> Array:
        """SPD of every entity with a threshold of its own (E,), NaN without events."""
        return self.pooled(np.eye(len(self.n_events)))


@compiled()
def _areas(weights: Array, at: Integers, who: Integers, saved: Integers, found: Integers, false_alarms: Array) -> Array:
    """The area of each row of ``weights`` (B, E): gains in delay saved times the precision at the threshold that brings them."""
    areas = np.zeros(len(weights))
    for b in range(len(weights)):
        total, best, true, area = 0.0, 0.0, 0.0, 0.0
        i = 0
        while i < len(at):
            k = at[i]
            while i < len(at) and at[i] == k:
                total += weights[b, who[i]] * saved[i]
                true += weights[b, who[i]] * found[i]
                i += 1
            if total > best:  # then an event is found, and precision is a number
                area += (total - best) * true / (true + false_alarms[b, k])
                best = total
        areas[b] = area
    return areas


def counts_of_scores(scores: Sequence[Array], windows: Sequence[Windows]) -> EntityCounts:
    """Of thresholded scores: exact, at every value that changes a delay in any entity."""
    thresholds = points_of(scores, windows, counting="event").thresholds
    per_entity = [
        points_of([one], [window], counting="event", thresholds=thresholds)
        for one, window in zip(scores, windows, strict=True)
    ]
    return EntityCounts(
        thresholds,
        np.stack([points.saved for points in per_entity]),
        np.stack([points.true_alarms for points in per_entity]),
        np.stack([points.false_alarms for points in per_entity]),
        np.array([len(window.events) for window in windows]),
        windows[0].delta_max,
    )

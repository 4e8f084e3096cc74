"""The counts behind every figure: for each entity, delay saved, events found and false alarms at common thresholds.

Kept per entity, they give the pooled score, each entity's own, and the score of any resample of the entities, all exactly and
without going back to the scores. It does not know detectors or data sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat._compiled import compiled
from tisat._types import Array, Flags, Integers
from tisat.metrics.spd import points_of
from tisat.metrics.windows import Windows
from tisat.sequential.rules import AlarmRule

NEVER = 1e300  # a threshold that is not reached: the statistic goes its way without an alarm
GRID = 96  # thresholds tried for a rule that restarts after an alarm, whose alarms at one threshold do not follow from another


@dataclass(frozen=True, eq=False)
class EntityCounts:
    """Counts at common descending thresholds, entity by entity."""

    thresholds: Array  # (K,), descending
    saved: Integers  # (E, K), delta_max * events - sum of delays
    true_alarms: Integers  # (E, K)
    false_alarms: Integers  # (E, K)
    n_events: Integers  # (E,)
    delta_max: int

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The fields as arrays, to be kept in a file."""
        return {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> EntityCounts:
        """The counts that :meth:`to_arrays` described."""
        given: dict[str, Any] = {**arrays, "delta_max": int(arrays["delta_max"])}
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

    def each(self) -> Array:
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
    each = [
        points_of([one], [window], counting="event", thresholds=thresholds)
        for one, window in zip(scores, windows, strict=True)
    ]
    return EntityCounts(
        thresholds,
        np.stack([points.saved for points in each]),
        np.stack([points.true_alarms for points in each]),
        np.stack([points.false_alarms for points in each]),
        np.array([len(window.events) for window in windows]),
        windows[0].delta_max,
    )


def grid_of(evidence: Sequence[Array], windows: Sequence[Windows], rule: AlarmRule) -> Array:
    """Thresholds for a rule that restarts: quantiles of its statistic when it never does, half inside windows, half everywhere."""
    inside, everywhere = [], []
    for one, window in zip(evidence, windows, strict=True):
        statistic = rule.accumulate(one, threshold=NEVER).statistic
        known = statistic > 0
        everywhere.append(statistic[known])
        inside.append(statistic[known & window.inside])
    shares = np.linspace(0.0, 1.0, GRID // 2)
    # towards the top the interesting quantiles crowd: q = 1 - (1 - share)^3
    shares = 1.0 - (1.0 - shares) ** 3
    parts = [np.quantile(np.concatenate(values), shares) for values in (inside, everywhere) if sum(map(len, values))]
    return np.unique(np.concatenate(parts))[::-1] if parts else np.array([1.0])


@compiled()
def _count(
    active: Flags,
    outside: Flags,
    onsets: Integers,
    stops: Integers,
    delta_max: int,
) -> tuple[int, int, int]:
    """Delay saved, events found and false alarms of one active mask: :func:`tisat.metrics.count_alarms` in one compiled pass."""
    saved = 0
    found = 0
    for i in range(len(onsets)):
        for t in range(onsets[i], stops[i]):
            if active[t]:
                saved += delta_max - (t - onsets[i])
                found += 1
                break
    false = 0
    lasting = 0  # instants since the alarm was last raised, counted from 1; 0 while it is off
    for t in range(len(active)):
        if not active[t]:
            lasting = 0
            continue
        if lasting == 0 or lasting == delta_max:
            false += outside[t]
            lasting = 0
        lasting += 1
    return saved, found, false


def counts_of_rule(evidence: Sequence[Array], windows: Sequence[Windows], rule: AlarmRule) -> EntityCounts:
    """Of a rule whose alarms feed back into its statistic (a CUSUM with restart), at a grid of thresholds."""
    thresholds = grid_of(evidence, windows, rule)
    shape = (len(windows), len(thresholds))
    saved, true_alarms, false_alarms = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for e, (one, window) in enumerate(zip(evidence, windows, strict=True)):
        onsets = np.ascontiguousarray(window.events[:, 0])
        for k, threshold in enumerate(thresholds):
            active = rule.accumulate(one, threshold=float(threshold)).active
            saved[e, k], true_alarms[e, k], false_alarms[e, k] = _count(
                active, window.outside, onsets, window.stops, window.delta_max
            )
    events = np.array([len(window.events) for window in windows])
    return EntityCounts(thresholds, saved, true_alarms, false_alarms, events, windows[0].delta_max)

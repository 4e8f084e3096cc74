"""Counts of alarm rules whose alarms feed back into their statistic, at a grid of thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.alarms.rules import AlarmRule
from tisat.metrics.entity_counts import EntityCounts
from tisat.metrics.windows import Windows
from tisat.utils.compiled import compiled
from tisat.utils.types import Array, Flags, Integers

NEVER = 1e300  # a threshold that is not reached: the statistic runs without an alarm
GRID = 96  # thresholds tried for a rule that restarts after an alarm, whose alarms at one threshold do not follow from another


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
    count = 0
    for i in range(len(onsets)):
        for t in range(onsets[i], stops[i]):
            if active[t]:
                saved += delta_max - (t - onsets[i])
                count += 1
                break
    false = 0
    lasting = 0  # rows since the alarm was last raised, counted from 1; 0 while it is off
    for t in range(len(active)):
        if not active[t]:
            lasting = 0
            continue
        if lasting == 0 or lasting == delta_max:
            false += outside[t]
            lasting = 0
        lasting += 1
    return saved, count, false


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

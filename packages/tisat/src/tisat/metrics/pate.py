"""PATE: precision and recall in which nearness to an event counts, over all thresholds and some widths of the buffers.

Paper: Ghorbani, Reinders, Tax, "PATE: Proximity-Aware Time series anomaly Evaluation", KDD 2024, section 3. An alarm in the buffer after an event, or
before an event that is found, is partly true, less the further it is from the middle of the event; rows of a found event that have no
alarm are missed less the later they come. Exact over all thresholds. It does not know budgets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.events import Events, events_from_labels
from tisat.metrics import _kernels
from tisat.metrics.instance import label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags, Labels, Scores
from tisat.utils.validation import check_integer


def _truth_weights(y: Flags, s: Array, events: Events, early: int, late: int) -> tuple[Array, Array]:
    """How true an alarm at a row is, and the score at which it becomes so: rows that are not true at all are left out."""
    weights, values = [], []
    free = 0  # the first row behind the buffer of the event before
    for i, (start, stop) in enumerate(events.tolist()):
        after = events[i + 1][0] if i + 1 < len(events) else len(y)
        first, end = max(free, start - early), min(stop + late, after)  # half-open [first, start) and [stop, end)
        middle = (start + stop - 1) / 2
        before = (np.arange(first, start) - first) / max(middle - first, 1e-300)
        behind = (end - 1 - np.arange(stop, end)) / max(end - 1 - middle, 1e-300)
        inside = s[start:stop]
        highest = np.nan if np.isnan(inside).all() else float(np.nanmax(inside))
        weights += [before, np.ones(stop - start), behind]
        values += [
            np.minimum(s[first:start], highest),
            inside,
            s[stop:end],
        ]  # before: true only once the event is found
        free = end
    return np.concatenate(weights), np.concatenate(values)


def _missed(s: Array, events: Events) -> tuple[Array, Array, float]:
    """At which scores the weight of missed rows changes as the threshold falls, by how much, and where it starts."""
    values, steps = [np.empty(0)], [np.empty(0)]
    for start, stop in events.tolist():
        inside = s[start:stop]
        known = np.flatnonzero(~np.isnan(inside))
        if len(known):
            order = known[np.argsort(-inside[known], kind="stable")]
            levels, group = np.unique(-inside[order], return_inverse=True)
            weight = _kernels.missed_weights(order, group.astype(np.int64), stop - start, len(levels))
            values.append(-levels)
            steps.append(np.diff(weight, prepend=float(stop - start)))
    return np.concatenate(values), np.concatenate(steps), float((events[:, 1] - events[:, 0]).sum())


def _reached(values: Array, amounts: Array, levels: Array) -> Array:
    """The sum of amounts whose value reaches each of the descending levels."""
    known = ~np.isnan(values)
    order = np.argsort(-values[known], kind="stable")
    total = np.concatenate([[0.0], np.cumsum(amounts[known][order])])
    return np.asarray(total[np.searchsorted(-values[known][order], -levels, side="right")])


def _area(pairs: Sequence[tuple[Flags, Array]], max_buffer: int) -> float:
    events = [events_from_labels(y) for y, _ in pairs]
    if not sum(map(len, events)):
        return float("nan")
    every = np.concatenate([s for _, s in pairs])
    levels, counts = np.unique(-every[~np.isnan(every)], return_counts=True)
    if not len(levels):
        return 0.0
    levels, active = -levels, np.cumsum(counts)
    changes = [_missed(s, found) for (_, s), found in zip(pairs, events, strict=True)]
    values, steps = (np.concatenate(column) for column in zip(*((v, d) for v, d, _ in changes), strict=True))
    missed = sum(whole for _, _, whole in changes) + _reached(values, steps, levels)
    areas = []
    for early in sorted({0, max_buffer}):
        for late in sorted({0, max_buffer}):
            parts = [
                _truth_weights(y, s, found, early, late)
                for (y, s), found in zip(pairs, events, strict=True)
                if len(found)
            ]
            weights, at = (np.concatenate(column) for column in zip(*parts, strict=True))
            true = _reached(at, weights, levels)
            recall = np.concatenate([[0.0], true / (true + missed)])
            precision = np.concatenate([[1.0], true / active])
            kept = recall >= np.maximum.accumulate(recall) - 1e-12  # it may fall: the paper leaves such thresholds out
            areas.append(float(np.trapezoid(precision[kept], recall[kept])))
    return float(np.mean(areas))


def pate(y_true: Labels, y_score: Scores, *, max_buffer: int) -> Score:
    """PATE: the area under proximity-aware precision and recall, averaged over buffers of 0 and ``max_buffer`` before and after events.

    Beware: the buffer before an event rewards alarms that no operator could have understood then; and as the area is over rows, a long
    event weighs more than ten short ones. A random baseline gets a little more than the share of anomalous rows.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    max_buffer : int
        Rows before and after an event; the value depends on it, so say which was used. The authors' program takes 100.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events.

    Examples
    --------
    >>> pate([0, 0, 1, 1, 0, 0], [0, 0, 2, 1, 0, 0], max_buffer=0)
    1.0
    """
    width = check_integer(max_buffer, "max_buffer", "pate", minimum=0)
    pairs = label_score_pairs(y_true, y_score, whose="pate")
    return Score.over(pairs, lambda some: _area(some, width))

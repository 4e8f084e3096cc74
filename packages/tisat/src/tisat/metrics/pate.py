"""PATE: precision and recall in which nearness to an event counts, over all thresholds and some widths of the buffers.

Paper: Ghorbani, Reinders, Tax, "PATE: Proximity-Aware Time series anomaly Evaluation", KDD 2024, section 3. An alarm in the buffer after an event, or
before an event that is found, is partly true, less the further it is from the middle of the event; rows of a found event that have no
alarm are missed less the later they come. Exact over all thresholds. It does not know budgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tisat.events import Events, events_from_labels
from tisat.metrics import _kernels
from tisat.metrics.instance import label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags, Labels, Scores
from tisat.utils.validation import check_integer


def _truth_weights(y: Flags, s: Array, events: Events, early: int, late: int) -> tuple[Array, Array]:
    """How true an alarm at a row is, and the score at which it becomes so: rows that are not true at all are left out."""
    weights, values = [np.empty(0)], [np.empty(0)]
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
    order = np.argsort(-values[known])
    total = np.concatenate([[0.0], np.cumsum(amounts[known][order])])
    return np.asarray(total[np.searchsorted(-values[known][order], -levels, side="right")])


@dataclass(frozen=True)
class _Part:
    """What the area needs of a series."""

    known: Array  # its scores that are numbers
    missed: tuple[Array, Array, float]  # see _missed
    true: list[tuple[Array, Array]]  # see _truth_weights: of each pair of buffers
    n_events: int

    @classmethod
    def of(cls, y: Flags, s: Array, max_buffer: int) -> _Part:
        events = events_from_labels(y)
        widths = sorted({0, max_buffer})
        true = [_truth_weights(y, s, events, early, late) for early in widths for late in widths]
        return cls(s[~np.isnan(s)], _missed(s, events), true, len(events))


def _area(parts: Sequence[_Part]) -> float:
    if not sum(part.n_events for part in parts):
        return float("nan")
    ascending = np.sort(np.concatenate([part.known for part in parts]))
    if not len(ascending):
        return 0.0
    values, steps = (np.concatenate([part.missed[column] for part in parts]) for column in range(2))
    true = [tuple(map(np.concatenate, zip(*each, strict=True))) for each in zip(*(p.true for p in parts), strict=True)]
    # recall changes at these scores alone; of those between two of them, the last before a change has a precision that counts
    changing = np.unique(np.concatenate([values, *(at for _, at in true)]))
    above = np.searchsorted(ascending, changing[~np.isnan(changing)], side="right")
    levels = np.unique(ascending[np.concatenate([above - 1, above[above < len(ascending)]])])[::-1]
    active = len(ascending) - np.searchsorted(ascending, levels, side="left")
    missed = sum(part.missed[2] for part in parts) + _reached(values, steps, levels)
    areas = []
    for weights, at in true:
        hits = _reached(at, weights, levels)
        recall = np.concatenate([[0.0], hits / (hits + missed)])
        precision = np.concatenate([[1.0], hits / active])
        kept = recall >= np.maximum.accumulate(recall) - 1e-12  # it may fall: the paper leaves such thresholds out
        areas.append(float(np.trapezoid(precision[kept], recall[kept])))
    return float(np.mean(areas))


def pate(y_true: Labels, y_score: Scores, *, max_buffer: int) -> Score:
    """PATE: the area under proximity-aware precision and recall, averaged over buffers of 0 and ``max_buffer`` before and after events.

    Beware: the buffer before an event rewards alarms that no operator could have understood then; and as the area is over rows, a long
    event weighs more than ten short ones. A random baseline gets a little more than the share of anomalous rows, a constant score about 0.5: its
    curve is a straight line from precision 1, here as in the authors' program.

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
    parts = [_Part.of(y, s, width) for y, s in label_score_pairs(y_true, y_score, whose="pate")]
    return Score.over(parts, _area)

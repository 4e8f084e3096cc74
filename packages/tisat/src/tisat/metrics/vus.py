"""VUS-PR and VUS-ROC: the volume under precision and recall, or under the ROC curve, and the width of a soft buffer around each event.

Paper: Paparrizos, Boniol, Palpanas, Tsay, Elmore, Franklin, "Volume Under the Surface: A New Accuracy Evaluation Measure for Time-Series
Anomaly Detection", PVLDB 2022, sections 4.1 and 4.2. Here it is exact over all thresholds; released programs use 250 of them. It does
not know delays: the buffer lies on both sides of an event, so an alarm before the onset is rewarded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.events import Events, events_from_labels
from tisat.metrics.instance import label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags, Integers
from tisat.utils.validation import check_integer


def _distances(events: Events, length: int, reach: int) -> Integers:
    """For every event, the distance of the rows within ``reach`` to it: rows (row, distance, event); 0 inside."""
    rows = [np.empty((0, 3), dtype=np.int64)]
    for i, (start, stop) in enumerate(events.tolist()):
        time_steps = np.arange(max(start - reach, 0), min(stop + reach, length))
        distance = np.maximum(np.maximum(start - time_steps, time_steps - stop + 1), 0)
        rows.append(np.column_stack([time_steps, distance, np.full(len(time_steps), i)]))
    return np.concatenate(rows)


def _volume(pairs: Sequence[tuple[Flags, Array]], max_buffer: int, *, roc: bool = False) -> float:
    near, offset, n_events = [], 0, 0
    n_labels = sum(int(y.sum()) for y, _ in pairs)
    for y, s in pairs:
        events = events_from_labels(y)
        rows = _distances(events, len(y), max_buffer // 2)
        near.append(rows + np.array([offset, 0, n_events]))
        offset, n_events = offset + len(s), n_events + len(events)
    if not n_events:
        return float("nan")
    rows = np.concatenate(near)
    scores = np.concatenate([s for _, s in pairs])
    ordered = np.sort(-scores[~np.isnan(scores)])
    predicted = np.searchsorted(ordered, -scores[rows[:, 0]], side="right")  # how many rows reach this one's score
    predicted[np.isnan(scores[rows[:, 0]])] = len(scores) + 1  # NaN is never active: behind all others
    order = np.argsort(predicted, kind="stable")
    rows, predicted = rows[order], predicted[order]
    distance, owner = rows[:, 1], rows[:, 2]
    n_known = int(np.searchsorted(predicted, len(scores), side="right"))
    last = np.append(np.diff(predicted[:n_known]) != 0, True)[:n_known]  # ties are one threshold
    above = np.searchsorted(ordered, -scores[rows[:n_known, 0]], side="left")  # how many rows exceed this one's score
    _, first, slot = np.unique(rows[:, 0], return_index=True, return_inverse=True)
    total = 0.0
    for buffer in range(max_buffer + 1):
        reached = distance <= buffer // 2
        soft = np.where(reached, np.sqrt(np.maximum(1.0 - distance / max(buffer, 1), 0.0)), 0.0)
        label = np.minimum(np.bincount(slot, weights=soft), 1.0)  # a row near two events has two rows
        weights = np.zeros(len(rows))
        weights[first] = label
        hits = np.cumsum(weights[:n_known])
        seen = np.full(n_events, n_known)
        np.minimum.at(seen, owner[:n_known][reached[:n_known]], np.flatnonzero(reached[:n_known]))
        existence = np.cumsum(np.bincount(seen, minlength=n_known + 1)[:n_known]) / n_events
        positives = (n_labels + float(label.sum())) / 2
        recall = np.minimum(hits / positives, 1.0) * existence
        if roc:
            false = (above[last], predicted[:n_known][last], len(ordered))
            total += _roc_area(hits[last], recall[last], false, negatives=len(scores) - positives)
            continue
        total += float((np.diff(recall[last], prepend=0.0) * (hits / predicted[:n_known])[last]).sum())
    return total / (max_buffer + 1)


def _roc_area(hits: Array, recall: Array, counts: tuple[Flags, Flags, int], *, negatives: float) -> float:
    """The area under the ROC curve through thresholds at which something near an event comes in: flat in between, then to (1, 1)."""
    above, predicted, everything = counts
    if negatives <= 0:
        return float("nan")
    before = np.concatenate([[0.0], recall[:-1]])
    hits_before = np.concatenate([[0.0], hits[:-1]])
    flat_until = above - hits_before  # false rows just above the threshold
    reached = predicted - hits
    left = np.concatenate([[0.0], reached[:-1]])
    area = float((before * (flat_until - left) + (before + recall) / 2 * (reached - flat_until)).sum())
    end, top = (everything - hits[-1], float(recall[-1])) if len(hits) else (float(everything), 0.0)
    area += top * float(end - (reached[-1] if len(hits) else 0.0))
    return area / negatives + (top + 1.0) / 2 * (1.0 - float(end) / negatives)


def vus_roc(y_true: object, y_score: object, *, max_buffer: int) -> Score:
    """VUS-ROC: range-aware area under the ROC curve, averaged over buffers of 0 to ``max_buffer`` rows.

    Beware: a random baseline gets about 0.5, whatever the labels, and where events are rare 0.95 can still mean that most alarms are false. It rewards
    nearness on both sides and says nothing about delay. Prefer VUS-PR.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
    y_score : array of shape (T,), or a list
    max_buffer : int
        The widest buffer, half of it on each side. Say which was used.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events.

    Examples
    --------
    >>> vus_roc([0, 0, 1, 1, 0, 0], [0, 0, 2, 1, 0, 3], max_buffer=0)
    0.75
    """
    width = check_integer(max_buffer, "max_buffer", "vus_roc", minimum=0)
    pairs = label_score_pairs(y_true, y_score, whose="vus_roc")
    return Score.over(pairs, lambda some: _volume(some, width, roc=True))


def vus_pr(y_true: object, y_score: object, *, max_buffer: int) -> Score:
    """VUS-PR: range-aware area under precision and recall, averaged over buffers of 0 to ``max_buffer`` rows.

    Its floor is honest: a random baseline gets about the anomaly rate (a little more, since the buffers widen the events). It rewards nearness on both
    sides and says nothing about delay.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
    y_score : array of shape (T,), or a list
    max_buffer : int
        The widest buffer, half of it on each side. The value grows with it, so say which was used.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events.

    Examples
    --------
    >>> vus_pr([0, 0, 1, 1, 0, 0], [0, 0, 2, 1, 0, 0], max_buffer=0)
    1.0
    """
    width = check_integer(max_buffer, "max_buffer", "vus_pr", minimum=0)
    pairs = label_score_pairs(y_true, y_score, whose="vus_pr")
    return Score.over(pairs, lambda some: _volume(some, width))

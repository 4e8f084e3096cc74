"""Affiliation precision and recall: how near alarms and events are, against alarms at random in the same zone.

Paper: Huet, Navarro, Rossi, "Local Evaluation of Time Series Anomaly Detection Algorithms", KDD 2022. The series is cut into zones, one an
event, halfway between events; inside each, distances become probabilities of being farther by chance. Rows are intervals of
length 1 and the integrals are exact. It does not know whether an alarm came before or after the onset: the distance is symmetric.
"""

from __future__ import annotations

import numpy as np

from tisat.events import Events, events_from_labels
from tisat.metrics.instance import PrecisionRecall, label_score_pairs
from tisat.metrics.range_based import combine
from tisat.utils.types import Array, Flags, Labels, Scores
from tisat.utils.validation import check_real

Pairs = Array  # (n, 2), intervals on the line


def _integral(points: Array, values: Array) -> float:
    """The integral of a function that is linear between the sorted points."""
    return float(np.trapezoid(values, points))


def _cut(intervals: Pairs, low: float, high: float) -> Pairs:
    """The parts of sorted disjoint intervals inside ``[low, high]``."""
    clipped = np.clip(intervals, low, high)
    return clipped[clipped[:, 0] < clipped[:, 1]]


def _precision(event: Array, alarms: Pairs, zone: tuple[float, float]) -> float:
    """Mean over the alarms of P(a uniform point of the zone is at least as far from the event)."""
    low, high = zone
    a, b = event
    total = hit = 0.0
    for left, right in alarms.tolist():
        total += right - left
        hit += max(min(right, b) - max(left, a), 0.0)  # inside the event the distance is 0 and the probability 1
        for near, far in (
            (a - right, a - left),
            (left - b, right - b),
        ):  # distances covered before the event, and after it
            start, stop = max(near, 0.0), far
            if stop > start:
                kinks = np.unique(np.clip([start, a - low, high - b, stop], start, stop))
                closer = np.minimum(b + kinks, high) - np.maximum(a - kinks, low)
                hit += _integral(kinks, 1.0 - closer / (high - low))
    return hit / total


def _recall(event: Array, alarms: Pairs, zone: tuple[float, float]) -> float:
    """Mean over the event of P(a uniform point of the zone is at least as far from there as the nearest alarm)."""
    low, high = zone
    a, b = event
    edges = alarms.reshape(-1)
    gaps = (alarms[1:, 0] + alarms[:-1, 1]) / 2  # where the nearest alarm changes
    kinks = np.concatenate([[a, b], edges, gaps, (high + edges) / 2, (low + edges) / 2])
    kinks = np.unique(np.clip(kinks, a, b))
    after = np.searchsorted(alarms[:, 1], kinks, side="left")  # the first alarm that ends at or after the point
    bounded = np.vstack([alarms, [np.inf, np.inf]])
    before = np.append(alarms[:, 1], -np.inf)[after - 1]  # -inf where there is none: index -1
    distance = np.maximum(np.minimum(bounded[after, 0] - kinks, kinks - before), 0.0)
    closer = np.minimum(kinks + distance, high) - np.maximum(kinks - distance, low)
    return _integral(kinks, 1.0 - closer / (high - low)) / float(b - a)


def _zones(y: Flags, active: Flags) -> tuple[Array, Array]:
    """Precision of each zone (NaN without alarms) and recall of each (0 without alarms)."""
    events: Events = events_from_labels(y)
    alarms = events_from_labels(active).astype(np.float64)
    edges = np.concatenate([[0.0], (events[:-1, 1] + events[1:, 0]) / 2, [float(len(y))]])
    precision = np.full(len(events), np.nan)
    recall = np.zeros(len(events))
    for i, event in enumerate(events.astype(np.float64)):
        zone = (float(edges[i]), float(edges[i + 1]))
        first = np.searchsorted(alarms[:, 1], zone[0], side="right")
        last = np.searchsorted(alarms[:, 0], zone[1], side="left")
        mine = _cut(alarms[first:last], *zone)
        if len(mine):
            precision[i] = _precision(event, mine, zone)
            recall[i] = _recall(event, mine, zone)
    return precision, recall


def affiliation_precision_recall(y_true: Labels, y_score: Scores, *, threshold: float) -> PrecisionRecall:
    """Affiliation precision, recall and F1 of the rows with ``score >= threshold``.

    Its floor is high: alarms at random have precision of about one half in every zone, and recall near 1 when there are many; F1 of a random baseline or
    of an alarm that is always on is about 0.67 to 0.7. Below that an alarm is worse than chance.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    threshold : float
        Rows with a score at or above it are alarms.

    Returns
    -------
    PrecisionRecall
        Pooled: the mean over the zones of all series; precision only over zones that hold an alarm.

    Examples
    --------
    >>> print(affiliation_precision_recall([0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 9, 0, 0, 0, 0, 0], threshold=5))
    precision 0.5000, recall 0.6250, F1 0.5556 at threshold 5
    """
    level = check_real(threshold, "threshold", "affiliation_precision_recall")
    zones = [_zones(y, s >= level) for y, s in label_score_pairs(y_true, y_score, whose="affiliation_precision_recall")]
    return PrecisionRecall.over(zones, lambda some: combine(some, level))

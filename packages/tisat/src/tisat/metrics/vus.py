"""VUS-PR and VUS-ROC: the volume under precision and recall, or under the ROC curve, and the width of a soft buffer around each event.

Two versions of one name, about 0.1 apart, so each figure needs its version:

* ``"2025"``, the default and what TSB-AD reports: a row of a buffer counts among the positives only where it is predicted, and
  events whose buffers meet count as one. Boniol et al., "VUS: Effective and Efficient Accuracy Measures for Time-Series Anomaly
  Detection", arXiv 2502.13318.
* ``"2022"``, what aeon and dtaianomaly report: half of each buffer counts among the positives whether predicted or not. Paparrizos,
  Boniol, Palpanas, Tsay, Elmore, Franklin, "Volume Under the Surface", PVLDB 2022, sections 4.1 and 4.2.

Both are exact over all thresholds unless ``thresholds`` says how many; released programs use 250. Neither knows delays: the buffer
lies on both sides of an event, so an alarm before the onset is rewarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tisat.events import Events, events_from_labels
from tisat.metrics.instance import label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags, Integers, Labels, Scores
from tisat.utils.validation import check_choice, check_integer

VERSIONS = ("2025", "2022")


def _distances(events: Events, length: int, reach: int) -> Integers:
    """For every event, the distance of the rows within ``reach`` to it: rows (row, distance, event); 0 inside."""
    rows = [np.empty((0, 3), dtype=np.int64)]
    for i, (start, stop) in enumerate(events.tolist()):
        time_steps = np.arange(max(start - reach, 0), min(stop + reach, length))
        distance = np.maximum(np.maximum(start - time_steps, time_steps - stop + 1), 0)
        rows.append(np.column_stack([time_steps, distance, np.full(len(time_steps), i)]))
    return np.concatenate(rows)


def _volume(
    pairs: Sequence[tuple[Flags, Array]], max_buffer: int, *, version: str, thresholds: int | None, roc: bool = False
) -> float:
    near, offset, n_events = [], 0, 0
    n_labels = sum(int(y.sum()) for y, _ in pairs)
    gaps = []  # rows between an event and the next one of its series; endless before the first of a series
    for y, s in pairs:
        events = events_from_labels(y)
        rows = _distances(events, len(y), max_buffer // 2)
        near.append(rows + np.array([offset, 0, n_events]))
        gaps.append(
            np.append(len(y) + max_buffer, np.asarray(events)[1:, 0] - np.asarray(events)[:-1, 1])[: len(events)]
        )
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
    counts = _counts(ordered, predicted, thresholds)
    entered = np.searchsorted(predicted, counts, side="right")  # rows near an event that are active at each threshold
    surface = _surface_2025 if version == "2025" else _surface_2022
    total = 0.0
    for hits, positives, existence in surface(rows, entered, np.concatenate(gaps), n_labels, max_buffer):
        recall = np.minimum(hits / positives, 1.0) * existence
        if roc:
            negatives = len(scores) - positives
            if not np.all(negatives > 0):
                return float("nan")
            false = np.concatenate([[0.0], (counts - hits) / negatives, [1.0]])
            true = np.concatenate([[0.0], recall, [1.0]])
            total += float(np.trapezoid(true, false))
        else:
            total += float((np.diff(recall, prepend=0.0) * hits / counts).sum())
    return total / (max_buffer + 1)


def _counts(ordered: Array, predicted: Integers, thresholds: int | None) -> Integers:
    """The numbers of active rows at the thresholds: at all that matter, or at so many evenly spaced ranks."""
    if not len(ordered):
        return np.empty(0, dtype=np.int64)
    if thresholds is not None:
        ranks = np.linspace(0, len(ordered) - 1, thresholds).astype(np.int64)
        return np.unique(np.searchsorted(ordered, ordered[ranks], side="right"))
    entering = np.unique(predicted[predicted <= len(ordered)])
    before = np.searchsorted(ordered, ordered[entering - 1], side="left")  # the last threshold above each
    found = np.unique(np.concatenate([entering, before, [len(ordered)]]))
    return found[found > 0]


Surface = Iterator[
    tuple[Array, Array, Array]
]  # of each buffer, at each threshold: hits, positives, share of events found


def _soft_labels(rows: Integers, max_buffer: int) -> Iterator[tuple[int, Flags, Array]]:
    """For each buffer, the rows it reaches and the label of each row, at its first place in ``rows``."""
    distance = rows[:, 1]
    _, first, slot = np.unique(rows[:, 0], return_index=True, return_inverse=True)
    for buffer in range(max_buffer + 1):
        reached = distance <= buffer // 2
        soft = np.where(reached, np.sqrt(np.maximum(1.0 - distance / max(buffer, 1), 0.0)), 0.0)
        weights = np.zeros(len(rows))
        weights[first] = np.minimum(np.bincount(slot, weights=soft), 1.0)  # a row near two events has two rows
        yield buffer, reached, weights


def _at(entered: Integers, weights: Array) -> Array:
    """The sum of the weights that are active at each threshold."""
    return np.concatenate([[0.0], np.cumsum(weights)])[entered]


def _share_detected(owner: Integers, n: int, reached: Flags, entered: Integers) -> Array:
    """The share of ``n`` events of which a row is active, at each threshold."""
    first = np.full(n, len(owner))
    np.minimum.at(first, owner[reached], np.flatnonzero(reached))
    return np.searchsorted(np.sort(first), entered, side="left") / n


def _surface_2022(rows: Integers, entered: Integers, gaps: Integers, n_labels: int, max_buffer: int) -> Surface:
    for _, reached, weights in _soft_labels(rows, max_buffer):
        positives = np.full(len(entered), (n_labels + float(weights.sum())) / 2)
        yield _at(entered, weights), positives, _share_detected(rows[:, 2], len(gaps), reached, entered)


def _surface_2025(rows: Integers, entered: Integers, gaps: Integers, n_labels: int, max_buffer: int) -> Surface:
    inside = np.isin(rows[:, 0], rows[rows[:, 1] == 0, 0])
    for buffer, reached, weights in _soft_labels(rows, max_buffer):
        hits = _at(entered, weights)
        beside = _at(entered, np.where(inside, 0.0, weights))  # buffers count where they are predicted
        group = np.cumsum(gaps >= 2 * (buffer // 2)) - 1  # events whose buffers share no row
        existence = _share_detected(group[rows[:, 2]], int(group[-1]) + 1, reached, entered)
        yield hits, n_labels + beside / 2, existence


def _checked(version: object, max_buffer: object, thresholds: object, whose: str) -> tuple[str, int, int | None]:
    name = check_choice(version, "version", whose, choices=VERSIONS)
    number = None if thresholds is None else check_integer(thresholds, "thresholds", whose, minimum=2)
    return name, check_integer(max_buffer, "max_buffer", whose, minimum=0), number


def vus_roc(
    y_true: Labels, y_score: Scores, *, max_buffer: int, version: str = "2025", thresholds: int | None = None
) -> Score:
    """VUS-ROC: range-aware area under the ROC curve, averaged over buffers of 0 to ``max_buffer`` rows.

    Beware: a random baseline gets about 0.5, whatever the labels, and where events are rare 0.95 can still mean that most alarms are false. It rewards
    nearness on both sides and says nothing about delay. Prefer VUS-PR.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    max_buffer : int
        The widest buffer, half of it on each side. Say which was used.
    version : "2025" or "2022"
        "2025" is TSB-AD's, where a buffer counts among the positives as far as it is predicted; "2022" is that of aeon and dtaianomaly.
    thresholds : int, optional
        So many evenly spaced ranks of the scores, 250 in TSB-AD's program; every score where not given, which is exact.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events.

    Examples
    --------
    >>> vus_roc([0, 0, 1, 1, 0, 0], [0, 0, 2, 1, 0, 3], max_buffer=0)
    0.75
    """
    name, width, number = _checked(version, max_buffer, thresholds, "vus_roc")
    pairs = label_score_pairs(y_true, y_score, whose="vus_roc")
    return Score.over(pairs, lambda some: _volume(some, width, version=name, thresholds=number, roc=True))


def vus_pr(
    y_true: Labels, y_score: Scores, *, max_buffer: int, version: str = "2025", thresholds: int | None = None
) -> Score:
    """VUS-PR: range-aware area under precision and recall, averaged over buffers of 0 to ``max_buffer`` rows.

    Its floor is honest: a random baseline gets about the anomaly rate (a little more, since the buffers widen the events). It rewards nearness on both
    sides and says nothing about delay.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    max_buffer : int
        The widest buffer, half of it on each side. The value grows with it, so say which was used.
    version : "2025" or "2022"
        "2025" is TSB-AD's, where a buffer counts among the positives as far as it is predicted; "2022" is that of aeon and dtaianomaly.
    thresholds : int, optional
        So many evenly spaced ranks of the scores, 250 in TSB-AD's program; every score where not given, which is exact.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events.

    Examples
    --------
    >>> vus_pr([0, 0, 1, 1, 0, 0], [0, 0, 2, 1, 0, 0], max_buffer=0)
    1.0
    """
    name, width, number = _checked(version, max_buffer, thresholds, "vus_pr")
    pairs = label_score_pairs(y_true, y_score, whose="vus_pr")
    return Score.over(pairs, lambda some: _volume(some, width, version=name, thresholds=number))

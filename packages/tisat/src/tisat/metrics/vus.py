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

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class _Part:
    """What a volume needs of a series."""

    known: Array  # its scores that are numbers
    rows: Integers  # (N, 3), in order of time: see _distances
    scores: Array  # (N,), of these rows
    gaps: Integers  # rows between an event and the one before; endless before the first
    n_labels: int
    n_rows: int

    @classmethod
    def of(cls, y: Flags, s: Array, max_buffer: int) -> _Part:
        events = events_from_labels(y)
        rows = _distances(events, len(y), max_buffer // 2)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        gaps = np.append(len(y) + max_buffer, events[1:, 0] - events[:-1, 1])[: len(events)]
        return cls(s[~np.isnan(s)], rows, s[rows[:, 0]], gaps, int(y.sum()), len(y))


def _volume(
    parts: Sequence[_Part], max_buffer: int, *, version: str, thresholds: int | None, roc: bool = False
) -> float:
    gaps = np.concatenate([part.gaps for part in parts])
    if not len(gaps):
        return float("nan")
    steps = np.cumsum([[0, 0], *([part.n_rows, len(part.gaps)] for part in parts)], axis=0)
    shifts = [np.array([row, 0, event]) for row, event in steps[:-1].tolist()]
    rows = np.concatenate([part.rows + shift for part, shift in zip(parts, shifts, strict=True)])
    scores = np.concatenate([part.scores for part in parts])
    ordered = np.sort(-np.concatenate([part.known for part in parts]))
    n_rows = int(steps[-1, 0])
    order = np.argsort(-scores, kind="stable")
    predicted = np.searchsorted(ordered, -scores[order], side="right")  # how many rows reach this one's score
    predicted[np.isnan(scores[order])] = n_rows + 1  # NaN is never active: behind all others
    counts = _counts(ordered, predicted, thresholds)
    entered = np.searchsorted(predicted, counts, side="right")  # rows near an event that are active at each threshold
    row, distance, event = np.ascontiguousarray(rows[order].T)
    n_labels = sum(part.n_labels for part in parts)
    from tisat.metrics._volume import integrate  # numba is imported when a volume is first asked for

    of = (n_labels, n_rows, max_buffer, int(version), int(roc))
    return float(integrate(row, distance, event, gaps, entered, counts, *of))


def _counts(ordered: Array, predicted: Integers, thresholds: int | None) -> Integers:
    """The numbers of active rows at the thresholds: at all that matter, or at so many evenly spaced ranks."""
    if not len(ordered):
        return np.empty(0, dtype=np.int64)
    if thresholds is not None:
        ranks = np.linspace(0, len(ordered) - 1, thresholds).astype(np.int64)
        return np.unique(np.searchsorted(ordered, ordered[ranks], side="right"))
    entering = predicted[predicted <= len(ordered)]
    before = np.searchsorted(ordered, ordered[entering - 1], side="left")  # the last threshold above each
    found = np.sort(np.concatenate([entering, before, [len(ordered)]]))
    return found[np.diff(found, prepend=0) > 0]


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
    parts = [_Part.of(y, s, width) for y, s in label_score_pairs(y_true, y_score, whose="vus_roc")]
    return Score.over(parts, lambda some: _volume(some, width, version=name, thresholds=number, roc=True))


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
    parts = [_Part.of(y, s, width) for y, s in label_score_pairs(y_true, y_score, whose="vus_pr")]
    return Score.over(parts, lambda some: _volume(some, width, version=name, thresholds=number))

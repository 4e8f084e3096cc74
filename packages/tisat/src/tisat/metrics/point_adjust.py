"""Adjusted instance-based precision, recall and F1. Warning: random guessing wins under these scores.

"Point adjustment": one alarm anywhere inside an event turns every row of it into a true positive, while a false alarm costs one
row. The longer the events, the closer a random baseline gets to 1 (see :func:`tisat.metrics.random_guess`). They are here to
reproduce the tables of others and to show what a random baseline scores in the same row. The module does not know delays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.events import events_from_labels
from tisat.metrics.instance import PrecisionRecall, best_f1, label_score_pairs
from tisat.utils.types import Array, Flags, Integers, Labels, Scores
from tisat.utils.validation import check_real


def _peaks(y: Flags, s: Array) -> tuple[Array, Integers]:
    """The highest score of each event (-inf where all are NaN) and the event's length."""
    events = events_from_labels(y)
    if not len(events):
        return np.empty(0), np.empty(0, np.int64)
    filled = np.append(np.where(np.isnan(s), -np.inf, s), -np.inf)
    peaks = np.maximum.reduceat(filled, events.reshape(-1))[::2]
    return peaks, events[:, 1] - events[:, 0]


def _reaching(values: Array, descending: Array) -> Integers:
    """How many values (NaN never) are at or above each of the descending thresholds."""
    level = np.searchsorted(descending[::-1], values[~np.isnan(values)], side="right")
    counts = np.bincount(level, minlength=len(descending) + 1)
    return np.asarray(np.cumsum(counts[::-1])[: len(descending)], dtype=np.int64)


def _best(parts: Sequence[tuple[Array, Integers, Array]]) -> PrecisionRecall:
    """Between two peaks a lower threshold only adds false alarms, so only the peaks can be best."""
    peaks, lengths, normal = (np.concatenate(column) for column in zip(*parts, strict=True))
    found = np.isfinite(peaks)
    ascending, group = np.unique(peaks[found], return_inverse=True)
    hits = np.cumsum(np.bincount(group, weights=lengths[found], minlength=len(ascending))[::-1])
    thresholds = ascending[::-1]
    return best_f1(thresholds, hits, _reaching(normal, thresholds), float(lengths.sum()))


def adjusted_precision_recall(y_true: Labels, y_score: Scores, *, threshold: float) -> PrecisionRecall:
    """Point-adjusted precision, recall and F1 at a threshold. Warning: random guessing wins under this score.

    An alarm with probability 0.01 at every row has F1 0.96 on the labels of SWaT. Compare with
    :func:`tisat.metrics.random_guess`, and report :func:`tisat.metrics.spd_score` instead.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    threshold : float
        Rows with a score at or above it are alarms.

    Warnings
    --------
    The floor is :func:`tisat.metrics.random_guess`, and it is often above published figures.

    Returns
    -------
    PrecisionRecall
        Precision, recall and F1 after point adjustment.

    Examples
    --------
    >>> print(adjusted_precision_recall([0, 1, 1, 1, 0], [0, 0, 9, 0, 9], threshold=5))
    precision 0.7500, recall 1.0000, F1 0.8571 at threshold 5
    """
    level = check_real(threshold, "threshold", "adjusted_precision_recall")
    counts = []
    for y, s in label_score_pairs(y_true, y_score, whose="adjusted_precision_recall"):
        peaks, lengths = _peaks(y, s)
        hits = lengths[peaks >= level].sum()
        counts.append((hits, (~y & (s >= level)).sum(), lengths.sum() - hits))
    return PrecisionRecall.of_each(counts, threshold=level)


def best_adjusted_f1(y_true: Labels, y_score: Scores) -> PrecisionRecall:
    """The best point-adjusted F1 over all thresholds. Warning: random guessing wins under this score.

    Twice flattered: by the adjustment, and by a threshold chosen with the labels (an oracle's). Its floor is
    :func:`tisat.metrics.best_random_guess`.

    Parameters
    ----------
    y_true : array-like of shape (T,), or a list of them
        Labels: 1 in events.
    y_score : array-like of shape (T,), or a list of them
        Scores; higher is more anomalous.

    Returns
    -------
    PrecisionRecall
        Precision, recall and F1 at the best threshold (oracle).

    Examples
    --------
    >>> print(best_adjusted_f1([0, 1, 1, 1, 0], [0, 0, 9, 0, 3]))
    precision 1.0000, recall 1.0000, F1 1.0000 at threshold 9
    """
    pairs = label_score_pairs(y_true, y_score, whose="best_adjusted_f1")
    return PrecisionRecall.over([(*_peaks(y, s), s[~y]) for y, s in pairs], _best)

"""The areas every classifier is given: under the ROC curve and under precision and recall, row by row.

The values are scikit-learn's. They take each row for a case of its own, so that one long event weighs more than ten short ones, and neither
early nor late has a meaning. They are here because readers ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tisat.metrics.instance import label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags, Integers, Labels, Scores

Area = Callable[[Flags, Array], float]


def descending(scores: Array) -> tuple[Integers, Flags]:
    """The rows from the highest score down, and which of them is the last of its level. NaN, which never raises an alarm, comes last."""
    order = np.argsort(-scores)
    ranked = scores[order]
    return order, np.append((ranked[1:] != ranked[:-1]) & ~np.isnan(ranked[:-1]), True)


def _counts(y: Flags, s: Array) -> tuple[Array, Array]:
    """Anomalous rows and rows at or above each level of the score, from the highest on."""
    order, last = descending(s)
    at = np.flatnonzero(last)
    return np.cumsum(y[order], dtype=np.float64)[at], np.asarray(at + 1.0, dtype=np.float64)


def _pooled(area: Area, pairs: Sequence[tuple[Flags, Array]]) -> Score:
    return Score.over(pairs, lambda some: area(*(np.concatenate(column) for column in zip(*some, strict=True))))


def _roc(y: Flags, s: Array) -> float:
    if not 0 < y.sum() < len(y):
        return float("nan")
    hits, rows = _counts(y, s)
    false = rows - hits
    return float(np.trapezoid(np.append(0.0, hits), np.append(0.0, false)) / (hits[-1] * false[-1]))


def _pr(y: Flags, s: Array) -> float:
    if not y.any():
        return float("nan")
    hits, rows = _counts(y, s)
    return float(np.sum(np.diff(hits, prepend=0.0) * hits / rows) / hits[-1])


def auc_roc(y_true: Labels, y_score: Scores) -> Score:
    """AUC-ROC on rows: how often an anomalous row scores above a normal one.

    A random baseline gets 0.5, whatever the labels.

    Beware: where 1 % of the rows are anomalous, 0.95 can still mean that nine alarms in ten are false; and an alarm at the end of an event counts as much as one at its onset.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events, or with nothing else.

    Examples
    --------
    >>> auc_roc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    return _pooled(_roc, label_score_pairs(y_true, y_score, whose="auc_roc"))


def auc_pr(y_true: Labels, y_score: Scores) -> Score:
    """AUC-PR on rows (average precision).

    A random baseline gets the share of anomalous rows, so figures of two data sets cannot be compared.

    Beware: it is driven by the longest events, and says nothing about delay.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events.

    Examples
    --------
    >>> round(auc_pr([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return _pooled(_pr, label_score_pairs(y_true, y_score, whose="auc_pr"))

"""The areas every classifier is given: under the ROC curve and under precision and recall, row by row.

scikit-learn computes them. They take each row for a case of its own, so that one long event weighs more than ten short ones, and neither
early nor late has a meaning. They are here because readers ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tisat.metrics.instance import label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags

Area = Callable[[Flags, Array], float]


def ranked(scores: Array) -> Array:
    """Scores as places: NaN, which never raises an alarm, is below all others."""
    known = ~np.isnan(scores)
    places = np.zeros(len(scores))
    places[known] = np.unique(scores[known], return_inverse=True)[1] + 1
    return places


def _pooled(area: Area, pairs: Sequence[tuple[Flags, Array]]) -> Score:
    return Score.over(pairs, lambda some: area(*(np.concatenate(column) for column in zip(*some, strict=True))))


def _roc(y: Flags, s: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, ranked(s))) if 0 < y.sum() < len(y) else float("nan")


def _pr(y: Flags, s: Array) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(y, ranked(s))) if y.any() else float("nan")


def auc_roc(y_true: object, y_score: object) -> Score:
    """AUC-ROC on rows: how often an anomalous row scores above a normal one. A random baseline gets 0.5, whatever the labels.

    Beware: where 1 % of the rows are anomalous, 0.95 can still mean that nine alarms in ten are false; and an alarm at the end of an event counts as much as one at its onset.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
    y_score : array of shape (T,), or a list

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


def auc_pr(y_true: object, y_score: object) -> Score:
    """AUC-PR on rows (average precision). A random baseline gets the share of anomalous rows, so figures of two data sets cannot be compared.

    Beware: it is driven by the longest events, and says nothing about delay.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
    y_score : array of shape (T,), or a list

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

"""PA%K: point adjustment only for events of which more than K percent was found.

Paper: Kim, Choi, Choi, Lee, Yoon, "Towards a Rigorous Evaluation of Time-Series Anomaly Detection", AAAI 2022, section 5. K = 0 is the plain
point adjustment, under which random guessing wins; K = 100 is no adjustment. It does not know delays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.events import events_from_labels
from tisat.metrics.instance import PrecisionRecall, best_f1, label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags, Labels, Scores
from tisat.utils.validation import check_integer, check_real


def _needed(length: int, k: float) -> int:
    """How many active rows are more than ``k`` percent of ``length``."""
    return int(np.floor(k * length / 100 + 1e-9)) + 1


def pa_k_precision_recall(y_true: Labels, y_score: Scores, *, threshold: float, k: float) -> PrecisionRecall:
    """PA%K precision, recall and F1 at a threshold. Warning: for small ``k`` random guessing wins under this score.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    threshold : float
        Rows with a score at or above it are alarms.
    k : float from 0 to 100
        An event counts as wholly found when more than ``k`` percent of its rows are active.

    Returns
    -------
    PrecisionRecall
        Precision, recall and F1.

    Examples
    --------
    >>> scores = [0, 9, 0, 0, 0, 9]
    >>> for k in (0, 50):
    ...     print(pa_k_precision_recall([0, 1, 1, 1, 1, 0], scores, threshold=5, k=k))
    precision 0.8000, recall 1.0000, F1 0.8889 at threshold 5
    precision 0.5000, recall 0.2500, F1 0.3333 at threshold 5
    """
    level = check_real(threshold, "threshold", "pa_k_precision_recall")
    percent = check_real(k, "k", "pa_k_precision_recall", at_least=0.0, at_most=100.0)
    counts = []
    for y, s in label_score_pairs(y_true, y_score, whose="pa_k_precision_recall"):
        active = s >= level
        hits = 0
        for start, stop in events_from_labels(y).tolist():
            found = int(active[start:stop].sum())
            hits += stop - start if found >= _needed(stop - start, percent) else found
        counts.append((hits, (active & ~y).sum(), y.sum() - hits))
    return PrecisionRecall.of_each(counts, threshold=level)


def _steps(ranked: list[tuple[Array, int]], k: float) -> tuple[Array, Array]:
    """Scores at which true positives are gained, and how many, for events given as their known scores in descending order and their length."""
    values, gains = [np.empty(0)], [np.empty(0)]
    for scores, length in ranked:
        needed = _needed(length, k)
        if needed > len(scores):  # never adjusted: too few known scores, or k = 100
            values.append(scores)
            gains.append(np.ones(len(scores)))
            continue
        adjusted_at = scores[needed - 1]
        above = scores[scores > adjusted_at]
        values += [above, np.array([adjusted_at])]
        gains += [np.ones(len(above)), np.array([float(length - len(above))])]
    return np.concatenate(values), np.concatenate(gains)


def _parts(y: Flags, s: Array, ks: Sequence[float]) -> tuple[list[tuple[Array, Array]], int, Array]:
    """The steps for each of ``ks``, the anomalous rows, and the known scores of the normal rows."""
    events = events_from_labels(y).tolist()
    ranked = [(-np.sort(-s[start:stop][~np.isnan(s[start:stop])]), stop - start) for start, stop in events]
    return [_steps(ranked, k) for k in ks], int(y.sum()), s[~y & ~np.isnan(s)]


def _best(parts: Sequence[tuple[list[tuple[Array, Array]], int, Array]]) -> list[PrecisionRecall]:
    """The best F1 for each K, of series together."""
    steps, lengths, known = zip(*parts, strict=True)
    normal = np.sort(np.concatenate(known))
    found = []
    for of_k in zip(*steps, strict=True):
        values, gains = (np.concatenate(column) for column in zip(*of_k, strict=True))
        ascending, group = np.unique(values, return_inverse=True)
        hits = np.cumsum(np.bincount(group, weights=gains, minlength=len(ascending))[::-1])
        false = len(normal) - np.searchsorted(normal, ascending[::-1], side="left")
        found.append(best_f1(ascending[::-1], hits, false, float(sum(lengths))))
    return found


def best_pa_k_f1(y_true: Labels, y_score: Scores, *, k: float) -> PrecisionRecall:
    """The best PA%K F1 over all thresholds: an oracle's. Warning: for small ``k`` random guessing wins under this score.

    Its floor for k = 0 is :func:`tisat.metrics.best_random_guess`, for k = 100 always on: 2r / (1 + r) at anomaly rate r.

    Parameters
    ----------
    y_true : array-like of shape (T,), or a list of them
        Labels: 1 in events.
    y_score : array-like of shape (T,), or a list of them
        Scores; higher is more anomalous.
    k : float
        Percentage of an event's rows that must be found.

    Returns
    -------
    PrecisionRecall
        Precision, recall and F1 at the best threshold (oracle).

    Examples
    --------
    >>> best_pa_k_f1([0, 1, 1, 1, 1, 0], [0, 9, 0, 0, 0, 3], k=0).f1
    1.0
    """
    percent = check_real(k, "k", "best_pa_k_f1", at_least=0.0, at_most=100.0)
    parts = [_parts(y, s, [percent]) for y, s in label_score_pairs(y_true, y_score, whose="best_pa_k_f1")]
    return PrecisionRecall.over(parts, lambda some: _best(some)[0])


def pa_k_auc(y_true: Labels, y_score: Scores, *, n_steps: int = 20) -> Score:
    """The mean over K = 0..100 percent (by trapezoids) of the best PA%K F1, each K with its own best threshold.

    Its floor is between a random baseline's at K = 0 and always-on's at K = 100.

    Parameters
    ----------
    y_true, y_score
        As in :func:`best_pa_k_f1`.
    n_steps : int
        Into how many equal steps 0..100 is cut.

    Returns
    -------
    Score
        Area under F1 over k.

    Examples
    --------
    >>> pa_k_auc([0, 1, 1, 0], [0, 9, 9, 1])
    1.0
    """
    number = check_integer(n_steps, "n_steps", "pa_k_auc", minimum=1)
    ks = np.linspace(0, 100, number + 1)
    parts = [_parts(y, s, ks.tolist()) for y, s in label_score_pairs(y_true, y_score, whose="pa_k_auc")]
    return Score.over(parts, lambda some: float(np.trapezoid([best.f1 for best in _best(some)], ks / 100)))

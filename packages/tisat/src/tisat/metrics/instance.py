"""Precision, recall and F1 on rows: every row is a case of its own.

The plain classification scores. A long event weighs as much as many short ones, and timeliness counts for nothing. The
module does not know events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from tisat.metrics.pooling import mean_known, selections
from tisat.metrics.windows import all_scores, series_list
from tisat.utils.types import AnyArray, Array, Flags, Integers, Labels, Scores
from tisat.utils.validation import check_labels, check_real

_T = TypeVar("_T")


def ratio(part: float, whole: float) -> float:
    """``part / whole``, NaN where the whole is 0."""
    return float(part / whole) if whole else float("nan")


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision, recall and F1, pooled over the series.

    Those of single series in ``per_series``.

    F1 is ``2 TP / (2 TP + FP + FN)``: 0 where nothing is found although there was something, NaN where there was nothing at all.

    Examples
    --------
    >>> PrecisionRecall(0.5, 1.0, 2 / 3).recall
    1.0
    """

    precision: float  # true among the alarms
    recall: float  # found among the events
    f1: float  # their harmonic mean
    threshold: float = float("nan")  # NaN where there is none
    per_series: tuple[PrecisionRecall, ...] = ()  # the same of single series

    @classmethod
    def of_counts(cls, hits: float, false: float, missed: float, *, threshold: float = float("nan")) -> PrecisionRecall:
        """From true positives, false positives and false negatives, which need not be whole."""
        return cls(
            ratio(hits, hits + false), ratio(hits, hits + missed), ratio(2 * hits, 2 * hits + false + missed), threshold
        )

    @classmethod
    def over(cls, series: Sequence[_T], measure: Callable[[Sequence[_T]], PrecisionRecall]) -> PrecisionRecall:
        """From a measure of any number of series: of all together, and of each alone."""
        pooled = measure(series)
        return pooled if len(series) == 1 else replace(pooled, per_series=tuple(map(measure, selections(series))))

    @classmethod
    def of_each(cls, counts: Sequence[Sequence[float]], *, threshold: float = float("nan")) -> PrecisionRecall:
        """From the three numbers of each series."""
        return cls.over(counts, lambda some: cls.of_counts(*np.sum(some, axis=0), threshold=threshold))

    @property
    def per_series_mean(self) -> PrecisionRecall:
        """The mean of each over the series for which it is defined."""
        many = self.per_series or (self,)
        table = np.array([[one.precision, one.recall, one.f1] for one in many])
        precision, recall, f1 = map(mean_known, table.T)
        return PrecisionRecall(precision, recall, f1)

    def __str__(self) -> str:
        at = "" if np.isnan(self.threshold) else f" at threshold {self.threshold:.6g}"
        many = ""
        if self.per_series:
            mean = self.per_series_mean
            many = f" (pooled; per-series mean {mean.precision:.4f} / {mean.recall:.4f} / {mean.f1:.4f})"
        return f"precision {self.precision:.4f}, recall {self.recall:.4f}, F1 {self.f1:.4f}{at}{many}"


def label_score_pairs(y_true: Labels, y_score: Scores, *, whose: str) -> list[tuple[Flags, Array]]:
    """Checked labels and scores, series by series."""
    labels = [check_labels(y, "y_true", whose) for y in series_list(y_true, name="y_true", whose=whose)]
    return list(zip(labels, all_scores(y_score, labels, whose=whose), strict=True))


def best_f1(thresholds: Array, hits: AnyArray, false: AnyArray, total: float) -> PrecisionRecall:
    """The best F1 over descending thresholds.

    The highest threshold where several are best.
    """
    if not total or not len(thresholds):
        return PrecisionRecall.of_counts(0, 0, total)
    best = int(np.argmax(2 * hits / (hits + false + total)))
    return PrecisionRecall.of_counts(hits[best], false[best], total - hits[best], threshold=float(thresholds[best]))


def descending_counts(y: Flags, s: Array) -> tuple[Array, Integers, Integers]:
    """Distinct scores descending, and how many anomalous and normal rows reach each."""
    known = ~np.isnan(s)
    y, s = y[known], s[known]
    order = np.argsort(-s)
    last = np.append(np.diff(s[order]) != 0, True)[: len(s)]
    hits = np.cumsum(y[order])[last]
    return s[order][last], hits, np.arange(1, len(s) + 1)[last] - hits


def instance_precision_recall(y_true: Labels, y_score: Scores, *, threshold: float) -> PrecisionRecall:
    """Precision, recall and F1 of the rows with ``score >= threshold``.

    Its floor: a random baseline has the anomaly rate as precision, so F1 is at most 2r / (1 + r) for a rate r (always on).

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
        Precision, recall and F1 of rows.

    Examples
    --------
    >>> print(instance_precision_recall([0, 1, 1, 0], [0, 0, 9, 9], threshold=5))
    precision 0.5000, recall 0.5000, F1 0.5000 at threshold 5
    """
    level = check_real(threshold, "threshold", "instance_precision_recall")
    counts = [
        ((y & (s >= level)).sum(), (~y & (s >= level)).sum(), (y & ~(s >= level)).sum())
        for y, s in label_score_pairs(y_true, y_score, whose="instance_precision_recall")
    ]
    return PrecisionRecall.of_each(counts, threshold=level)


def best_instance_f1(y_true: Labels, y_score: Scores) -> PrecisionRecall:
    """The best instance F1 over all thresholds: an oracle's, for it is chosen with the labels. Floor: 2r / (1 + r).

    Parameters
    ----------
    y_true : array-like of shape (T,), or a list of them
        Labels: 1 in events.
    y_score : array-like of shape (T,), or a list of them
        Scores; higher is more anomalous.

    Returns
    -------
    PrecisionRecall
        Precision, recall and F1 of rows at the best threshold (oracle).

    Examples
    --------
    >>> print(best_instance_f1([0, 1, 1, 0], [1, 2, 3, 2]))
    precision 0.6667, recall 1.0000, F1 0.8000 at threshold 2
    """

    def best(some: Sequence[tuple[Flags, Array]]) -> PrecisionRecall:
        y, s = (np.concatenate(column) for column in zip(*some, strict=True))
        return best_f1(*descending_counts(y, s), total=float(y.sum()))

    return PrecisionRecall.over(label_score_pairs(y_true, y_score, whose="best_instance_f1"), best)

"""Range-based precision and recall: overlaps of predicted and labelled ranges, with weights for where and how often.

Paper: Tatbul, Lee, Zdonik, Alam, Gottschlich, "Precision and Recall for Time Series", NeurIPS 2018, sections 3 to 5.
It knows ranges only, not delays nor thresholds beyond one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.events import Events, events_from_labels
from tisat.metrics.instance import PrecisionRecall, label_score_pairs
from tisat.metrics.pooling import mean_known
from tisat.utils.types import Array, Flags, Integers, Labels, Scores
from tisat.utils.validation import check_choice, check_real

BIASES = ("flat", "front", "middle", "back")
CARDINALITIES = ("reciprocal", "one")


def _weight_before(k: Integers, length: Integers, bias: str) -> Array:
    """The sum of the positional weights of the first ``k`` of ``length`` rows."""
    if bias == "flat":
        return k.astype(np.float64)
    if bias == "front":
        return k * (2 * length - k + 1) / 2
    if bias == "back":
        return k * (k + 1) / 2
    half = length // 2
    rising = np.minimum(k, half)
    falling = np.maximum(k - half, 0)
    return np.asarray(rising * (rising + 1) / 2 + falling * (2 * (length - half) - falling + 1) / 2, dtype=np.float64)


def _overlap_rewards(ranges: Events, others: Events, bias: str, cardinality: str) -> tuple[Array, Flags]:
    """For each range: the rewarded share covered by the others, and whether any touches it. Both lists are sorted and disjoint."""
    first = np.searchsorted(others[:, 1], ranges[:, 0], side="right")
    last = np.searchsorted(others[:, 0], ranges[:, 1], side="left")
    number = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(ranges)), number)
    which = np.arange(int(number.sum())) - np.repeat(np.cumsum(number) - number, number) + np.repeat(first, number)
    start, length = ranges[owner, 0], ranges[owner, 1] - ranges[owner, 0]
    low = np.maximum(others[which, 0] - start, 0)
    high = np.minimum(others[which, 1] - start, length)
    share = (_weight_before(high, length, bias) - _weight_before(low, length, bias)) / _weight_before(
        length, length, bias
    )
    covered = np.bincount(owner, weights=share, minlength=len(ranges))
    factor = 1.0 / np.maximum(number, 1) if cardinality == "reciprocal" else np.ones(len(ranges))
    return covered * factor, number > 0


def combine(parts: Sequence[tuple[Array, Array]], threshold: float) -> PrecisionRecall:
    """From precisions and recalls of the ranges of each series: their means, and F1 as the harmonic mean of these.

    F1 is 0 where nothing is found, NaN where there was nothing to find.
    """
    precision, recall = (mean_known(np.concatenate(column)) for column in zip(*parts, strict=True))
    f1 = float("nan")
    if not np.isnan(recall):
        hit = 0.0 if np.isnan(precision) else precision
        f1 = 2 * hit * recall / (hit + recall) if hit + recall > 0 else 0.0
    return PrecisionRecall(precision, recall, f1, threshold)


def range_precision_recall(
    y_true: Labels,
    y_score: Scores,
    *,
    threshold: float,
    existence: float = 0.0,
    cardinality: str = "reciprocal",
    bias: str = "flat",
) -> PrecisionRecall:
    """Range-based precision, recall and F1 of the runs with ``score >= threshold``.

    Its floor: an alarm that is always on has recall 1 and one range, whose precision is about the anomaly rate over the number
    of events (``cardinality="reciprocal"``); with ``existence=1`` every alarm process that touches each event has recall 1.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    threshold : float
        Rows with a score at or above it are alarms.
    existence : float from 0 to 1
        The paper's alpha: how much of recall is for touching an event at all.
    cardinality : {"reciprocal", "one"}
        The paper's gamma: a range overlapped x times keeps 1 / x of its reward, or all of it.
    bias : {"flat", "front", "middle", "back"}
        The paper's delta: where in a range an overlap counts most.

    Returns
    -------
    PrecisionRecall
        Pooled: the mean over all ranges of all series.

    Examples
    --------
    >>> print(range_precision_recall([0, 1, 1, 1, 1, 0], [0, 9, 0, 9, 0, 0], threshold=5))
    precision 1.0000, recall 0.2500, F1 0.4000 at threshold 5
    """
    caller = "range_precision_recall"
    level = check_real(threshold, "threshold", caller)
    alpha = check_real(existence, "existence", caller, at_least=0.0, at_most=1.0)
    check_choice(cardinality, "cardinality", caller, choices=CARDINALITIES)
    check_choice(bias, "bias", caller, choices=BIASES)
    parts = []
    for y, s in label_score_pairs(y_true, y_score, whose=caller):
        real, predicted = events_from_labels(y), events_from_labels(s >= level)
        precision, _ = _overlap_rewards(predicted, real, "flat", cardinality)
        overlap, touched = _overlap_rewards(real, predicted, bias, cardinality)
        parts.append((precision, alpha * touched + (1 - alpha) * overlap))
    return PrecisionRecall.over(parts, lambda some: combine(some, level))

"""The score of the Numenta Anomaly Benchmark: each window rewarded once and the earlier the more, each false row penalised.

Paper: Lavin, Ahmad, "Evaluating Real-time Anomaly Detection Algorithms - the Numenta Anomaly Benchmark", ICMLA 2015, section III. The labelled
events are taken for its windows. 0 is a detector that never alarms and 1 a perfect one (the benchmark says 100). It does not know how long an alarm lasts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.events import events_from_labels
from tisat.metrics.instance import label_score_pairs
from tisat.metrics.pooling import Score
from tisat.utils.types import Array, Flags, Labels, Scores
from tisat.utils.validation import check_choice, check_real

PROFILES = {"standard": (1.0, 0.11, 1.0), "low-fp": (1.0, 0.22, 1.0), "low-fn": (1.0, 0.11, 2.0)}  # hit, false, missed
FAR = 3.0  # window lengths after a window; beyond, an alarm is wholly false


def _worth(position: Array) -> Array:
    """Worth of an alarm by its place: -1 is the first row of a window, 0 its end, 1 one window length later."""
    return np.where(position > FAR, -1.0, 2.0 / (1.0 + np.exp(5.0 * np.minimum(position, FAR))) - 1.0)


BEST = float(_worth(np.array(-1.0)))


def _steps(y: Flags, s: Array, profile: tuple[float, float, float]) -> tuple[Array, Array, int]:
    """At which scores the raw score changes as the threshold falls, by how much, and how many windows there are."""
    hit, false, missed = profile
    events = events_from_labels(y)
    position = np.full(len(y), np.inf)  # an alarm before any window is wholly false
    values, gains = [], []
    for i, (start, stop) in enumerate(events.tolist()):
        after = events[i + 1][0] if i + 1 < len(events) else len(y)
        position[stop:after] = np.arange(1, after - stop + 1) / max(stop - start - 1, 1)
        inside = s[start:stop]
        best = np.fmax.accumulate(np.concatenate([[-np.inf], np.where(np.isnan(inside), -np.inf, inside)]))
        records = np.flatnonzero(
            ~np.isnan(inside) & (inside > best[:-1])
        )  # at a threshold in between, the first to reach it
        worth = hit * _worth((records - (stop - start)) / (stop - start)) / BEST
        if len(records):
            values.append(inside[records])
            gains.append(worth - np.append(worth[1:], -missed))  # the latest record is the highest: it comes first
    outside = ~y & ~np.isnan(s)
    values.append(s[outside])
    gains.append(false * _worth(position[outside]))
    return np.concatenate(values), np.concatenate(gains), len(events)


def _normalised(
    steps: Sequence[tuple[Array, Array, int]], profile: tuple[float, float, float], threshold: float | None
) -> float:
    windows = sum(count for _, _, count in steps)
    if not windows:
        return float("nan")
    values, gains = (np.concatenate(column) for column in zip(*((v, g) for v, g, _ in steps), strict=True))
    if threshold is not None:
        above = float(gains[values >= threshold].sum())
    else:
        order = np.argsort(-values)
        total = np.cumsum(gains[order])
        last = np.append(np.diff(values[order]) != 0, True)[: len(order)]  # ties are one threshold
        above = max(0.0, float(total[last].max(initial=0.0)))  # a threshold nobody reaches is one too
    hit, _, missed = profile
    return above / ((hit + missed) * windows)


def nab_score(y_true: Labels, y_score: Scores, *, threshold: float | None = None, profile: str = "standard") -> Score:
    """The NAB score, 0 for a detector that never alarms and 1 for a perfect one.

    Without a threshold the best there is (oracle).

    Beware: a false row costs 0.11 and a found window pays 2, so that where windows are long (as in NAB itself) an alarm every now and then, or
    one that never ends, scores well above 0. Only the first row of an alarm in a window counts, and every row of one outside.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Events are the benchmark's windows. The benchmark makes them a tenth of a series long; here they are as they are labelled.
    y_score : array of shape (T,), or a list
        Scores; higher is more anomalous.
    threshold : float, optional
        Where alarms are raised. Without one, the best threshold is chosen with the labels, as the benchmark does.
    profile : {"standard", "low-fp", "low-fn"}
        What false rows and missed windows cost. The benchmark's probation, the first 15 % of a series, is not left out.

    Returns
    -------
    Score
        Pooled, with ``per_series_mean``; NaN without events. Below 0 where false alarms outweigh what was found.

    Examples
    --------
    >>> nab_score([0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 5, 0, 0, 0, 0])
    1.0
    >>> round(nab_score([0, 0, 0, 1, 1, 1, 0, 0], [0, 5, 0, 0, 5, 0, 0, 0], threshold=5), 3)
    0.917
    """
    level = None if threshold is None else check_real(threshold, "threshold", "nab_score")
    costs = PROFILES[check_choice(profile, "profile", "nab_score", choices=tuple(PROFILES))]
    steps = [_steps(y, s, costs) for y, s in label_score_pairs(y_true, y_score, whose="nab_score")]
    return Score.over(steps, lambda some: _normalised(some, costs, level))

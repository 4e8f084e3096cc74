"""The best event F1 over all thresholds: detected events against raised alarms, with an oracle's threshold.

At one threshold it is :attr:`tisat.metrics.AlarmCounts.event_f1`. A lower threshold can merge alarms and so lower the false ones; hence
every distinct score is tried, by the same one-pass counting as SPD. It does not reward an early detection over a late one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.metrics.instance import PrecisionRecall, best_f1
from tisat.metrics.spd import points_of
from tisat.metrics.windows import Delay, Windows, all_scores, all_windows
from tisat.utils.types import Array, Integers, Labels, Scores, Stamps


def _steps(scores: Array, windows: Windows) -> tuple[Array, Integers, Integers, int]:
    """The scores of a series from the highest down, the events found and the false alarms added at each, and the number of events."""
    points = points_of([scores], [windows], counting="event", thresholds=scores[~np.isnan(scores)])
    true, false = (np.diff(counts, prepend=0) for counts in (points.true_alarms, points.false_alarms))
    return points.thresholds, true, false, points.n_events


def _best(parts: Sequence[tuple[Array, Integers, Integers, int]]) -> PrecisionRecall:
    values, true, false = (np.concatenate([part[column] for part in parts]) for column in range(3))
    order = np.argsort(-values)
    last = np.append(np.diff(values[order]) != 0, True)[: len(order)]  # ties are one threshold
    hits, wrong = (np.cumsum(steps[order])[last] for steps in (true, false))
    return best_f1(values[order][last], hits, wrong, float(sum(part[3] for part in parts)))


def best_event_f1(y_true: Labels, y_score: Scores, *, delta_max: Delay, timestamps: Stamps = None) -> PrecisionRecall:
    """Precision, recall and F1 of events and alarms at the threshold where F1 is best: an oracle's.

    Its floor: always on has recall 1 and one false alarm every ``delta_max``; on/off does better.

    Parameters
    ----------
    y_true, y_score, delta_max, timestamps
        As in :func:`tisat.metrics.spd_score`.

    Returns
    -------
    PrecisionRecall
        Precision, recall and F1 of events at the best threshold (oracle).

    Examples
    --------
    >>> print(best_event_f1([0, 0, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 2, 0, 0, 0, 3, 0], delta_max=2))
    precision 0.5000, recall 1.0000, F1 0.6667 at threshold 2
    """
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="best_event_f1")
    scores = all_scores(y_score, windows, whose="best_event_f1")
    return PrecisionRecall.over([_steps(*each) for each in zip(scores, windows, strict=True)], _best)

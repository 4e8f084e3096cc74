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
from tisat.utils.types import Array, Labels, Scores, Stamps


def _best(pairs: Sequence[tuple[Array, Windows]]) -> PrecisionRecall:
    scores, windows = [s for s, _ in pairs], [w for _, w in pairs]
    known = np.concatenate(scores)
    points = points_of(scores, windows, counting="event", thresholds=known[~np.isnan(known)])
    return best_f1(points.thresholds, points.true_alarms, points.false_alarms, float(points.n_events))


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
    return PrecisionRecall.over(list(zip(scores, windows, strict=True)), _best)

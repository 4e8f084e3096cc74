"""One number for each row, without a threshold: what :meth:`tisat.Watch.score` gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tisat.alarms.calibration import NEVER
from tisat.errors import ParameterError
from tisat.series import SeriesLike
from tisat.utils.period import own_period
from tisat.utils.types import AnyFloats
from tisat.watch.centred import ahead, joined, window_scores
from tisat.watch.protocols import Array, check_series
from tisat.watch.watch import Watch


def score_series(watch: Watch, series: SeriesLike, *, centred: bool = False, train: Array | None = None) -> Array:
    """Score the rows of a series ``(T,)``.

    Parameters
    ----------
    watch : Watch
        Fitted.
    series : Series, array, dataframe or file path
    centred : bool
        False: the statistic that alarms are raised on. True: its mean over the 60 rows from each row on, for rankings of a whole
        file; no alarm is raised on it, because a stream does not have it.
    train : array of shape (N, C), optional
        Normal rows in the order of the channels. With ``centred``: the score joins the statistic with that of the windows round
        each row (:func:`tisat.watch.centred.window_scores`) as standard scores, averaged over the period of the series.
    """
    if train is not None and not centred:
        raise ParameterError("The parameter train must come with centred=True. Got it without.")
    calibration = watch.calibration  # the rule is fitted with it
    raw = watch.read(series) if isinstance(series, str | Path) else series
    checked = check_series(watch.detector, raw)
    scored = watch.scored(watch.detector.points(checked, period=watch.period))
    threshold = calibration.threshold if watch.rule.feeds_back else NEVER
    statistic = watch.rule.accumulate(watch.rule.evidence(scored), threshold=threshold).statistic
    if not centred:
        return statistic
    later = ahead(statistic)
    if train is None:
        return later
    normal = check_series(
        watch.detector, np.asarray(train, dtype=np.float64)
    )  # counters by their growth, as in the series
    known, rows = _whole(normal.values), _whole(checked.values)
    period = own_period(rows)
    return joined(window_scores(known, rows, period=period), later, period=period)


def _whole(values: AnyFloats) -> Array:
    """The values ``(T, C)`` with each missing one as the last known of its channel, else as the next, else 0."""
    filled = np.asarray(values, dtype=np.float64)
    known = np.isfinite(filled)
    rows = np.arange(len(filled))[:, None]
    last = np.maximum.accumulate(np.where(known, rows, -1), axis=0)
    first = np.where(known.any(axis=0), known.argmax(axis=0), 0)
    places = np.where(last >= 0, last, first)
    return np.asarray(np.nan_to_num(np.take_along_axis(filled, places, axis=0), posinf=0.0, neginf=0.0))

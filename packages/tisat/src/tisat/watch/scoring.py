"""One number for each row, without a threshold: what :meth:`tisat.Watch.score` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms.calibration import NEVER
from tisat.errors import ParameterError
from tisat.series import ManySeries, SeriesLike, as_many
from tisat.utils.period import own_period
from tisat.utils.types import AnyFloats
from tisat.watch.centred import ahead, joined, window_scores
from tisat.watch.protocols import Array, check_series
from tisat.watch.watch import Watch


def score_series(watch: Watch, series: SeriesLike, *, centred: bool = False, train: ManySeries | None = None) -> Array:
    """Score the rows of a series ``(T,)``.

    Parameters
    ----------
    watch : Watch
        Fitted.
    series : Series, array, dataframe or file path
    centred : bool
        False: the statistic that alarms are raised on. True: its mean over the 60 rows from each row on, for rankings of a whole
        file; no alarm is raised on it, because a stream does not have it.
    train : Series, array, dataframe, file path, or several, optional
        Normal rows, as ``fit`` takes them. With ``centred``: the score joins the statistic with that of the windows round
        each row (:func:`tisat.watch.centred.window_scores`) as standard scores, averaged over the period of the series. Good
        where the data repeat a course; faults that are short beside the period are diluted.
    """
    if train is not None and not centred:
        raise ParameterError("The parameter train must come with centred=True. Got it without.")
    calibration = watch.calibration  # the rule is fitted with it
    checked = check_series(watch.detector, _opened(watch, series))
    scored = watch.scored(watch.detector.points(checked, period=watch.period))
    threshold = calibration.threshold if watch.rule.feeds_back else NEVER
    statistic = watch.rule.accumulate(watch.rule.evidence(scored), threshold=threshold).statistic
    if not centred:
        return statistic
    later = ahead(statistic)
    if train is None:
        return later
    opened = [_opened(watch, one) for one in train] if isinstance(train, list | tuple) else _opened(watch, train)
    parts = [
        check_series(watch.detector, one) for one in as_many(opened, whose="Watch.score")
    ]  # counters by their growth
    known, rows = _whole(np.concatenate([one.values for one in parts])), _whole(checked.values)
    period = own_period(rows)
    return joined(window_scores(known, rows, period=period), later, period=period)


def _opened(watch: Watch, given: Any) -> Any:
    """A file as it was read for training; anything else as it is."""
    return watch.read(given) if isinstance(given, str | Path) else given


def _whole(values: AnyFloats) -> Array:
    """The values ``(T, C)`` with each missing one as the last known of its channel, else as the next, else 0."""
    filled = np.asarray(values, dtype=np.float64)
    known = np.isfinite(filled)
    rows = np.arange(len(filled))[:, None]
    last = np.maximum.accumulate(np.where(known, rows, -1), axis=0)
    first = np.where(known.any(axis=0), known.argmax(axis=0), 0)
    places = np.where(last >= 0, last, first)
    return np.asarray(np.nan_to_num(np.take_along_axis(filled, places, axis=0), posinf=0.0, neginf=0.0))

"""The detectors of tisat under TSB-AD's protocol: fitted to the first rows of a series, scoring the whole of it.

Nothing is tuned: each has its defaults. A *centred* score looks at what comes after a row, too, as the published window methods
do; it is for files and raises no alarms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tisat import Watch
from tisat.detectors import NearestNeighbors, make
from tisat.errors import CalibrationWarning, ParameterError
from tisat.registry import resolve
from tisat.utils.types import Array

Scorer = Callable[[Array, Array], Array]  # training rows (N, C), all rows (T, C) -> scores (T,)


@lru_cache(maxsize=1)  # two rows of the table share a fit
def _watch(values: bytes, channels: int) -> Watch:
    return Watch(make("prism")).fit(np.frombuffer(values).reshape(-1, channels))


def _statistic(train: Array, rows: Array) -> Array:
    return _watch(np.ascontiguousarray(train).tobytes(), train.shape[1]).score(rows)


def _centred(train: Array, rows: Array) -> Array:
    return _watch(np.ascontiguousarray(train).tobytes(), train.shape[1]).score(rows, centred=True, train=train)


def _nearest(train: Array, rows: Array) -> Array:
    return NearestNeighbors(window="period").fit(train).centred_scores(rows)


SCORERS: dict[str, Scorer] = {
    "prism, centred": _centred,
    "prism, statistic": _statistic,
    "nearest-neighbors, period, centred": _nearest,
}


def scores_of(name: str, train: Array, rows: Array) -> Array:
    """Fit a detector to ``train`` and score ``rows``.

    Parameters
    ----------
    name : str
        One of :data:`SCORERS`, or a registered detector, whose ``decision_function`` is taken.
    train : array of shape (N, C)
    rows : array of shape (T, C)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # hundreds of short series: what they lack is on the page
        if name in SCORERS:
            return np.asarray(SCORERS[name](train, rows))
        return np.asarray(make(name).fit(train).decision_function(rows))


def check_scorer(name: str) -> None:
    """Refuse a name that is neither of :data:`SCORERS` nor registered."""
    if name in SCORERS:
        return
    try:
        resolve(name)
    except ParameterError as error:
        raise ParameterError(f"{error} Or one of: {'; '.join(SCORERS)}.") from None

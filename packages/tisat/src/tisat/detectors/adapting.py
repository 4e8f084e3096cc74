"""Adapt a model of many machines to one of them."""

from __future__ import annotations

import copy
from typing import TypeVar

from tisat.detectors.base import Detector
from tisat.series import SeriesLike
from tisat.watch.protocols import check_series

D = TypeVar("D", bound=Detector)


def adapt(detector: D, series: SeriesLike) -> D:
    """Make the same model for one machine of many: its normal points are from this series, what the model learned is not.

    For a model that was fitted on several machines alike; budgets are then kept for each by its own rows. A network keeps its weights,
    and learns scaling and spread from the series.

    Parameters
    ----------
    detector : Detector
        Fitted; it does not change.
    series : Series, array, dataframe or file path
        Normal data of the machine.

    Returns
    -------
    Detector
        Another one, of the same class.

    Examples
    --------
    >>> from tisat.detectors import LastValue
    >>> shared = LastValue().fit([[0.0], [1.0], [0.0], [2.0], [0.0], [1.0]])
    >>> adapt(shared, [[5.0], [6.0], [5.0], [7.0]]).normal_source_
    'own rows, shared model'
    """
    one = check_series(detector, series)
    mine = copy.copy(detector)
    mine._adapt_to(one)
    return mine

"""Ewma: the forecast of a row is an exponentially weighted mean of all rows before it.

The level starts at the first row of each part and moves a share ``smoothing`` of the way towards each new row. It knows
no trend, no season and no other channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.signal import lfilter

from tisat.detectors._forecast import ForecastDetector
from tisat.detectors.base import Array, Traits
from tisat.detectors.streaming import RowStream
from tisat.utils.parameters import real
from tisat.utils.stage import Stateful


class _LevelStream(Stateful, RowStream):
    """One level a channel: the whole memory of an exponentially weighted mean."""

    _kept = ("level",)

    def __init__(self, detector: Ewma) -> None:
        self._share = detector.smoothing
        self._spread = detector.spread_
        self._level = np.full(detector.n_channels_, np.nan)

    def step(self, row: Array, /) -> Array:
        point: Array = (row - self._level) / self._spread
        moved = self._share * row + (1 - self._share) * self._level
        moved = np.where(np.isnan(self._level), row, moved)  # the first value of a channel is its level
        self._level = np.where(np.isnan(row), self._level, moved)  # a missing one leaves it as it is
        return point

    def reset(self) -> None:
        self._level[:] = np.nan


class Ewma(ForecastDetector):
    """The exponentially weighted moving average as a forecaster.

    Examples
    --------
    >>> detector = Ewma(smoothing=0.5).fit([[0.0], [1.0], [0.0], [1.0], [0.0]], holdout=0)
    >>> detector.decision_function([[0.0], [0.0], [3.0], [3.0]]).round(2).tolist()
    [nan, 0.0, 17.1, 4.27]

    References
    ----------
    Roberts: Control chart tests based on geometric moving averages, Technometrics 1959.
    """

    # partial: channels do not see each other
    traits: ClassVar[Traits] = replace(ForecastDetector.traits, partial=True)

    smoothing: float = real(
        0.1,
        above=0.0,
        at_most=1.0,
        doc="Weight of the newest row in the level. 1 is the last-value forecaster; the mean age of what is remembered is "
        "1 / smoothing rows.",
    )

    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        """Nothing: the level starts with the first row."""

    def _forecast(self, part: Array) -> Array:
        forecast = np.full_like(part, np.nan)
        if not np.isnan(part).any():
            forecast[1:] = self._levels(part)[:-1]
            return forecast
        for c in range(part.shape[1]):  # a missing value leaves the level as it is
            known = np.flatnonzero(~np.isnan(part[:, c]))
            if len(known):
                level = self._levels(part[known, c : c + 1])[:, 0]
                last = np.searchsorted(known, np.arange(len(part)), side="left") - 1  # the last known row before each
                forecast[:, c] = np.where(last >= 0, level[np.maximum(last, 0)], np.nan)
        return forecast

    def _levels(self, part: Array) -> Array:
        share = self.smoothing
        # The filter's memory is set so that the level after the first row is that row.
        return np.asarray(lfilter([share], [1.0, share - 1.0], part, axis=0, zi=(1 - share) * part[:1])[0])

    def _context(self) -> None:
        return None

    def _minimum_rows(self) -> int:
        return 3

    def _stream(self) -> _LevelStream:
        return _LevelStream(self)

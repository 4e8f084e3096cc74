"""Forecast errors as points: observed minus forecast, per channel in units of its normal spread.

The spread of a channel is the standard deviation of its forecast errors on the training rows, floored at one hundredth
of the channel's training range so that a channel that never moved cannot dominate (spec, section 5; the effect is
measured in the documentation), and widened where rare jumps are all that a channel does. The score is the mean of squares. How the forecast is made is the subclass's business.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.alarms.explanation import Explanation, shares
from tisat.detectors._ranges import channel_ranges
from tisat.detectors.base import Array, Detector, Traits
from tisat.utils.parameters import learned

SPREAD_FLOOR = 0.01  # of the training range
RARE, RARE_NORMAL = 0.999, 3.29  # a quantile of absolute errors, and where it lies for normal ones, in deviations


def normal_spread(residuals: Array, parts: Sequence[Array]) -> Array:
    """Per-channel spread ``(C,)`` of residuals ``(n, C)``, floored by the training range of ``parts``."""
    return np.asarray(np.maximum(residuals.std(axis=0), SPREAD_FLOOR * channel_ranges(parts)[1]))


def residual_spread(residuals: Array, parts: Sequence[Array]) -> Array:
    """:func:`normal_spread` of forecast errors, at least as wide as their rare large ones say.

    A channel that rests and then jumps (a valve, a counter, a mode) has a standard deviation that tells of neither; each jump
    would be many spreads high and drown the other channels. Its ``RARE`` quantile, put where a normal error's would
    lie, makes a jump that happens once in a thousand rows an ordinary large error.
    """
    rare = np.quantile(np.abs(residuals), RARE, axis=0) / RARE_NORMAL
    return np.asarray(np.maximum(normal_spread(residuals, parts), rare))


class StandardisedDetector(Detector):
    """Rows are measured from the training mean, in training standard deviations with a floor."""

    center_: Array = learned("C")  # (C,) training mean
    scale_: Array = learned("C")  # (C,) floored training standard deviation

    def _learn_scale(self, parts: Sequence[Array]) -> None:
        rows = np.concatenate(parts)
        self.center_ = rows.mean(axis=0)
        self.scale_ = normal_spread(rows, parts)

    def _standardise(self, rows: Array) -> Array:
        return np.asarray((rows - self.center_) / self.scale_)


class ForecastDetector(Detector):
    """A detector whose points are scaled forecast errors.

    A subclass writes ``_fit_forecaster(parts)``, ``_forecast(part)`` and ``_context()``.
    """

    traits: ClassVar[Traits] = Traits(crossfit=5, points_are_channels=True, fault_kind="forecast error")

    spread_: Array = learned("C")

    @abstractmethod
    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        """Learn to forecast from clean arrays."""

    @abstractmethod
    def _forecast(self, part: Array) -> Array:
        """For every row of ``part`` ``(T, C)`` its forecast from earlier rows.

        NaN rows while warming up.
        """

    def _fit(self, parts: Sequence[Array]) -> None:
        self._fit_forecaster(parts)
        residuals = np.concatenate([part - self._forecast(part) for part in parts])
        residuals = residuals[~np.isnan(residuals).any(axis=1)]
        self.spread_ = residual_spread(residuals, parts)

    def _points(self, part: Array) -> Array:
        return np.asarray((part - self._forecast(part)) / self.spread_)

    def _explain(self, row: Array, point: Array) -> Explanation:
        with np.errstate(over="ignore"):
            amounts = shares(point**2)
        return Explanation(
            self.traits.fault_kind, amounts, row, row - point * self.spread_, self.spread_, "contribution"
        )

"""VectorAutoregression: each channel's next value from the last ``order`` values of all channels.

A ridge regression in closed form; the moments are summed block by block, so memory does not grow with the series. It
knows correlations between channels and over time, and nothing nonlinear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.detectors._forecast import ForecastDetector, StandardisedDetector
from tisat.detectors._moments import RidgeMoments
from tisat.detectors._windows import blocks_of, parts_longer_than, sliding_windows
from tisat.detectors.base import Array
from tisat.utils.parameters import integer, learned, real


class VectorAutoregression(StandardisedDetector, ForecastDetector):
    """Vector autoregression, VAR(order), with a ridge penalty.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> leader = rng.standard_normal(500)
    >>> pair = np.column_stack([leader, np.roll(leader, 3)])  # channel 1 repeats channel 0 three rows later
    >>> detector = VectorAutoregression(order=5).fit(pair[3:])
    >>> bool(np.abs(detector.points(pair[3:])[5:, 1]).max() < 4), float(detector.spread_[1].round(2))
    (True, 0.07)

    References
    ----------
    Lütkepohl: New Introduction to Multiple Time Series Analysis, Springer 2005, chapters 2 and 3.
    """

    order: int = integer(20, at_least=1, doc="How many past rows the forecast is made from.")
    ridge: float = real(
        1e-3, at_least=0.0, doc="Penalty on the weights, as a share of the mean variance of the inputs."
    )

    weights_: Array = learned("order * C, C")  # (order * C, C)
    intercepts_: Array = learned("C")  # (C,)

    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        order, ridge = self.order, self.ridge
        parts = parts_longer_than(order, parts, whose="VectorAutoregression")
        channels = parts[0].shape[1]
        self._learn_scale(parts)
        moments = RidgeMoments(order * channels, channels)
        for part in parts:
            scaled = self._standardise(part)
            for where, block in blocks_of(sliding_windows(scaled[:-1], window=order)):
                moments.add(block.reshape(len(block), -1), scaled[order:][where])
        self.weights_, self.intercepts_ = moments.solve(ridge=ridge)

    def _forecast(self, part: Array) -> Array:
        forecast = np.full_like(part, np.nan)
        scaled = self._standardise(part)
        for where, block in blocks_of(sliding_windows(scaled[:-1], window=self.order)):
            standard = block.reshape(len(block), -1) @ self.weights_ + self.intercepts_
            forecast[self.order :][where] = standard * self.scale_ + self.center_
        return forecast

    def _context(self) -> int:
        return self.order

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"order": 5}

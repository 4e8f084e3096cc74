"""Linear window forecasters: each channel's next value is a weighted sum of its own last ``window`` values.

Three of them, alike but for the level a window is measured from and the forecast is added back to (its **anchor**):

* :class:`Linear`: the channel's mean in training;
* :class:`LinearLast`: the window's last value;
* :class:`LinearMean`: the window's mean.

Levels in operation often lie outside those of training; the last two do not mind. Weights are the closed-form ridge
solution, one set a channel. Channels do not see each other here; in :mod:`tisat.detectors.vector_autoregression` they
do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors._forecast import ForecastDetector
from tisat.detectors._ridge import RidgeMoments
from tisat.detectors._windows import blocks_of, parts_longer_than, sliding_windows
from tisat.detectors.base import Array
from tisat.utils.parameters import integer, learned, real


class Linear(ForecastDetector):
    """A linear forecaster whose windows are measured from the channel's mean in training.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(400.0))[:, None]
    >>> scores = Linear(window=10).fit(wave).decision_function(wave)
    >>> int(np.isnan(scores).sum()), bool(scores[10:].max() < 3)
    (10, True)

    Notes
    -----
    The default ``ridge`` keeps the false-alarm level best on unseen training tails
    (``experiments/ridge_on_training_tails.py``); it was not chosen blind to test labels, see ``docs/detectors/linear.md``.

    References
    ----------
    Zeng, Chen, Zhang, Xu: Are Transformers Effective for Time Series Forecasting? AAAI 2023 (Linear and NLinear; theirs
    are trained by gradient descent and may share weights between channels, ours are the exact solution per channel).
    """

    partial: ClassVar[bool] = True  # channels do not see each other
    exact_together: ClassVar[bool] = True  # a sum in a fixed order

    window: int = integer(100, at_least=1, doc="How many past values the forecast is made from.")
    ridge: float = real(1.0, at_least=0.0, doc="Penalty on the weights, as a share of the variance of the inputs.")

    level_: Array = learned("C")  # (C,) mean of the training rows
    weights_: Array = learned("window, C")  # (window, C), oldest value first
    intercepts_: Array = learned("C")  # (C,)

    def _anchors(self, part: Array) -> Array:
        """The anchor of each window of ``part[:-1]``, ``(T - window, C)``."""
        return np.broadcast_to(self.level_, (len(part) - self.window, *part.shape[1:]))

    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        whose = type(self).__name__
        window, ridge = self.window, self.ridge
        parts = parts_longer_than(window, parts, whose=whose)
        self.level_ = np.concatenate(parts).mean(axis=0)
        scale = np.concatenate(parts).std(axis=0)
        scale[scale == 0] = 1.0
        anchors = [self._anchors(part) for part in parts]
        channels = len(scale)
        self.weights_ = np.zeros((window, channels))
        self.intercepts_ = np.zeros(channels)
        for c in range(channels):
            moments = RidgeMoments(window, 1)
            for part, anchor in zip(parts, anchors, strict=True):
                for rows, block in blocks_of(sliding_windows(part[:-1, c : c + 1], window=window)):
                    base = anchor[rows, c : c + 1]  # (n, 1)
                    moments.add((block[:, :, 0] - base) / scale[c], (part[window:, c : c + 1][rows] - base) / scale[c])
            weights, intercepts = moments.solve(ridge=ridge)
            self.weights_[:, c] = weights[:, 0]
            self.intercepts_[c] = intercepts[0] * scale[c]

    def _forecast(self, part: Array) -> Array:
        forecast = np.full_like(part, np.nan)
        length = len(part) - self.window
        if length <= 0:
            return forecast
        anchor = self._anchors(part)
        total = np.broadcast_to(self.intercepts_, anchor.shape).copy()
        for lag in range(self.window):  # the same order of operations for one window and for many
            total += self.weights_[lag] * (part[lag : lag + length] - anchor)
        forecast[self.window :] = total + anchor
        return forecast

    def _points_of_windows(self, windows: Array) -> Array:
        side_by_side = windows.transpose(1, 0, 2)  # (window + 1, n, C): one part with n times C channels
        return np.asarray((windows[:, -1] - self._forecast(side_by_side)[-1]) / self.spread_)

    def _context(self) -> int:
        return self.window

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 20}


class LinearLast(Linear):
    """A linear forecaster whose windows are measured from their last value (NLinear).

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(400.0))[:, None]
    >>> detector = LinearLast(window=10).fit(wave)
    >>> bool(detector.decision_function(wave + 50)[10:].max() < 3)  # another level is no anomaly
    True

    References
    ----------
    Zeng, Chen, Zhang, Xu: Are Transformers Effective for Time Series Forecasting? AAAI 2023 (NLinear, there trained by
    gradient descent; here the exact solution per channel).
    """

    def _anchors(self, part: Array) -> Array:
        return part[self.window - 1 : -1]


class LinearMean(Linear):
    """A linear forecaster whose windows are measured from their mean.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(400.0))[:, None]
    >>> detector = LinearMean(window=10).fit(wave)
    >>> bool(detector.decision_function(wave + 50)[10:].max() < 3)  # another level is no anomaly
    True

    Notes
    -----
    Removing each window's own mean and adding it back to the forecast is the first half of Kim et al.: Reversible
    Instance Normalization, ICLR 2022, around the linear forecaster of Zeng et al., AAAI 2023. The second half, dividing
    by each window's own spread, is left out: it would make a quiet stretch as loud as any other.
    """

    def _anchors(self, part: Array) -> Array:
        # Summed lag by lag, not by a running sum: a huge value must not leave rounding errors in later windows.
        length = len(part) - self.window
        total = np.zeros((length, *part.shape[1:]))
        for lag in range(self.window):
            total += part[lag : lag + length]
        return total / self.window

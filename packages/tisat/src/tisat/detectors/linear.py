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
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tisat.detectors._forecast import ForecastDetector
from tisat.detectors._moments import RidgeMoments
from tisat.detectors._windows import blocks_of, parts_longer_than, sliding_windows
from tisat.detectors.base import Array, Traits
from tisat.utils.compiled import compiled
from tisat.utils.parameters import integer, learned, real
from tisat.utils.types import Integers


@compiled()
def _add_up(
    rows: Array, at: Integers, weights: Array, intercepts: Array, anchors: Array, out: Array
) -> None:  # pragma: no cover - compiled
    """Forecasts of the rows ``at``: sums in the same order for one row and for many."""
    window, channels = weights.shape
    for i in range(len(at)):
        total, anchor = out[i], anchors[i]
        for c in range(channels):
            total[c] = intercepts[c]
        for j in range(window):
            row, weight = rows[at[i] - window + j], weights[j]
            for c in range(channels):
                total[c] += weight[c] * (row[c] - anchor[c])
        for c in range(channels):
            total[c] += anchor[c]


@compiled()
def _means(rows: Array, at: Integers, window: int, out: Array) -> None:  # pragma: no cover - compiled
    """The mean of the ``window`` rows before each row."""
    for i in range(len(at)):
        total = out[i]
        for c in range(rows.shape[1]):
            total[c] = 0.0
        for j in range(window):  # summed afresh: a huge value must not leave rounding errors in later windows
            row = rows[at[i] - window + j]
            for c in range(rows.shape[1]):
                total[c] += row[c]
        for c in range(rows.shape[1]):
            total[c] /= window


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

    # partial: channels do not see each other
    # exact_together: a sum in a fixed order
    traits: ClassVar[Traits] = replace(ForecastDetector.traits, partial=True, exact_together=True)

    window: int = integer(100, at_least=1, doc="How many past values the forecast is made from.")
    ridge: float = real(1.0, at_least=0.0, doc="Penalty on the weights, as a share of the variance of the inputs.")

    level_: Array = learned("C")  # (C,) mean of the training rows
    weights_: Array = learned("window, C")  # (window, C), oldest value first
    intercepts_: Array = learned("C")  # (C,)

    def _anchors(self, rows: Array, at: Integers) -> Array:
        """The anchor of the window before each row asked about, ``(n, C)``."""
        return np.tile(self.level_, (len(at), 1))

    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        whose = type(self).__name__
        window, ridge = self.window, self.ridge
        parts = parts_longer_than(window, parts, whose=whose)
        self.level_ = np.concatenate(parts).mean(axis=0)
        scale = np.concatenate(parts).std(axis=0)
        scale[scale == 0] = 1.0
        anchors = [self._anchors(part, np.arange(window, len(part))) for part in parts]
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
        if len(part) > self.window:
            forecast[self.window :] = self._forecasts(np.ascontiguousarray(part), np.arange(self.window, len(part)))
        return forecast

    def _forecasts(self, rows: Array, at: Integers) -> Array:
        """Forecasts ``(n, C)`` of the rows ``at`` from those before them."""
        anchors = self._anchors(rows, at)
        out = np.empty_like(anchors)
        _add_up(rows, at, self.weights_, self.intercepts_, anchors, out)
        return out

    def _points_of_windows(self, windows: Array) -> Array:
        rows = windows.reshape(-1, windows.shape[2])  # one below the other
        newest = np.arange(windows.shape[1] - 1, len(rows), windows.shape[1])
        errors = np.asarray(windows[:, -1] - self._forecasts(rows, newest))
        errors /= self.spread_
        return errors

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

    def _anchors(self, rows: Array, at: Integers) -> Array:
        return rows[at - 1]


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

    def _anchors(self, rows: Array, at: Integers) -> Array:
        means = np.empty((len(at), rows.shape[1]))
        _means(np.ascontiguousarray(rows), at, self.window, means)
        return means

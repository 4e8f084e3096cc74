"""SpectralResidual: what stands out of the spectrum of the recent past, channel by channel.

Microsoft's saliency map: the amplitude spectrum of a window is divided by its own local average, transformed back, and
the newest row is compared with the rows before it. Nothing about level or shape is learned from training, only
the spread of the scores. It sees what is sudden; what lasts becomes its background.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.ndimage import uniform_filter1d

from tisat.detectors._windows import WindowedDetector, parts_longer_than
from tisat.detectors.base import Array, Traits
from tisat.utils.parameters import integer, learned

LOOK_BACK = 5  # m of equation 10: points the gradient is estimated from
EXTENSION = 5  # kappa: copies of the estimated next point appended, so that the newest is not at the window's edge
SPECTRUM_FILTER = 3  # q of equation 4
SCORE_WINDOW = 21  # z of equation 8
CONTRAST_CEILING = 1e6  # where the background is empty any saliency is without bound


class SpectralResidual(WindowedDetector):
    """Spectral residual saliency on sliding windows, causal.

    Point c is the contrast of channel c: its saliency at the newest row over the mean saliency just before, minus 1,
    never below 0, divided by its normal spread.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(600.0) / 8)[:, None] + 0.05 * np.random.default_rng(0).standard_normal((600, 1))
    >>> detector = SpectralResidual(window=64).fit(wave)
    >>> test = wave.copy()
    >>> test[500] += 2.0
    >>> bool(detector.decision_function(test)[500] > 3 * detector.normal_level())
    True

    References
    ----------
    Ren et al.: Time-series anomaly detection service at Microsoft, KDD 2019, section 3.2 (SR; the convolutional network
    of section 3.3 is not part of this).
    """

    traits: ClassVar[Traits] = Traits(crossfit=5, fault_kind="spike", points_are_channels=True)

    window: int = integer(128, at_least=SCORE_WINDOW + 3, doc="Rows each spectrum is taken of, the newest included.")

    spread_: Array = learned("C")  # (C,) spread of the contrast on training rows, at least 1e-3

    def _fit(self, parts: Sequence[Array]) -> None:
        window = self.window
        long = parts_longer_than(window - 1, parts, whose="SpectralResidual")
        self.spread_ = np.ones(long[0].shape[1])
        contrasts = np.concatenate([self._points(part)[window - 1 :] for part in long])
        self.spread_ = np.maximum(np.sqrt(np.mean(contrasts**2, axis=0)), 1e-3)

    def _window_points(self, windows: Array) -> Array:
        return np.asarray(_contrast(windows) / self.spread_)

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 40}


def _contrast(windows: Array) -> Array:
    """Contrast ``(n, C)`` of the newest rows of windows ``(n, window, C)``."""
    x = windows - windows.mean(axis=1, keepdims=True)
    size = np.abs(x).max(axis=1, keepdims=True)
    flat = size[:, 0] <= 1e-12 * np.maximum(np.abs(windows).max(axis=1), 1e-300)  # (n, C) nothing moved in the window
    x = x / np.where(flat[:, None], 1.0, size)
    # The next point by the mean gradient of the few before the newest, repeated (equations 9 and 10 include the newest;
    # a spike then extrapolates itself into a plateau and is no longer salient).
    lags = np.arange(1, LOOK_BACK + 1)
    gradient = np.mean((x[:, -2:-1] - x[:, -2 - lags]) / lags[:, None], axis=1)  # (n, C)
    following = x[:, -1 - LOOK_BACK] + LOOK_BACK * gradient
    extended = np.concatenate([x, np.repeat(following[:, None], EXTENSION, axis=1)], axis=1)
    spectrum = np.fft.rfft(extended, axis=1)
    amplitude = np.abs(spectrum)
    floor = 1e-8 * np.maximum(amplitude.max(axis=1, keepdims=True), 1e-300)
    log_amplitude = np.log(np.maximum(amplitude, floor))
    residual = log_amplitude - uniform_filter1d(log_amplitude, SPECTRUM_FILTER, axis=1, mode="nearest")
    phase = spectrum / np.maximum(amplitude, floor)
    saliency = np.abs(np.fft.irfft(np.exp(residual) * phase, n=extended.shape[1], axis=1))[:, : windows.shape[1]]
    background = saliency[:, -1 - SCORE_WINDOW : -1].mean(axis=1)
    contrast = saliency[:, -1] / np.maximum(background, 1e-12) - 1.0
    return np.asarray(np.where(flat, 0.0, np.clip(contrast, 0.0, CONTRAST_CEILING)))

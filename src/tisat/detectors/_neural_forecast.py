"""NeuralForecaster: a network that forecasts the next rows, and points that say how far off it was.

A window is measured from its **anchor** (its mean, its last value, or nothing) in units of the training range; the
network forecasts from that, and the anchor is added back. Levels in operation often lie outside those of training; an
anchored forecaster does not mind. Deviations are clipped at ``DEVIATION`` training ranges: further out the network has
seen nothing, and the residual is large either way.

The **point** of an instant is observed minus forecast, per channel and per lead time in units of its spread on the
training rows (floored, see :mod:`~tisat.detectors._forecast`). With ``horizon`` H > 1 one pass serves H instants: blocks
of H rows from the start of each part, each forecast from the window before the block, so scores stay causal.

A subclass writes ``_network(n_channels)``: windows ``(b, window, C)`` to forecasts ``(b, horizon, C)``. This module does
not know how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from tisat._extras import require
from tisat._validation import check_choice, check_integer
from tisat.base import Array, Stream, WindowStream
from tisat.detectors._forecast import nominal_spread
from tisat.detectors._neural import NeuralDetector

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", whose="A neural detector")

Floats: TypeAlias = npt.NDArray[np.float32]

ANCHORS = ("mean", "last", "none")
AGGREGATIONS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda points: np.asarray(np.einsum("tc,tc->t", points, points) / points.shape[1]),  # no copy of points
    "max": lambda points: np.asarray(np.max(points**2, axis=1)),
}
DEVIATION = 10.0  # training ranges from the anchor


class BlockStream:
    """The stream of a forecaster with horizon > 1: forecasts for a block of rows are made as it begins."""

    def __init__(self, detector: NeuralForecaster) -> None:
        self._detector = detector
        self._buffer = np.full((detector.window, detector.n_channels_), np.nan)
        self._forecast = np.full((detector.horizon, detector.n_channels_), np.nan)
        self._seen = 0

    def push(self, row: Array) -> Array:
        """The point ``(C,)`` of the next row; NaN while the window fills."""
        detector = self._detector
        point = np.full(detector.n_points_, np.nan)
        ahead = self._seen - detector.window
        if ahead >= 0:
            lead = ahead % detector.horizon
            if lead == 0:
                self._forecast = detector._forecast_windows(self._buffer[None], live=True)[0]
            point = (row - self._forecast[lead]) / detector.spread_[lead]
        self._buffer[:-1] = self._buffer[1:]
        self._buffer[-1] = row
        self._seen += 1
        return point

    def reset(self) -> None:
        """Start a new warm-up."""
        self._seen = 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The window, the forecasts of the running block, and how many rows were seen."""
        return {"buffer": self._buffer.copy(), "forecast": self._forecast.copy(), "seen": np.array(self._seen)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a state."""
        self._buffer[:] = state["buffer"]
        self._forecast = np.array(state["forecast"])
        self._seen = int(state["seen"])


class NeuralForecaster(NeuralDetector):
    """A neural detector whose points are scaled forecast errors; see the module docstring.

    Parameters that a subclass lists beside those of :class:`~tisat.detectors._neural.NeuralDetector`: ``horizon``,
    ``anchor`` and ``aggregation``.
    """

    horizon: int = 1  # rows forecast in one pass
    anchor: str = "mean"  # what a window is measured from
    aggregation: str = "mean"  # how squared points become a score

    points_are_channels: ClassVar[bool] = True
    rounding: ClassVar[float] = 1e-3  # float32, and another order of summation for one window than for many
    clip: ClassVar[float] = 1e6  # the anchor takes the level out; deviations are clipped by DEVIATION

    spread_: Array  # (horizon, C)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whose = type(self).__name__
        check_integer(self.horizon, "horizon", whose, minimum=1)
        check_choice(self.anchor, "anchor", whose, choices=ANCHORS)
        check_choice(self.aggregation, "aggregation", whose, choices=AGGREGATIONS)

    def _rows(self) -> int:
        horizon = check_integer(self.horizon, "horizon", type(self).__name__, minimum=1)
        return super()._rows() + horizon

    def _context(self) -> int | None:
        return self._rows() - 1 if self.horizon == 1 else None  # blocks are counted from the start of a part

    def _minimum_rows(self) -> int:
        return self._rows() + 1

    # ------------------------------------------------------------------ training

    def _anchored(self, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Windows ``(b, L, C)`` and targets ``(b, H, C)`` of a batch, measured from the windows' anchors."""
        window, target = batch[:, : self.window], batch[:, self.window :]
        if self.anchor == "none":
            return window, target
        base = window.mean(dim=1, keepdim=True) if self.anchor == "mean" else window[:, -1:]  # (b, 1, C)
        return window - base, target - base

    def _loss(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        window, target = self._anchored(batch)
        return torch.nn.functional.mse_loss(network(window), target)

    def _fit(self, parts: Sequence[Array]) -> None:
        super()._fit(parts)
        residuals = np.concatenate([self._window_residuals(part, every=self.stride) for part in parts])  # (n, H, C)
        residuals = residuals[~np.isnan(residuals).any(axis=(1, 2))]
        self.spread_ = np.stack([nominal_spread(residuals[:, lead], parts) for lead in range(self.horizon)])

    # ------------------------------------------------------------------ scoring

    def _live_session(self) -> Callable[[Floats], Floats] | None:
        """A quicker way for the network to answer one window, prepared once; None: there is none."""
        return None

    def _network_forecast(self, deviations: Floats, *, live: bool = False) -> Floats:
        """What the network says ``(b, H, C)`` to deviations from the anchor ``(b, L, C)``."""
        session = self._live_session() if live and len(deviations) == 1 else None
        if session is not None:
            return session(deviations)
        with torch.inference_mode():
            forecast = self.network_(torch.from_numpy(deviations).to(self._device))
            return np.asarray(forecast.cpu().numpy())

    def _forecast_windows(self, windows: Array, *, live: bool = False) -> Array:
        """Forecasts ``(b, H, C)`` of windows ``(b, L, C)``, in the units of the series; ``live``: as rows arrive."""
        if self.anchor == "mean":
            base = windows.mean(axis=1, keepdims=True)  # (b, 1, C)
        else:
            base = windows[:, -1:] if self.anchor == "last" else self.low_[None, None]
        deviations = np.clip((windows - base) / self.span_, -DEVIATION, DEVIATION).astype(np.float32)
        return np.asarray(base + self.span_ * self._network_forecast(deviations, live=live))

    def _window_residuals(self, part: Array, *, every: int) -> Array:
        """Observed minus forecast ``(n, H, C)`` for a window at every so many rows; the last may lack its end: NaN."""
        length = len(part) - self.window
        if length <= 0:
            return np.empty((0, self.horizon, part.shape[1]))
        windows = sliding_window_view(part[:-1], self.window, axis=0)[::every]  # (n, C, L), a view
        residuals = np.full((len(windows), self.horizon, part.shape[1]), np.nan)
        for first in range(0, len(windows), self.score_batch):
            block = np.ascontiguousarray(windows[first : first + self.score_batch].transpose(0, 2, 1))  # (b, L, C)
            rows = (
                self.window + every * np.arange(first, first + len(block))[:, None] + np.arange(self.horizon)
            )  # (b, H)
            observed = np.where((rows < len(part))[..., None], part[np.minimum(rows, len(part) - 1)], np.nan)
            residuals[first : first + len(block)] = observed - self._forecast_windows(block)
        return residuals

    def _residuals(self, part: Array) -> Array:
        """Observed minus forecast ``(T - L, C)``, block by block from the start of the part."""
        flat = self._window_residuals(part, every=self.horizon).reshape(-1, part.shape[1])
        return flat[: max(0, len(part) - self.window)]

    def _points(self, part: Array) -> Array:
        residuals = self._window_residuals(part, every=self.horizon)
        residuals /= self.spread_
        scored = residuals.reshape(-1, part.shape[1])[: max(0, len(part) - self.window)]
        return np.concatenate([np.full((min(self.window, len(part)), part.shape[1]), np.nan), scored])

    def _points_of_windows(self, windows: Array) -> Array:
        forecast = [
            self._forecast_windows(windows[first : first + self.score_batch, :-1], live=True)[:, 0]
            for first in range(0, len(windows), self.score_batch)
        ]
        return np.asarray((windows[:, -1] - np.concatenate(forecast)) / self.spread_[0])

    def _window_points(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        raise NotImplementedError("a forecaster scores residuals, not windows")

    def _stream(self) -> Stream:
        self._live_session()  # made now, not when the first row arrives
        if self.horizon > 1:
            return BlockStream(self)
        return WindowStream(self, self.window)

    def _aggregate(self, points: Array) -> Array:
        return AGGREGATIONS[self.aggregation](points)

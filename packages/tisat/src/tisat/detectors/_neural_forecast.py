"""NeuralForecaster: a network that forecasts the next rows, and points that say how far off it was.

A window is measured from its **anchor** (its mean, its last value, or nothing) in units of the training range; the
network forecasts from that, and the anchor is added back. Levels in operation often lie outside those of training; an
anchored forecaster does not mind. Deviations are clipped at ``DEVIATION`` training ranges: further out the network has
seen nothing, and the residual is large either way.

The **point** of a row is observed minus forecast, per channel and per lead time in units of its spread on the
training rows (floored, see :mod:`~tisat.detectors._forecast`). With a ``lookahead`` G > 1 every row is forecast twice, one row ahead
and G rows ahead, and its point is the size of the larger error: the first sees what is sudden, the second still sees a change
that the newest rows have made ordinary. Scores stay causal.

A subclass writes ``_network(n_channels)``: windows ``(b, window, C)`` to forecasts ``(b, leads, C)``. This module does
not know how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from tisat.alarms.explanation import Explanation
from tisat.detectors._forecast import residual_spread
from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Network
from tisat.detectors.base import Array, Stream, Traits, WindowStream
from tisat.detectors.networks import torch
from tisat.detectors.networks.threads import threads_for
from tisat.utils.parameters import choice, integer, learned
from tisat.utils.stage import State

Singles: TypeAlias = npt.NDArray[np.float32]

ANCHORS = ("mean", "last", "none")
DEVIATION = 10.0  # training ranges from the anchor


class LookaheadStream(WindowStream):
    """The stream of a forecaster with a lookahead: one pass a row, whose far forecasts wait for their rows."""

    one_at_a_time: ClassVar[bool] = True
    whole: ClassVar[bool] = False

    def __init__(self, detector: NeuralForecaster[Any], context: int) -> None:
        super().__init__(detector, context)
        self._forecaster = detector
        self._waiting = np.full((detector.lookahead, detector.n_channels_), np.nan)  # the next row's comes first

    def window(self, row: Array) -> Array | None:
        """Take in a row; the rows ``(window, C)`` before it, from which it and a later one are forecast."""
        super().window(row)
        return None if self._filled <= self._forecaster.window else self._buffer[-self._forecaster.window - 1 : -1]

    def point(self, answer: Array) -> Array:
        """The point ``(C,)`` of the row just taken in.

        NaN while the first far forecasts wait for their rows.
        """
        near, far = answer
        self._waiting[:-1] = self._waiting[1:]
        self._waiting[-1] = far
        if self._filled < len(self._buffer):
            return np.full(len(far), np.nan)
        row, spread = self._buffer[-1], self._forecaster.spread_
        return self._forecaster._larger((row - near) / spread[0], (row - self._waiting[0]) / spread[1])

    def state(self) -> State:
        """Return the buffer and the forecasts that wait."""
        return {**super().state(), "waiting": self._waiting.copy()}

    def restore(self, state: State, /) -> None:
        """Continue from a state."""
        super().restore(state)
        self._waiting[:] = state["waiting"]


class NeuralForecaster(NeuralDetector[Network]):
    """A neural detector whose points are scaled forecast errors.

    See the module docstring.
    """

    lookahead: int = integer(
        1,
        at_least=1,
        doc="Forecast every row a second time, this many rows ahead; the point is the larger error. 1: once.",
    )
    anchor: str = choice(
        "mean", of=ANCHORS, doc="What a window is measured from: its mean, its last value, or nothing."
    )
    units: str = choice(
        "spread",
        of=("spread", "range"),
        doc="What an error is measured in: its own spread on the training rows, or the unit of scaling, as in the paper.",
    )

    traits: ClassVar[Traits] = replace(
        NeuralDetector.traits, points_are_channels=True, fault_kind="forecast error", retired={"horizon": 1, "aggregation": "mean"}
    )  # fmt: skip
    clip: ClassVar[float] = 1e6  # the anchor takes the level out; deviations are clipped by DEVIATION

    spread_: Array = learned("L, C")  # (leads, C)

    def _leads(self) -> tuple[int, ...]:
        """How many rows ahead each forecast of a pass is."""
        return (1, self.lookahead) if self.lookahead > 1 else (1,)

    def _rows(self) -> int:
        return super()._rows() + max(self._leads())

    def _minimum_rows(self) -> int:
        return self._rows() + 1

    # ------------------------------------------------------------------ training

    def _anchored(self, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Windows ``(b, L, C)`` and targets ``(b, leads, C)`` of a batch, measured from the windows' anchors."""
        window = batch[:, : self.window]
        target = batch[:, [self.window + lead - 1 for lead in self._leads()]]
        if self.anchor == "none":
            return window, target
        base = window.mean(dim=1, keepdim=True) if self.anchor == "mean" else window[:, -1:]  # (b, 1, C)
        return window - base, target - base

    def _loss(self, network: Network, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        window, target = self._anchored(batch)
        return torch.nn.functional.mse_loss(network(window), target)

    def _anchored_windows(self, windows: torch.Tensor) -> torch.Tensor:
        return windows  # the anchor is that of the rows before the target: see _anchored

    def _fit(self, parts: Sequence[Array], *, checkpoint: Path | None = None, resume: bool = False) -> None:
        super()._fit(parts, checkpoint=checkpoint, resume=resume)
        self._adapt(parts)

    def _adapt(self, parts: Sequence[Array]) -> None:
        if self.units == "range":
            self.spread_ = np.tile(self.span_, (len(self._leads()), 1))
            return
        residuals = np.concatenate([self._window_residuals(part, every=self.stride) for part in parts])  # (n, leads, C)
        residuals = residuals[~np.isnan(residuals).any(axis=(1, 2))]
        self.spread_ = np.stack([residual_spread(one, parts) for one in residuals.transpose(1, 0, 2)])

    # ------------------------------------------------------------------ scoring

    def _live_session(self) -> Callable[[Singles], Singles] | None:
        """A quicker way for the network to answer one window, prepared once.

        None: there is none.
        """
        return None

    def _network_forecast(self, deviations: Singles, *, live: bool = False) -> Singles:
        """What the network says ``(b, leads, C)`` to deviations from the anchor ``(b, L, C)``."""
        session = self._live_session() if live and len(deviations) == 1 else None
        if session is not None:
            return session(deviations)
        with torch.inference_mode(), threads_for(self.network_):
            forecast = self.network_(torch.from_numpy(deviations).to(self._device))
            return np.asarray(forecast.cpu().numpy())

    def _forecast_windows(self, windows: Array, *, live: bool = False) -> Array:
        """Forecasts ``(b, leads, C)`` of windows ``(b, L, C)``, in the units of the series; ``live``: as rows arrive."""
        if self.anchor == "mean":
            base = windows.mean(axis=1, keepdims=True)  # (b, 1, C)
        else:
            base = windows[:, -1:] if self.anchor == "last" else self.low_[None, None]
        deviations = np.clip((windows - base) / self.span_, -DEVIATION, DEVIATION).astype(np.float32)
        return np.asarray(base + self.span_ * self._network_forecast(deviations, live=live))

    def _residual_blocks(self, part: Array, *, every: int) -> Iterator[tuple[int, Array]]:
        """Windows at every so many rows, block by block: the first's number, and observed minus forecast ``(b, leads, C)``.

        A row beyond the end of the part has not been observed: NaN.
        """
        if len(part) <= self.window:
            return
        ahead = np.array(self._leads()) - 1
        windows = sliding_window_view(part[:-1], self.window, axis=0)[::every]  # (n, C, L), a view
        for first in range(0, len(windows), self.score_batch):
            block = np.ascontiguousarray(windows[first : first + self.score_batch].transpose(0, 2, 1))  # (b, L, C)
            rows = self.window + every * np.arange(first, first + len(block))[:, None] + ahead  # (b, leads)
            observed = np.where((rows < len(part))[..., None], part[np.minimum(rows, len(part) - 1)], np.nan)
            yield first, observed - self._forecast_windows(block)

    def _window_residuals(self, part: Array, *, every: int) -> Array:
        """Observed minus forecast ``(n, leads, C)`` for a window at every so many rows."""
        blocks = [block for _, block in self._residual_blocks(part, every=every)]
        return np.concatenate([np.empty((0, len(self._leads()), part.shape[1])), *blocks])

    @staticmethod
    def _larger(near: Array, far: Array) -> Array:
        """The point of a row that was forecast twice: the size of the larger error of each channel."""
        return np.asarray(np.maximum(np.abs(near), np.abs(far)))

    def _points(self, part: Array) -> Array:
        points = np.full(part.shape, np.nan)
        wait = self.lookahead - 1  # rows between a window's two targets
        for first, block in self._residual_blocks(part, every=1):
            start, stop = self.window + first, self.window + first + len(block)
            near = block[:, 0] / self.spread_[0]
            if wait:
                far = block[:, 1] / self.spread_[1]
                points[start + wait : stop + wait] = far[: max(0, len(part) - start - wait)]
                near = self._larger(near, points[start:stop])  # NaN: no far forecast
            points[start:stop] = near
        return points

    def _points_of_windows(self, windows: Array) -> Array:
        observed = windows[:, -1]
        errors = []
        for place, lead in enumerate(self._leads()):
            stop = windows.shape[1] - lead  # the window ends this many rows before the newest
            seen = windows[:, stop - self.window : stop]
            forecast = [
                self._forecast_windows(seen[first : first + self.score_batch], live=True)[:, place]
                for first in range(0, len(seen), self.score_batch)
            ]
            errors.append((observed - np.concatenate(forecast)) / self.spread_[place])
        return np.asarray(self._larger(*errors) if len(errors) == 2 else errors[0])

    def _answers(self, windows: Array) -> Array:
        if self.lookahead == 1:
            return super()._answers(windows)
        blocks = [windows[first : first + self.score_batch] for first in range(0, len(windows), self.score_batch)]
        return np.concatenate([self._forecast_windows(block, live=True) for block in blocks])

    def _window_points(self, network: Network, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        raise NotImplementedError("a forecaster scores residuals, not windows")

    def _stream(self) -> Stream:
        self._live_session()  # made now, not when the first row arrives
        if self.lookahead > 1:
            return LookaheadStream(self, self._rows() - 1)
        return WindowStream(self, self.window)

    def aggregate(self, points: Array) -> Array:
        """The mean of the squared residuals."""
        return np.asarray(np.einsum("tc,tc->t", points, points) / points.shape[1])  # no copy of points

    def _explain(self, row: Array, point: Array) -> Explanation:
        why = super()._explain(row, point)
        if self.lookahead > 1:  # which of two forecasts the error belongs to is not in the point
            return why
        return replace(why, expected=row - point * self.spread_[0], spread=self.spread_[0])

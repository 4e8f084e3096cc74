"""Anomaly Transformer: reconstruction error, weighted by how little an instant's attention differs from mere nearness.

Xu, Wu, Wang, Long, "Anomaly Transformer: Time Series Anomaly Detection with Association Discrepancy", ICLR 2022. The network
is in :mod:`tisat.nn.anomaly_transformer`. Equation and section numbers are the paper's.

The published score (eq. (6)) is a softmax over the rows of a window, computed for all rows of windows laid end to end: a
row's score depends on later rows, and on where the window was laid. Here the window of instant t ends at t and only its
last row is scored; the published form is :meth:`AnomalyTransformer.published_scores`. This module knows no thresholds; the
authors' program takes its threshold from the test scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tisat._extras import require
from tisat._validation import check_integer, check_real
from tisat.base import Array
from tisat.detectors._neural import Batches, Optimizers
from tisat.detectors._preset import PresetDetector
from tisat.errors import ParameterError
from tisat.missing import usable_parts

if TYPE_CHECKING:
    import torch

    from tisat.nn.anomaly_transformer import AnomalyTransformerNetwork
else:
    torch = require("torch", whose="AnomalyTransformer")

SMALLEST_SPREAD = 0.01  # of a channel's training range: a channel that hardly moves is not blown up further


class AnomalyTransformer(PresetDetector):
    """Squared reconstruction error of the newest row times its softmax of the negative association discrepancy.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. ``"paper"``: section 4 (window 100, 3 layers of 512 channels and 8 heads,
        Adam at 1e-4, batches of 32, at most 10 epochs). ``"compact"``: the same network, narrower, on every other window.
    window : int
        Rows the network sees.
    width, n_heads, n_layers, feed_forward : int
        Channels of the model, heads, layers, and channels of the feed-forward networks.
    discrepancy : float
        lambda in eqs. (4) and (5): the weight of the discrepancy against the reconstruction.
    temperature : float
        Multiplies the discrepancy inside the softmax of eq. (6); the paper has none (1), the authors' program 50.
    dropout : float
    epochs, batch_size, learning_rate, stride, validation, patience, device, random_state
        Of training; see ``docs/detectors/anomaly-transformer.md``. 0 epochs give the untrained network.

    Notes
    -----
    Score: eq. (6) at the last row of the window that ends at t. A point holds the error of each channel, times the square
    root of that weight, so that its mean of squares is the score. Training: both phases of eq. (5) in one step, their
    gradients added, as in the authors' program. Early stopping watches the reconstruction error, the one part that is not a
    game.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.sin(np.arange(400)[:, None] / np.array([5.0, 7.0]))
    >>> detector = AnomalyTransformer(window=16, width=16, n_heads=2, n_layers=1, epochs=1).fit(train)
    >>> sorted(detector.history_[0])
    ['discrepancy', 'epoch', 'loss', 'reconstruction', 'validation']
    """

    points_are_channels = True
    rounding = 1e-3
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {
            "window": 50, "width": 32, "n_heads": 4, "feed_forward": 64, "epochs": 10, "batch_size": 32,
            "learning_rate": 1e-3, "stride": 2,
        },
        "paper": {
            "window": 100, "width": 512, "n_heads": 8, "feed_forward": 512, "epochs": 10, "batch_size": 32,
            "learning_rate": 1e-4, "stride": 1,
        },
    }  # fmt: skip

    window: Any
    width: Any
    n_heads: Any
    feed_forward: Any
    epochs: Any
    batch_size: Any
    learning_rate: Any
    stride: Any

    def __init__(
        self,
        *,
        preset: str = "compact",
        window: int | None = None,
        width: int | None = None,
        n_heads: int | None = None,
        n_layers: int = 3,
        feed_forward: int | None = None,
        discrepancy: float = 3.0,
        temperature: float = 1.0,
        dropout: float = 0.0,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        stride: int | None = None,
        validation: float = 0.1,
        patience: int = 3,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.window = window
        self.width = width
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.feed_forward = feed_forward
        self.discrepancy = discrepancy
        self.temperature = temperature
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.stride = stride
        self.validation = validation
        self.patience = patience
        self.device = device
        self.random_state = random_state

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {
            "window": 10, "width": 8, "n_heads": 2, "n_layers": 2, "feed_forward": 8, "epochs": 2, "stride": 4,
            "learning_rate": 1e-2,
        }  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whose = type(self).__name__
        for name in ("width", "n_heads", "n_layers", "feed_forward"):
            check_integer(getattr(self, name), name, whose, minimum=1)
        if self.width % self.n_heads:
            raise ParameterError(
                f"The 'width' parameter of {whose} must be a multiple of its {self.n_heads} heads. Got {self.width} instead."
            )
        check_real(self.discrepancy, "discrepancy", whose, at_least=0.0)
        check_real(self.temperature, "temperature", whose, at_least=0.0)
        check_real(self.dropout, "dropout", whose, at_least=0.0, below=1.0)

    def published_scores(self, series: Any) -> Array:
        """Scores ``(T,)`` as published: windows laid end to end, every row scored within its window, with its future.

        A row's score depends on up to ``window - 1`` later rows and changes with the first row of the series, so it cannot
        raise alarms: it is here to compare with other implementations. The last rows, where no whole window is left, are
        scored in the window that ends with the series; stretches shorter than a window score NaN.
        """
        checked = self._check_scoring(series)
        scores = np.full(len(checked), np.nan)
        for rows, part in usable_parts(checked):
            if len(part) < self.window:
                continue
            starts = [*range(0, len(part) - self.window + 1, self.window), len(part) - self.window]
            for start in starts:
                window = self._scaled(part[start : start + self.window])[None]
                with torch.no_grad():
                    weights, errors = self._weights_and_errors(self.network_, window)  # type: ignore[arg-type]
                found = (weights * (errors**2).mean(dim=-1))[0].cpu().numpy()
                where = slice(rows.start + start, rows.start + start + self.window)
                scores[where] = np.where(np.isnan(scores[where]), found, scores[where])
        return scores

    def _network(self, n_channels: int) -> torch.nn.Module:
        from tisat.nn.anomaly_transformer import AnomalyTransformerNetwork

        return AnomalyTransformerNetwork(
            n_channels,
            window=self.window,
            width=self.width,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            feed_forward=self.feed_forward,
            dropout=self.dropout,
        )

    def _before_training(self, network: AnomalyTransformerNetwork, batches: Batches) -> None:  # type: ignore[override]
        """Centre and spread of the channels over the training windows; a channel that never moved keeps its unit."""
        total, squares, count = torch.zeros_like(network.centre), torch.zeros_like(network.centre), 0
        for batch in batches():
            total += batch.sum(dim=(0, 1))
            count += batch.shape[0] * batch.shape[1]
        network.centre.copy_(total / count)
        for batch in batches():
            squares += ((batch - network.centre) ** 2).sum(dim=(0, 1))
        spread = (squares / count).sqrt()
        still = spread < 1e-6
        network.scale.copy_(torch.where(still, torch.ones_like(spread), spread.clamp(min=SMALLEST_SPREAD)))

    def _reconstruction_error(
        self, network: AnomalyTransformerNetwork, batch: torch.Tensor
    ) -> tuple[Any, torch.Tensor]:
        windows = network.standardised(batch)
        found = network(windows)
        return found.associations, windows - found.values

    def _loss(  # type: ignore[override]
        self, network: AnomalyTransformerNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        return (self._reconstruction_error(network, batch)[1] ** 2).mean()

    def _training_step(  # type: ignore[override]
        self,
        network: AnomalyTransformerNetwork,
        batch: torch.Tensor,
        optimizers: Optimizers,
        generator: torch.Generator,
    ) -> dict[str, torch.Tensor]:
        from tisat.nn.anomaly_transformer import discrepancy

        associations, errors = self._reconstruction_error(network, batch)
        reconstruction = (errors**2).mean()
        closer = discrepancy(associations, of="prior").mean()  # P is drawn to S
        farther = discrepancy(associations, of="series").mean()  # S is pushed away from P
        minimise = reconstruction + self.discrepancy * closer  # eq. (5), first line: L with -lambda
        maximise = reconstruction - self.discrepancy * farther  # eq. (5), second line: L with lambda, eq. (4)
        self._descend(optimizers["all"], minimise + maximise)
        return {"loss": maximise, "reconstruction": reconstruction, "discrepancy": closer}

    def _weights_and_errors(
        self, network: AnomalyTransformerNetwork, batch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The softmax of eq. (6), ``(b, T)``, and the errors ``(b, T, C)``."""
        from tisat.nn.anomaly_transformer import discrepancy

        associations, errors = self._reconstruction_error(network, batch)
        return torch.softmax(-self.temperature * discrepancy(associations), dim=-1), errors

    def _window_points(  # type: ignore[override]
        self, network: AnomalyTransformerNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        weights, errors = self._weights_and_errors(network, batch)
        return weights[:, -1:].sqrt() * errors[:, -1]  # squares: eq. (6) of the last row, channel by channel

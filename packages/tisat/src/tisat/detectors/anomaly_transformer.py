"""Anomaly Transformer: reconstruction error, weighted by how little a row's attention differs from mere nearness.

Xu, Wu, Wang, Long, "Anomaly Transformer: Time Series Anomaly Detection with Association Discrepancy", ICLR 2022. The network
is in :mod:`tisat.detectors.networks.anomaly_transformer`. Equation and section numbers are the paper's.

The published score (eq. (6)) is a softmax over the rows of a window, computed for all rows of windows laid end to end: a
row's score depends on later rows, and on where the window was laid. Here the window of row t ends at t and only its
last row is scored; the published form is :meth:`AnomalyTransformer.published_scores`. This module knows no thresholds; the
authors' program takes its threshold from the test scores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Batches, Optimizers
from tisat.detectors.base import Array, Traits
from tisat.detectors.networks import torch
from tisat.detectors.networks.anomaly_transformer import AnomalyTransformerNetwork, discrepancy
from tisat.errors import ParameterError
from tisat.gap_filling import usable_parts
from tisat.series import SeriesLike
from tisat.utils.parameters import integer, presets, real
from tisat.utils.types import Params
from tisat.watch.protocols import check_series

SMALLEST_SPREAD = 0.01  # of a channel's training range: a channel that hardly moves is not blown up further


class AnomalyTransformer(NeuralDetector[AnomalyTransformerNetwork]):
    """Squared reconstruction error of the newest row times its softmax of the negative association discrepancy.

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

    preset: str = presets(compact="sizes for two CPU cores", paper="section 4 of the paper")

    window: int = integer(compact=50, paper=100)
    width: int = integer(compact=32, paper=512, at_least=1, doc="Channels of the model.")
    n_heads: int = integer(compact=4, paper=8, at_least=1, doc="Attention heads.")
    n_layers: int = integer(3, at_least=1, doc="Layers.")
    feed_forward: int = integer(compact=64, paper=512, at_least=1, doc="Channels of the feed-forward networks.")
    discrepancy: float = real(
        3.0, at_least=0.0, doc="lambda in eqs. (4) and (5): the weight of the discrepancy against the reconstruction."
    )
    temperature: float = real(
        1.0,
        at_least=0.0,
        doc="Multiplies the mean discrepancy of the layers inside the softmax of eq. (6). The paper has none (1); "
        "the authors' program multiplies the sum over layers by 50: 50 x n_layers here.",
    )
    dropout: float = real(0.0, at_least=0.0, below=1.0, doc="Share of units left out in training.")
    epochs: int = integer(10)
    batch_size: int = integer(32)
    learning_rate: float = real(compact=1e-3, paper=1e-4)
    decay: float = real(compact=1.0, paper=0.5)
    stride: int = integer(compact=2, paper=1)
    gradient_clip: float | None = real(compact=1.0, paper=None, none="not clipped")

    traits: ClassVar[Traits] = replace(NeuralDetector.traits, points_are_channels=True)

    @classmethod
    def _test_params(cls) -> Params:
        return {
            "window": 10, "width": 8, "n_heads": 2, "n_layers": 2, "feed_forward": 8, "epochs": 2, "stride": 4,
            "learning_rate": 1e-2,
        }  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.width % self.n_heads:
            raise ParameterError(
                f"The 'width' parameter of {type(self).__name__} must be a multiple of its {self.n_heads} heads. Got {self.width} instead."
            )

    def published_scores(self, series: SeriesLike) -> Array:
        """Scores ``(T,)`` as published: windows laid end to end, every row scored within its window, with its future.

        A row's score depends on up to ``window - 1`` later rows and changes with the first row of the series, so it cannot
        raise alarms: it is here to compare with other implementations. The last rows, where no whole window is left, are
        scored in the window that ends with the series; stretches shorter than a window score NaN.
        """
        checked = check_series(self, series)
        scores = np.full(len(checked), np.nan)
        for rows, part in usable_parts(checked):
            if len(part) < self.window:
                continue
            starts = [*range(0, len(part) - self.window + 1, self.window), len(part) - self.window]
            for start in starts:
                window = self._scaled(part[start : start + self.window])[None]
                with torch.no_grad():
                    weights, errors = self._weights_and_errors(self.network_, window)
                found = (weights * (errors**2).mean(dim=-1))[0].cpu().numpy()
                where = slice(rows.start + start, rows.start + start + self.window)
                scores[where] = np.where(np.isnan(scores[where]), found, scores[where])
        return scores

    def _network(self, n_channels: int) -> AnomalyTransformerNetwork:
        return AnomalyTransformerNetwork(
            n_channels,
            window=self.window,
            width=self.width,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            feed_forward=self.feed_forward,
            dropout=self.dropout,
        )

    def _before_training(self, network: AnomalyTransformerNetwork, batches: Batches) -> None:
        """Centre and spread of the channels over the training windows.

        A channel that never moved keeps its unit.
        """
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

    def _loss(
        self, network: AnomalyTransformerNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        return (self._reconstruction_error(network, batch)[1] ** 2).mean()

    def _training_step(
        self,
        network: AnomalyTransformerNetwork,
        batch: torch.Tensor,
        optimizers: Optimizers,
        generator: torch.Generator,
    ) -> dict[str, torch.Tensor]:
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
        associations, errors = self._reconstruction_error(network, batch)
        return torch.softmax(-self.temperature * discrepancy(associations), dim=-1), errors

    def _window_points(
        self, network: AnomalyTransformerNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        weights, errors = self._weights_and_errors(network, batch)
        return weights[:, -1:].sqrt() * errors[:, -1]  # squares: eq. (6) of the last row, channel by channel

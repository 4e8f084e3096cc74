"""Base of the variational detectors: log-densities as points.

A log-density has no natural zero: it changes sign with the unit of the data, so a score made of it could not be compared
with a normal level. Measured from the highest density the decoder can give (its smallest standard deviation, hit
exactly) it is never negative, and ranks rows as before. This module knows no network.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from itertools import islice
from typing import ClassVar

from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Batches, Losses, Network, Optimizers
from tisat.detectors.base import Traits
from tisat.detectors.networks import torch
from tisat.errors import TrainingError
from tisat.utils.parameters import integer, presets, real


def deviance_residuals(log_density: torch.Tensor, *, floor: float) -> torch.Tensor:
    """Points whose squares are twice how far each log-density lies below the highest a deviation >= ``floor`` allows.

    The mean of squares over the channels is then an increasing function of the negative log-likelihood of the row.
    """
    highest = -math.log(floor) - 0.5 * math.log(2 * math.pi)
    return torch.sqrt(2 * (highest - log_density).clamp(min=0.0))


def check_divergence(estimates: torch.Tensor, *, whose: str) -> None:
    """Refuse a posterior whose KL divergence from the prior is negative beyond the noise of its estimates ``(n,)``."""
    if len(estimates) < 2:
        return
    mean = float(estimates.mean())
    error = float(estimates.std()) / math.sqrt(len(estimates))
    if not math.isfinite(mean) or mean + 6 * error < -1e-3 * (1 + abs(mean)):
        raise TrainingError(
            f"The KL divergence of {whose} must be finite and not negative. Got {mean:.4g} +- {error:.2g} over "
            f"{len(estimates)} training windows: its densities do not belong to its samples; lower learning_rate."
        )


class VariationalDetector(NeuralDetector[Network]):
    """A neural detector that maximises an evidence bound.

    A subclass writes its two halves.
    """

    preset: str = presets(compact="sizes for two CPU cores", paper="the authors' configuration")
    dense: int = integer(compact=32, paper=500, at_least=1, doc="Units of the dense layers.")
    weight_decay: float = 1e-4
    learning_rate: float = real(compact=3e-3, paper=1e-3)
    stride: int = integer(compact=2, paper=1)
    validation: float = real(compact=0.1, paper=0.3)
    patience: int = 5
    gradient_clip: float | None = 10.0

    traits: ClassVar[Traits] = replace(NeuralDetector.traits, points_are_channels=True)

    @abstractmethod
    def _halves(
        self, network: Network, batch: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log p(x | z) and the divergence, ``(b,)`` each, per row."""

    def _loss(self, network: Network, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        likelihood, divergence = self._halves(network, batch, generator)
        return (divergence - likelihood).mean()  # the bound, negated

    def _training_step(
        self, network: Network, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> Losses:
        likelihood, divergence = (half.mean() for half in self._halves(network, batch, generator))
        loss = divergence - likelihood
        self._descend(optimizers["all"], loss)
        return {"loss": loss, "likelihood": likelihood, "divergence": divergence}

    def _after_training(self, network: Network, batches: Batches) -> None:
        generator = torch.Generator(device=self._device).manual_seed(self.random_state)
        estimates = [self._halves(network, batch, generator)[1] for batch in islice(batches(), 8)]
        check_divergence(torch.cat(estimates), whose=type(self).__name__)

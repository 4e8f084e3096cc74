"""The network of the LSTM-VAE: encoder and decoder along time, the prior that moves with them, the expected score.

Park, Hoshi, Kemp, "A Multimodal Anomaly Detector for Robot-Assisted Feeding Using an LSTM-Based Variational Autoencoder",
IEEE RA-L 2018. This module knows no training.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional

# b batch, t time, c channel, z latent state, s support vector

SUPPORT = 500  # latent states the state-based threshold is learned from
LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def divergence(mean: torch.Tensor, variance: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """KL of N(mean, variance) from N(centre, 1), summed over the latent axis: the progress-based regulariser.

    Examples
    --------
    >>> float(divergence(torch.ones(3), torch.ones(3), torch.ones(3)))
    0.0
    """
    return 0.5 * (variance + (centre - mean) ** 2 - 1.0 - torch.log(variance)).sum(dim=-1)


def negative_log_likelihood(rows: torch.Tensor, mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
    """``-log N(x; mu, sigma²)`` of each channel."""
    return 0.5 * ((rows - mean) / spread) ** 2 + torch.log(spread) + LOG_ROOT_2PI


class VariationalLSTM(torch.nn.Module):
    """Encoder, decoder, prior, and the support vectors of the state-based threshold."""

    support: torch.Tensor  # (s, z) latent states
    coefficients: torch.Tensor  # (s,) 0 where there is no support vector
    intercept: torch.Tensor  # ()
    gamma: torch.Tensor  # () of the radial kernel

    def __init__(self, n_channels: int, hidden: int, latent: int, smallest_spread: float) -> None:
        super().__init__()
        self.smallest_spread = smallest_spread
        self.encoder = torch.nn.LSTM(n_channels, hidden, batch_first=True)
        self.to_latent = torch.nn.Linear(hidden, 2 * latent)
        self.decoder = torch.nn.LSTM(latent, hidden, batch_first=True)
        self.to_rows = torch.nn.Linear(hidden, 2 * n_channels)
        self.first = torch.nn.Parameter(torch.full((latent,), -0.5))  # p_1, the prior's centre when a window begins
        self.last = torch.nn.Parameter(torch.full((latent,), 0.5))  # p_T, when it ends
        self.register_buffer("support", torch.zeros(SUPPORT, latent))
        self.register_buffer("coefficients", torch.zeros(SUPPORT))
        self.register_buffer("intercept", torch.zeros(()))
        self.register_buffer("gamma", torch.ones(()))

    def prior(self, length: int) -> torch.Tensor:
        """Centres ``(t, z)`` of the prior: from p_1 to p_T in a straight line."""
        progress = torch.linspace(0.0, 1.0, length, device=self.first.device)[:, None]
        return (1 - progress) * self.first + progress * self.last

    def encode(self, windows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance ``(b, t, z)`` of the latent state."""
        mean, raw = self.to_latent(self.encoder(windows)[0]).chunk(2, dim=-1)
        return mean, functional.softplus(raw) + 1e-6

    def decode(self, latent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation ``(b, t, c)`` of the rows."""
        mean, raw = self.to_rows(self.decoder(latent)[0]).chunk(2, dim=-1)
        return mean, functional.softplus(raw) + self.smallest_spread

    def expected(self, latent: torch.Tensor) -> torch.Tensor:
        """The score to expect in each latent state ``(b, z)``, ``(b,)``: support vector regression."""
        kernel = torch.exp(-self.gamma * torch.cdist(latent, self.support) ** 2)  # (b, s)
        return kernel @ self.coefficients + self.intercept

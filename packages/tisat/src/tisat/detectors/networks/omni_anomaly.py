"""The network of OmniAnomaly: a GRU variational autoencoder whose latent variables are tied in time, twice.

Legend: b windows, n samples, T rows, C channels, h width of the GRU, d latent variables.

In the posterior the Gaussian of z_t is told z_{t-1} (stochastic variable connection) and its sample is bent by planar
flows; in the prior the z_t follow a linear Gaussian state-space model. Noise comes from outside: the same noise for all
windows gives points that do not depend on their neighbours in a batch. This module knows no training and no scores.

Paper: Su, Zhao, Niu, Liu, Sun, Pei: Robust Anomaly Detection for Multivariate Time Series through Stochastic Recurrent
Neural Network, KDD 2019, section 3. In the paper's text z_{t-1} could be read as before or after the flows; here, as in
the authors' program, the recursion runs on the Gaussian samples and the flows bend the whole sequence afterwards.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tisat.detectors.networks.flows import PlanarFlow
from tisat.detectors.networks.state_space import LinearGaussianStateSpace


def gaussian_log_density(value: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Log-density of each entry under its own Gaussian."""
    return -0.5 * ((value - mean) / deviation) ** 2 - deviation.log() - 0.5 * math.log(2 * math.pi)


class Posterior(NamedTuple):
    """A sample of the latent sequence and its log-density."""

    z: Tensor  # (..., T, d), after the flows
    log_q: Tensor  # (...), log q(z | x)


class OmniAnomalyNetwork(nn.Module):
    """Windows ``(b, T, C)`` and noise ``(..., T, d)`` -> latent samples -> the Gaussian of every value."""

    def __init__(self, n_channels: int, *, hidden: int, dense: int, latent: int, n_flows: int, floor: float) -> None:
        super().__init__()
        self.floor = floor  # epsilon, the smallest standard deviation
        self.encoder = nn.GRU(n_channels, hidden, batch_first=True)
        self.posterior_input = nn.Linear(hidden, dense)  # f_phi([z_{t-1}, e_t]): its part in e_t
        self.posterior_memory = nn.Linear(latent, dense, bias=False)  # and its part in z_{t-1}
        self.posterior_second = nn.Linear(dense, dense)  # f_phi has two dense layers in the authors' program
        self.z_mean_and_deviation = nn.Linear(dense, 2 * latent)
        self.flow = PlanarFlow(latent, n_layers=n_flows)
        self.prior = LinearGaussianStateSpace(latent)
        self.decoder = nn.GRU(latent, hidden, batch_first=True)
        self.decoder_dense = nn.Sequential(nn.Linear(hidden, dense), nn.ReLU(), nn.Linear(dense, dense))  # f_theta
        self.x_mean = nn.Linear(dense, n_channels)
        self.x_deviation = nn.Linear(dense, n_channels)

    def encode(self, windows: Tensor, noise: Tensor) -> Posterior:
        """A sample of q(z | x) for every window, one for every leading index of ``noise``."""
        states, _ = self.encoder(windows)  # (b, T, h): e_t
        features = self.posterior_input(states)
        z = torch.zeros_like(
            self.z_mean_and_deviation(features[..., 0, :]).chunk(2, dim=-1)[0] * noise[..., 0, :]
        )  # (..., b, d)
        samples, deviations = [], []
        for t in range(windows.shape[1]):
            both = torch.relu(features[..., t, :] + self.posterior_memory(z))  # f_phi([z_{t-1}, e_t])
            both = torch.relu(self.posterior_second(both))
            mean, raw = self.z_mean_and_deviation(both).chunk(2, dim=-1)
            deviation = functional.softplus(raw) + self.floor
            z = mean + deviation * noise[..., t, :]  # z_t^0
            samples.append(z)
            deviations.append(deviation)
        bent, log_det = self.flow(torch.stack(samples, dim=-2))  # z_t^K
        white = -0.5 * (noise**2 + math.log(2 * math.pi))  # (z - mean) / deviation is the noise itself
        log_q = (white - torch.stack(deviations, dim=-2).log()).sum(dim=(-2, -1)) - log_det.sum(dim=-1)
        return Posterior(bent, log_q)

    def decode(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation ``(..., T, C)`` of the values, given latent sequences ``(..., T, d)``."""
        states, _ = self.decoder(z.reshape(-1, *z.shape[-2:]))  # d_t
        both = torch.relu(self.decoder_dense(states.reshape(*z.shape[:-1], -1)))  # f_theta
        return self.x_mean(both), functional.softplus(self.x_deviation(both)) + self.floor

    def evidence_bound(self, windows: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The two halves of the ELBO, ``(b,)`` each: log p(x | z), and log q(z | x) - log p(z), which estimates a KL."""
        posterior = self.encode(windows, noise)
        log_x = gaussian_log_density(windows, *self.decode(posterior.z)).sum(dim=(-2, -1))
        return log_x, posterior.log_q - self.prior.log_prob(posterior.z)  # less the prior

"""The network of InterFusion: a hierarchical variational autoencoder that compresses a window along time, then along channels.

Legend: b windows, n samples, T rows, S rows after compression, C channels, h width of the recurrent and dense layers, d latent
variables a row.

Two views of one window. **z2** ``(S, C)`` is short in time: convolutions with strides squeeze the window to a few rows.
What it remembers, unfolded again, is the prefiltered window **d** ``(T, C)``. **z1** ``(T, d)`` is narrow in channels: a
few numbers a row that say how the channels of d stand to each other, each told its predecessor. z1 is inferred from d,
not from the window itself, so that what z2 has filtered out cannot return (the paper calls it prefiltering).

    q(z2 | x)    q(z1 | z2): recurrent from the last row backwards, then RealNVP
    p(z2) = N(0, I)    p(z1 | z2): recurrent    p(x | z1, z2)

This module knows no training and no scores; :func:`impute` is the MCMC step that scoring uses.

Paper: Li, Zhao, Han, Su, Jiao, Wen, Pei: Multivariate Time Series Anomaly Detection and Interpretation using Hierarchical
Inter-Metric and Temporal Embedding, KDD 2021, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tisat.detectors.networks.flows import CouplingFlow
from tisat.detectors.networks.omni_anomaly import gaussian_log_density

STRIDES = (2, 1, 2, 1, 2)  # of the convolutions; the window is squeezed 8-fold
WIDTH = 5  # of the convolutions
SMALLEST, LARGEST = -5.0, 2.0  # logarithm of any standard deviation


def squeezed_lengths(window: int) -> list[int]:
    """Rows before each convolution and after the last.

    Examples
    --------
    >>> squeezed_lengths(100)
    [100, 50, 50, 25, 25, 13]
    """
    lengths = [window]
    for stride in STRIDES:
        lengths.append(-(-lengths[-1] // stride))
    return lengths


class Gaussian(nn.Module):
    """A linear layer that gives the mean and the bounded standard deviation of ``size`` values."""

    def __init__(self, n_inputs: int, size: int) -> None:
        super().__init__()
        self.both = nn.Linear(n_inputs, 2 * size)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Means and deviations ``(..., size)``."""
        mean, log_deviation = self.both(inputs).chunk(2, dim=-1)
        return mean, log_deviation.clamp(SMALLEST, LARGEST).exp()


class TimeEncoder(nn.Module):
    """q(z2 | x): a window ``(..., T, C)`` to the Gaussian of its squeezed form ``(..., S, C)``."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv1d(n_channels, n_channels, WIDTH, stride=stride, padding=WIDTH // 2) for stride in STRIDES
        )
        self.head = Gaussian(n_channels, n_channels)

    def forward(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Means and deviations ``(..., S, C)``."""
        hidden = windows.reshape(-1, *windows.shape[-2:]).transpose(1, 2)
        for layer in self.layers:
            hidden = functional.leaky_relu(layer(hidden), 0.2)
        mean, deviation = self.head(hidden.transpose(1, 2).reshape(*windows.shape[:-2], *hidden.shape[:0:-1]))
        return mean, deviation


class Unfolding(nn.ConvTranspose1d):
    """A transposed convolution of stride 1 or 2, ``(b, C, S)`` -> ``(b, C, length)``, done as a plain one.

    PyTorch's own runs in a slow loop on processors. Its even and odd results each are a convolution of the short rows with
    every second weight; both are taken at once and put side by side.

    Examples
    --------
    >>> rows, unfolding = torch.randn(2, 3, 5), Unfolding(3, stride=2, short=5, long=10)
    >>> torch.allclose(unfolding(rows), nn.ConvTranspose1d.forward(unfolding, rows), atol=1e-6)
    True
    """

    def __init__(self, n_channels: int, *, stride: int, short: int, long: int) -> None:
        extra = long - ((short - 1) * stride + 1)
        super().__init__(n_channels, n_channels, WIDTH, stride=stride, padding=WIDTH // 2, output_padding=extra)
        self.length = long

    def forward(self, rows: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Short rows unfolded; ``output_size`` is PyTorch's argument and not used."""
        taps = self.weight.permute(1, 0, 2).flip(-1)  # (C, C, 5): the last weight meets the earliest row
        if self.stride == (1,):
            return functional.conv1d(rows, taps, self.bias, padding=WIDTH // 2)
        assert self.bias is not None
        even, odd = taps[..., 0::2], functional.pad(taps[..., 1::2], (1, 0))
        weight, bias = torch.stack([even, odd], dim=1).flatten(0, 1), self.bias.repeat_interleave(2)
        both = functional.conv1d(rows, weight, bias, padding=1)
        return both.reshape(len(rows), -1, 2, rows.shape[-1]).transpose(2, 3).flatten(2)[..., : self.length]


class TimeDecoder(nn.Module):
    """d: the squeezed form ``(..., S, C)`` unfolded to a prefiltered window ``(..., T, C)``; shared by q and p."""

    def __init__(self, n_channels: int, *, window: int) -> None:
        super().__init__()
        lengths = squeezed_lengths(window)[::-1]
        self.layers = nn.ModuleList(
            Unfolding(n_channels, stride=stride, short=short, long=long)
            for stride, short, long in zip(STRIDES[::-1], lengths, lengths[1:], strict=False)
        )

    def forward(self, squeezed: Tensor) -> Tensor:
        """Prefiltered windows ``(..., T, C)``."""
        hidden = squeezed.reshape(-1, *squeezed.shape[-2:]).transpose(1, 2)
        for layer in self.layers:
            hidden = functional.leaky_relu(layer(hidden), 0.2)
        return hidden.transpose(1, 2).reshape(*squeezed.shape[:-2], *hidden.shape[:0:-1])


class Noise(NamedTuple):
    """Standard normal draws for one pass; leading axes broadcast against the windows'."""

    z2: Tensor  # (..., S, C)
    z1: Tensor  # (..., T, d)


class Latent(NamedTuple):
    """A sample of both views, with its log-density under the posterior."""

    z1: Tensor  # (..., T, d)
    z2: Tensor  # (..., S, C)
    filtered: Tensor  # (..., T, C): d
    log_q: Tensor  # (...)


class InterFusionNetwork(nn.Module):
    """Windows ``(b, T, C)`` and noise -> both views -> the Gaussian of every value."""

    def __init__(
        self, n_channels: int, *, window: int, hidden: int, dense: int, latent: int, n_flows: int, coupling: int
    ) -> None:
        super().__init__()
        self.shape = (squeezed_lengths(window)[-1], n_channels)  # of z2
        self.latent = latent
        self.time_encoder = TimeEncoder(n_channels)
        self.time_decoder = TimeDecoder(n_channels, window=window)
        self.first_stage = Gaussian(n_channels, n_channels)  # p(x | z2) of the first stage alone
        self.backwards = nn.GRU(n_channels, hidden, batch_first=True)
        self.feature = nn.Sequential(nn.Linear(hidden, dense), nn.ReLU(), nn.Linear(dense, dense), nn.ReLU())
        self.posterior = Gaussian(dense + latent, latent)  # q(z1_t | a_t, z1_{t-1})
        self.flow = CouplingFlow(latent, n_layers=n_flows, hidden=coupling)
        self.prior = Gaussian(n_channels + latent, latent)  # p(z1_t | d_t, z1_{t-1})
        self.widen = nn.Linear(latent, n_channels)
        self.body = nn.Sequential(nn.Linear(2 * n_channels, dense), nn.ReLU(), nn.Linear(dense, dense), nn.ReLU())
        self.value = Gaussian(dense, n_channels)  # p(x_t | z1_t, d_t)

    def noise(self, leading: tuple[int, ...], window: int, *, generator: torch.Generator) -> Noise:
        """Draws for windows with these leading axes.

        ``(n, 1)`` gives n samples, the same for every window.
        """
        device = self.widen.weight.device
        z2 = torch.randn(*leading, *self.shape, generator=generator, device=device)
        return Noise(z2, torch.randn(*leading, window, self.latent, generator=generator, device=device))

    def first_stage_parameters(self) -> list[nn.Parameter]:
        """Parameters of the first training stage: z2 and its decoder."""
        return [p for part in (self.time_encoder, self.time_decoder, self.first_stage) for p in part.parameters()]

    def first_stage_bound(self, windows: Tensor, noise: Tensor) -> Tensor:
        """ELBO ``(b,)`` of the autoencoder that has z2 alone."""
        mean, deviation = self.time_encoder(windows)
        z2 = mean + deviation * noise
        log_x = gaussian_log_density(windows, *self.first_stage(self.time_decoder(z2))).sum(dim=(-2, -1))
        zero, one = torch.zeros_like(z2), torch.ones_like(z2)
        divergence = gaussian_log_density(z2, mean, deviation) - gaussian_log_density(z2, zero, one)
        return log_x - divergence.sum(dim=(-2, -1))

    def encode(self, windows: Tensor, noise: Noise) -> Latent:
        """A sample of q(z1, z2 | x) for every window and every leading index of the noise."""
        (mean, deviation), z2, filtered, samples, logs = self._sampled(windows, noise)
        log_q = gaussian_log_density(z2, mean, deviation).sum(dim=(-2, -1))
        z1, log_det = self.flow(torch.stack(samples, dim=-2))
        white = gaussian_log_density(noise.z1, torch.zeros_like(noise.z1), torch.ones_like(noise.z1))
        log_q = log_q + (white - torch.stack(logs, dim=-2)).sum(dim=(-2, -1)) - log_det.sum(dim=-1)
        return Latent(z1, z2, filtered, log_q)

    def last_row(self, windows: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation ``(..., C)`` of the last row: ``decode(encode(...))`` without the other rows."""
        _, _, filtered, samples, _ = self._sampled(windows, noise)
        z1, _ = self.flow(samples[-1])
        return self._decoded(z1, filtered[..., -1, :])

    def _sampled(
        self, windows: Tensor, noise: Noise
    ) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor, list[Tensor], list[Tensor]]:
        """The Gaussian of z2, a sample of it, d, and row by row z1 before the flow with its log deviations."""
        mean, deviation = self.time_encoder(windows)
        z2 = mean + deviation * noise.z2  # (..., S, C)
        filtered = self.time_decoder(z2)  # d
        states, _ = self.backwards(filtered.reshape(-1, *filtered.shape[-2:]).flip(1))
        features = self.feature(states.flip(1)).reshape(*filtered.shape[:-1], -1)  # a_t: d_t and what comes after it
        # The recursion is linear in what it is told: that part is done for all rows at once.
        weight, bias = self.posterior.both.weight, self.posterior.both.bias
        ahead = functional.linear(features, weight[:, : features.shape[-1]], bias)
        memory = weight[:, features.shape[-1] :]
        z = ahead.new_zeros(*ahead.shape[:-2], self.latent)
        samples, logs = [], []
        for t in range(ahead.shape[-2]):
            mean_t, log_deviation = (ahead[..., t, :] + functional.linear(z, memory)).chunk(2, dim=-1)
            log_deviation = log_deviation.clamp(SMALLEST, LARGEST)
            z = mean_t + log_deviation.exp() * noise.z1[..., t, :]
            samples.append(z)
            logs.append(log_deviation)
        return (mean, deviation), z2, filtered, samples, logs

    def log_prior(self, latent: Latent) -> Tensor:
        """Log p(z1 | z2) + log p(z2), ``(...)``."""
        before = functional.pad(latent.z1, (0, 0, 1, 0))[..., :-1, :]  # z1_{t-1}, with zeros before the first
        mean, deviation = self.prior(torch.cat([latent.filtered, before], dim=-1))
        log_z1 = gaussian_log_density(latent.z1, mean, deviation).sum(dim=(-2, -1))
        zero, one = torch.zeros_like(latent.z2), torch.ones_like(latent.z2)
        return log_z1 + gaussian_log_density(latent.z2, zero, one).sum(dim=(-2, -1))

    def decode(self, latent: Latent) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation ``(..., T, C)`` of p(x | z1, z2): both views side by side."""
        return self._decoded(latent.z1, latent.filtered)

    def _decoded(self, z1: Tensor, filtered: Tensor) -> tuple[Tensor, Tensor]:
        mean, deviation = self.value(self.body(torch.cat([self.widen(z1), filtered], dim=-1)))
        return mean, deviation

    def evidence_bound(self, windows: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """The two halves of the ELBO, ``(b,)`` each: log p(x | z), and log q(z | x) - log p(z), which estimates a KL."""
        latent = self.encode(windows, noise)
        log_x = gaussian_log_density(windows, *self.decode(latent)).sum(dim=(-2, -1))
        return log_x, latent.log_q - self.log_prior(latent)


def impute(windows: Tensor, doubtful: Tensor, draw: Callable[[Tensor], Tensor], *, n_steps: int) -> Tensor:
    """Replace the doubtful entries of windows by draws of the model, again and again, each given the last.

    Parameters
    ----------
    windows : Tensor
        Any shape; entries that are not doubtful are never changed.
    doubtful : Tensor of bool
        Broadcastable to the windows.
    draw : callable
        From windows to a draw of every entry, given them: one step of the chain.
    n_steps : int
        Length of the chain, whose end follows the model's distribution of the doubtful entries given the others.

    Examples
    --------
    >>> impute(torch.tensor([1.0, 9.0]), torch.tensor([False, True]), lambda x: x.mean() * torch.ones(2), n_steps=50)
    tensor([1., 1.])
    """
    imputed = windows
    for _ in range(n_steps):
        imputed = torch.where(doubtful, draw(imputed), windows)
    return imputed

"""The networks of DAGMM, compression and estimation, and the Gaussian mixture between them.

Zong et al., "Deep Autoencoding Gaussian Mixture Model for Unsupervised Anomaly Detection", ICLR 2018; equation and section
numbers are theirs. This module knows no training and no scores.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import torch

# b batch, x length of a flat window, z length of [z_c, z_r], k component

JITTER = 1e-6  # added to every variance; ten times more as often as a covariance is still singular
MAX_JITTERS = 12
SMALLEST_NORM = 1e-2  # a window whose values have a smaller root mean square is measured against this


class Mixture(NamedTuple):
    """Parameters of eq. (5), the covariances by their Cholesky factors."""

    log_shares: torch.Tensor  # (k,) log of phi
    means: torch.Tensor  # (k, z)
    factors: torch.Tensor  # (k, z, z) lower triangular
    variances: torch.Tensor  # (k, z) diagonals of the covariances


def reconstruction_features(windows: torch.Tensor, rebuilt: torch.Tensor) -> torch.Tensor:
    """z_r in eq. (2), ``(b, 2)``: the relative Euclidean distance and the cosine similarity, defined in section 4.3."""
    least = SMALLEST_NORM * math.sqrt(windows.shape[1])
    tiny = least**2 * 1e-6  # keeps the gradient of the root finite where the reconstruction is exact
    distance = torch.sqrt(((windows - rebuilt) ** 2).sum(dim=1) + tiny)
    norm = torch.clamp(windows.norm(dim=1), min=least)
    other = torch.sqrt((rebuilt**2).sum(dim=1) + tiny)
    cosine = (windows * rebuilt).sum(dim=1) / (norm * torch.clamp(other, min=least))
    return torch.stack([distance / norm, cosine], dim=1)


def cholesky(covariances: torch.Tensor) -> torch.Tensor:
    """Factors ``(k, z, z)``; what is singular gets the least of 1e-6, 1e-5, ...

    On its diagonal that fixes it.
    """
    identity = torch.eye(covariances.shape[-1], dtype=covariances.dtype, device=covariances.device)
    jitter = JITTER
    for _ in range(MAX_JITTERS):
        factors, failed = torch.linalg.cholesky_ex(covariances + jitter * identity)
        if not bool(failed.any()):
            break
        jitter *= 10
    return torch.as_tensor(factors)


def fit_mixture(features: torch.Tensor, shares: torch.Tensor) -> Mixture:
    """Eq. (5): mixture from features z ``(b, z)`` and soft memberships gamma ``(b, k)``."""
    weight = shares.sum(dim=0).clamp(min=1e-8)  # (k,)
    means = (shares.T @ features) / weight[:, None]
    centred = features[None] - means[:, None]  # (k, b, z)
    covariances = torch.einsum("bk,kby,kbz->kyz", shares, centred, centred) / weight[:, None, None]
    factors = cholesky(covariances)
    variances = (factors**2).sum(dim=2)  # the diagonal of L L', jitter included
    return Mixture(torch.log(weight / len(features)), means, factors, variances)


def energy(features: torch.Tensor, mixture: Mixture) -> torch.Tensor:
    """E(z) in eq. (6), ``(b,)``: minus the log-likelihood, by log-sum-exp over the components."""
    centred = (features[None] - mixture.means[:, None]).transpose(1, 2)  # (k, z, b)
    whitened = torch.linalg.solve_triangular(mixture.factors, centred, upper=False)
    log_root_determinant = torch.log(torch.diagonal(mixture.factors, dim1=1, dim2=2)).sum(dim=1)  # (k,)
    constant = 0.5 * features.shape[1] * math.log(2 * math.pi)
    log_densities = -0.5 * (whitened**2).sum(dim=1) - (constant + log_root_determinant)[:, None]  # (k, b)
    return -torch.logsumexp(mixture.log_shares[:, None] + log_densities, dim=0)


def least_energy(mixture: Mixture) -> torch.Tensor:
    """A bound no energy is below, ``()``: that of a point in the middle of every component at once."""
    log_root_determinant = torch.log(torch.diagonal(mixture.factors, dim1=1, dim2=2)).sum(dim=1)  # (k,)
    constant = 0.5 * mixture.means.shape[1] * math.log(2 * math.pi)
    return -torch.logsumexp(mixture.log_shares - constant - log_root_determinant, dim=0)


def _stack(widths: list[int]) -> torch.nn.Sequential:
    """Dense layers with tanh between them and none after the last: section 4.3."""
    layers: list[torch.nn.Module] = []
    for inner, outer in pairwise(widths):
        layers += [torch.nn.Linear(inner, outer), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


class CompressionAndEstimation(torch.nn.Module):
    """Both networks of section 3, and the mixture of the training set in buffers."""

    log_shares: torch.Tensor
    means: torch.Tensor
    factors: torch.Tensor

    def __init__(
        self, width: int, hidden: tuple[int, ...], latent: int, estimation: int, components: int, dropout: float
    ) -> None:
        super().__init__()
        self.encoder = _stack([width, *hidden, latent])
        self.decoder = _stack([latent, *reversed(hidden), width])
        self.estimation = torch.nn.Sequential(
            torch.nn.Linear(latent + 2, estimation),
            torch.nn.Tanh(),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(estimation, components),
            torch.nn.Softmax(dim=1),
        )
        z = latent + 2
        self.register_buffer("log_shares", torch.full((components,), -math.log(components)))
        self.register_buffer("means", torch.zeros(components, z))
        self.register_buffer("factors", torch.eye(z).repeat(components, 1, 1))

    def forward(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Reconstructions ``(b, x)``, features z ``(b, z)`` and memberships gamma ``(b, k)`` of flat windows."""
        code = self.encoder(flat)  # z_c, eq. (1)
        rebuilt = self.decoder(code)  # x', eq. (1)
        features = torch.cat([code, reconstruction_features(flat, rebuilt)], dim=1)  # eq. (3)
        return rebuilt, features, self.estimation(features)  # eq. (4)

    @property
    def mixture(self) -> Mixture:
        """The mixture of the training set."""
        return Mixture(self.log_shares, self.means, self.factors, (self.factors**2).sum(dim=2))

    def keep(self, mixture: Mixture) -> None:
        """Take ``mixture`` as the one of the training set."""
        self.log_shares.copy_(mixture.log_shares)
        self.means.copy_(mixture.means)
        self.factors.copy_(mixture.factors)


def precise(tensor: torch.Tensor) -> torch.Tensor:
    """Double precision where the device has it: the mixture is where single precision hurts."""
    return tensor if tensor.device.type == "mps" else tensor.double()

"""The network of Deep-SVDD, its mirror image for pre-training, and its objective.

Ruff et al., "Deep One-Class Classification", ICML 2018; equation and section numbers are theirs. No bias and no bounded
activation anywhere: a network that has them can map every window to the centre. This module knows no training.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch.nn import functional

# b batch, c channel, f filter, t time, d representation

LEAK = 0.1  # slope of the leaky ReLU below 0, section 4.1
WIDTH = 5  # of every convolution, section 4.1
NORM_EPSILON = 1e-4  # of batch normalisation, as in the authors' released networks


class Encoder(torch.nn.Module):
    """phi(x; W): windows ``(b, t, c)`` to representations ``(b, d)``.

    No bias, no bounded activation.
    """

    centre: torch.Tensor  # (d,)
    radius_squared: torch.Tensor  # () R², of the soft boundary

    def __init__(self, n_channels: int, window: int, filters: tuple[int, ...], representation: int) -> None:
        super().__init__()
        self.widths = widths = [n_channels, *filters]
        self.lengths = [window]  # of the window before each module, and after the last
        for _ in filters:
            self.lengths.append(self.lengths[-1] // 2)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv1d(inner, outer, WIDTH, padding=WIDTH // 2, bias=False) for inner, outer in pairwise(widths)
        )
        self.norms = torch.nn.ModuleList(
            torch.nn.BatchNorm1d(width, eps=NORM_EPSILON, affine=False) for width in filters
        )
        self.dense = torch.nn.Linear(filters[-1] * self.lengths[-1], representation, bias=False)
        for layer in (*self.convolutions, self.dense):
            torch.nn.init.xavier_uniform_(layer.weight)  # Glorot uniform, section 4.1
        self.register_buffer("centre", torch.ones(representation))
        self.register_buffer("radius_squared", torch.zeros(()))

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """Representations ``(b, d)`` of windows ``(b, t, c)``."""
        hidden = windows.transpose(1, 2)  # (b, c, t)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            hidden = functional.leaky_relu(norm(convolution(hidden)), LEAK)
            hidden = functional.max_pool1d(hidden, 2)  # (b, f, t // 2)
        represented: torch.Tensor = self.dense(hidden.flatten(1))  # (b, d)
        return represented

    def distances(self, windows: torch.Tensor) -> torch.Tensor:
        """``|phi(x; W) - c|²``, ``(b,)``: eq. (5)."""
        return torch.sum((self(windows) - self.centre) ** 2, dim=1)


class Decoder(torch.nn.Module):
    """The encoder backwards, upsampling where it pooled (section 4.1).

    Used for pre-training and then thrown away.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        widths = encoder.widths[::-1]
        self.first = (widths[0], encoder.lengths[-1])
        self.lengths = encoder.lengths[-2::-1]
        self.dense = torch.nn.Linear(encoder.dense.out_features, self.first[0] * self.first[1], bias=False)
        self.norms = torch.nn.ModuleList(
            torch.nn.BatchNorm1d(width, eps=NORM_EPSILON, affine=False) for width in widths[:-1]
        )
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv1d(inner, outer, WIDTH, padding=WIDTH // 2, bias=False) for inner, outer in pairwise(widths)
        )

    def forward(self, represented: torch.Tensor) -> torch.Tensor:
        """Windows ``(b, t, c)`` from representations ``(b, d)``."""
        hidden = self.dense(represented).unflatten(1, self.first)  # (b, f, t)
        for norm, convolution, length in zip(self.norms, self.convolutions, self.lengths, strict=True):
            hidden = functional.interpolate(functional.leaky_relu(norm(hidden), LEAK), size=length)
            hidden = convolution(hidden)
        return torch.as_tensor(hidden.transpose(1, 2))  # (b, t, c)


def away_from_zero(centre: torch.Tensor, least: float) -> torch.Tensor:
    """``centre`` with every coordinate at least ``least`` from 0, its sign kept: a zero is met by zero weights.

    Examples
    --------
    >>> away_from_zero(torch.tensor([0.5, -0.01, 0.0]), 0.1)
    tensor([ 0.5000, -0.1000,  0.1000])
    """
    signs = torch.where(centre < 0, -1.0, 1.0)
    return torch.where(centre.abs() < least, signs * least, centre)


def soft_boundary(distances: torch.Tensor, radius_squared: torch.Tensor, nu: float) -> torch.Tensor:
    """Eq. (3) without its weight decay: ``R² + mean(max(0, d² - R²)) / nu``."""
    return radius_squared + torch.relu(distances - radius_squared).mean() / nu


def best_radius_squared(distances: torch.Tensor, nu: float) -> torch.Tensor:
    """The R² that minimises eq. (3) for given distances: their (1 - nu) quantile, which is what a line search finds."""
    above = int(np.floor(nu * len(distances)))  # how many distances may lie outside
    return torch.sort(distances, descending=True).values[min(above, len(distances) - 1)]

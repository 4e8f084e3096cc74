"""The network of the Anomaly Transformer: attention that is compared with what mere nearness would have attended to.

Legend: b windows, T rows, C channels, h heads, d width of the model.

Each layer has two association distributions for every row: the **series** association, ordinary softmax attention, and
the **prior** association, a Gaussian of the distance in time whose width is learned from the row. A normal row attends far
and wide; an anomalous one, the argument goes, only to its neighbours, as the prior does: its discrepancy is small.
This module knows no training and no scores.

Paper: Xu, Wu, Wang, Long: Anomaly Transformer: Time Series Anomaly Detection with Association Discrepancy, ICLR 2022,
section 3. The range of the widths, (0, 2), is that of the authors' program; the paper leaves it open.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

SMOOTHING = 1e-4  # added to every probability, which is then normalised again: the logarithms of a KL stay bounded


class Associations(NamedTuple):
    """The two distributions over rows of one layer, ``(b, h, T, T)``.

    Each row adds up to 1.
    """

    prior: Tensor  # P
    series: Tensor  # S


class Reconstruction(NamedTuple):
    """Reconstructed windows and their associations."""

    values: Tensor  # (b, T, C)
    associations: list[Associations]  # of every layer


def _smoothed(probabilities: Tensor) -> Tensor:
    return (probabilities + SMOOTHING) / (1 + SMOOTHING * probabilities.shape[-1])


def discrepancy(associations: list[Associations], *, of: str = "both") -> Tensor:
    """AssDis ``(b, T)``, eq. (3): KL(P || S) + KL(S || P) of every row, mean over heads and layers.

    ``of`` names the side that may learn from it: ``"prior"`` detaches S, ``"series"`` detaches P (eq. (5)).
    """
    totals = []
    for prior, series in associations:
        p = _smoothed(prior.detach() if of == "series" else prior)
        s = _smoothed(series.detach() if of == "prior" else series)
        totals.append(((p - s) * (p.log() - s.log())).sum(dim=-1).mean(dim=1))  # both KLs in one sum
    return torch.stack(totals).mean(dim=0)


class AnomalyAttention(nn.Module):
    """Multi-head attention with its two associations: eq. (2)."""

    squared_distance: Tensor  # (T, T)

    def __init__(self, width: int, *, n_heads: int, window: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.queries = nn.Linear(width, width)
        self.keys = nn.Linear(width, width)
        self.values = nn.Linear(width, width)
        self.sigma = nn.Linear(width, n_heads)
        self.output = nn.Linear(width, width)
        time = torch.arange(window, dtype=torch.float32)
        self.register_buffer("squared_distance", (time[:, None] - time) ** 2, persistent=False)

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:2], self.n_heads, -1).transpose(1, 2)  # (b, h, T, d / h)

    def prior(self, rows: Tensor) -> Tensor:
        """P ``(b, h, T, T)``: a Gaussian of the distance, rescaled to add up to 1, which is a softmax of its exponent."""
        wide = 3.0 ** (torch.sigmoid(5.0 * self.sigma(rows)) + 1e-5) - 1.0  # (b, T, h), in (0, 2)
        exponent = -self.squared_distance / (2 * wide.transpose(1, 2)[..., None] ** 2)
        return torch.softmax(exponent, dim=-1)

    def forward(self, rows: Tensor) -> tuple[Tensor, Associations]:
        """Rows ``(b, T, d)`` -> new rows and the layer's associations."""
        queries, keys, values = (self._heads(part(rows)) for part in (self.queries, self.keys, self.values))
        series = torch.softmax(queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1]), dim=-1)  # S
        mixed = (series @ values).transpose(1, 2).flatten(2)  # S V, heads side by side
        return self.output(mixed), Associations(self.prior(rows), series)


class Layer(nn.Module):
    """Anomaly-attention and a feed-forward network, each added and normalised: eq. (1)."""

    def __init__(self, width: int, *, n_heads: int, window: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.attention = AnomalyAttention(width, n_heads=n_heads, window=window)
        self.first_norm = nn.LayerNorm(width)
        self.second_norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, feed_forward)
        self.narrow = nn.Linear(feed_forward, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor) -> tuple[Tensor, Associations]:
        """Rows ``(b, T, d)`` -> new rows and the associations."""
        mixed, associations = self.attention(rows)
        rows = self.first_norm(rows + self.dropout(mixed))  # Z in eq. (1)
        fed = self.narrow(self.dropout(functional.gelu(self.widen(rows))))
        return self.second_norm(rows + self.dropout(fed)), associations


def positions(length: int, width: int) -> Tensor:
    """Sines and cosines of the row number ``(T, d)``."""
    rates = torch.exp(-math.log(10_000.0) * torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


class AnomalyTransformerNetwork(nn.Module):
    """Windows ``(b, T, C)`` -> reconstruction of the standardised windows, and the associations it used.

    ``centre`` and ``scale`` standardise the channels; they are buffers that training sets.
    """

    centre: Tensor  # (C,)
    scale: Tensor  # (C,)
    position: Tensor  # (T, d)

    def __init__(
        self,
        n_channels: int,
        *,
        window: int,
        width: int,
        n_heads: int,
        n_layers: int,
        feed_forward: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(n_channels))
        self.register_buffer("scale", torch.ones(n_channels))
        self.register_buffer("position", positions(window, width), persistent=False)
        self.embedding = nn.Conv1d(n_channels, width, 3, padding=1, padding_mode="replicate", bias=False)
        sizes = {"n_heads": n_heads, "window": window, "feed_forward": feed_forward}
        self.layers = nn.ModuleList(Layer(width, **sizes, dropout=dropout) for _ in range(n_layers))
        self.norm = nn.LayerNorm(width)
        self.projection = nn.Linear(width, n_channels)
        self.dropout = nn.Dropout(dropout)

    def standardised(self, windows: Tensor) -> Tensor:
        """Windows in units of the channels' training spread."""
        return (windows - self.centre) / self.scale

    def forward(self, standardised: Tensor) -> Reconstruction:
        """Reconstruct standardised windows ``(b, T, C)``."""
        rows = self.embedding(standardised.transpose(1, 2)).transpose(1, 2) + self.position
        rows = self.dropout(rows)
        associations = []
        for layer in self.layers:
            rows, both = layer(rows)
            associations.append(both)
        return Reconstruction(self.projection(self.norm(rows)), associations)

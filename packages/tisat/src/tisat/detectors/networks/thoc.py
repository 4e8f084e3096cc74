"""The network of THOC: a dilated RNN, and at each of its scales a layer of soft clusters that hands its summary up.

Legend: b windows, T rows, C channels, h width of a layer, i cluster of the scale below, j and K clusters of this scale.

Layer l of the RNN remembers in steps of its own dilation, so higher layers see longer cycles. The features of a scale are
softly assigned to its centres; what each centre received is joined with the next layer's features and assigned again. What
arrives at the centres of the top scale is compared with them. This module knows no training and no scores.

Paper: Shen, Li, Kwok: Timeseries Anomaly Detection using Temporal Hierarchical One-Class Network, NeurIPS 2020, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class DilatedLayer(nn.Module):
    """A GRU whose state at t is updated from its state at ``t - dilation``: eq. (4)."""

    def __init__(self, n_inputs: int, hidden: int, *, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.cell = nn.GRU(n_inputs, hidden, batch_first=True)

    def forward(self, rows: Tensor) -> Tensor:
        """Features ``(b, T, h)`` of rows ``(b, T, n)``: each residue of t is a chain of its own, run side by side."""
        b, length, n = rows.shape
        missing = -length % self.dilation
        padded = functional.pad(rows, (0, 0, 0, missing))  # at the end: rows that exist never see it
        chains = padded.view(b, -1, self.dilation, n).transpose(1, 2).flatten(0, 1)  # (b dilation, T / dilation, n)
        states: Tensor = self.cell(chains)[0]
        states = states.view(b, self.dilation, -1, states.shape[-1]).transpose(1, 2)
        return states.reshape(b, length + missing, -1)[:, :length]


class Summary(NamedTuple):
    """What arrived at the centres of the top scale."""

    features: Tensor  # (b, T, K, h)
    shares: Tensor  # (b, T, K), R in eq. (6): how much of the row each centre answers for; they add up to 1


def cosine_distance(features: Tensor, centres: Tensor) -> Tensor:
    """``1 - cos`` ``(...)`` of vectors ``(..., h)``, as half a squared distance: exact also where it is almost 0."""
    return 0.5 * ((functional.normalize(features, dim=-1) - functional.normalize(centres, dim=-1)) ** 2).sum(dim=-1)


class THOCNetwork(nn.Module):
    """Windows ``(b, T, C)`` -> features of every scale -> a summary at the top centres.

    ``scale`` puts the channels in units of their own movement; it is a buffer that training sets.
    """

    scale: Tensor  # (C,)
    temperature: Tensor  # (), a buffer: training anneals it

    def __init__(
        self,
        n_channels: int,
        *,
        hidden: int,
        dilations: Sequence[int],
        n_clusters: Sequence[int],
        temperature: float,
    ) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(n_channels))
        self.dilations = tuple(dilations)
        self.register_buffer("temperature", torch.tensor(float(temperature)))
        widths = [n_channels, *[hidden] * len(dilations)]
        pairs = zip(widths, dilations, strict=False)
        self.layers = nn.ModuleList(DilatedLayer(width, hidden, dilation=dilation) for width, dilation in pairs)
        self.centres = nn.ParameterList(nn.Parameter(2 * torch.rand(k, hidden) - 1) for k in n_clusters)
        self.transforms = nn.ModuleList(nn.Linear(hidden, hidden) for _ in dilations)  # W, b in eq. (7)
        self.joins = nn.ModuleList(nn.Linear(2 * hidden, hidden) for _ in dilations[1:])  # the MLP in eq. (8)
        self.forecasts = nn.ModuleList(nn.Linear(hidden, n_channels) for _ in dilations)  # W_pred in eq. (12)
        for transform in self.transforms:  # centres begin as means of what W receives: let it begin by passing that on
            assert isinstance(transform, nn.Linear)
            nn.init.eye_(transform.weight)
            nn.init.zeros_(transform.bias)

    def prepared(self, windows: Tensor) -> Tensor:
        """Windows in units of the channels' movement."""
        return windows / self.scale

    def scales(self, windows: Tensor) -> list[Tensor]:
        """Features ``(b, T, h)`` of every layer, each fed by the one below: eq. (4)."""
        features = []
        rows = windows
        for layer in self.layers:
            rows = layer(rows)
            features.append(rows)
        return features

    def assignment(self, level: int, features: Tensor) -> Tensor:
        """P ``(b, T, i, j)``: how features ``(b, T, i, h)`` are shared out among the centres of a scale, eq. (5)."""
        similarity = functional.normalize(features, dim=-1) @ functional.normalize(self.centres[level], dim=-1).T
        return torch.softmax(similarity / self.temperature, dim=-1)

    def joined(self, level: int, received: Tensor | None, features: Tensor) -> Tensor:
        """Inputs ``(b, T, i, h)`` of a scale: what the centres below received beside this layer's features, eq. (8)."""
        if received is None:
            return features[..., None, :]
        beside = features[..., None, :].expand(*received.shape[:-1], -1)
        inputs: Tensor = self.joins[level - 1](torch.cat([received, beside], dim=-1))
        return inputs

    def summary(self, scales: Sequence[Tensor]) -> Summary:
        """What features of every scale, ``(b, T, h)`` each, amount to at the top."""
        received: Tensor | None = None
        shares = scales[0].new_ones(*scales[0].shape[:-1], 1)
        for level, features in enumerate(scales):
            inputs = self.joined(level, received, features)
            share = self.assignment(level, inputs)  # (b, T, i, j)
            shares = (shares[..., None, :] @ share).squeeze(-2)  # eq. (6)
            received = share.transpose(-1, -2) @ torch.relu(self.transforms[level](inputs))  # eq. (7)
        assert received is not None, "there is at least one scale"
        return Summary(received, shares)

    def distances(self, summary: Summary) -> Tensor:
        """``sum_j R_j d(f_j, c_j)`` ``(b, T)``: the score of a row; its mean is the loss."""
        return (summary.shares * cosine_distance(summary.features, self.centres[-1])).sum(dim=-1)

    def orthogonality(self) -> Tensor:
        """How far the centres of a scale are from orthonormal, mean over the scales."""
        gaps = [((c @ c.T - torch.eye(len(c), device=c.device)) ** 2).sum() for c in self.centres]
        return torch.stack(gaps).mean()

    def self_supervision(self, scales: Sequence[Tensor], windows: Tensor) -> Tensor:
        """Error of each scale's forecast of the row one dilation ahead, mean over rows, channels and scales: eq. (12)."""
        errors = []
        for forecast, dilation, features in zip(self.forecasts, self.dilations, scales, strict=True):
            errors.append(((forecast(features[:, :-dilation]) - windows[:, dilation:]) ** 2).mean())
        return torch.stack(errors).mean()

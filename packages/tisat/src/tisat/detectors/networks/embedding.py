"""Value and position embedding: a width-3 convolution over time, plus where in the window a row stands.

Legend: b batch, t time, c channel, D model width. Calendar features are not known here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def neighbours(x: Tensor) -> Tensor:
    """Each row beside its neighbours: ``(b, t, c)`` to ``(b, t, 3 c)``, zeros beyond the ends."""
    padded = nn.functional.pad(x, (0, 0, 1, 1))  # (b, t + 2, c)
    return torch.cat([padded[:, :-2], x, padded[:, 2:]], dim=-1)


class TimeConvolution(nn.Module):
    """A convolution of width 3 over time, as one matrix product: on a CPU quicker than the general routine."""

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(3 * n_inputs, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, n_inputs)`` to ``(b, t, n_outputs)``."""
        convolved: Tensor = self.linear(neighbours(x))
        return convolved


def positions(length: int, d_model: int) -> Tensor:
    """Sines and cosines ``(length, D)`` of wavelengths from 2 pi to 20,000 pi (Vaswani et al. 2017, section 3.5).

    Examples
    --------
    >>> positions(2, 4).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]
    """
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
    table = torch.empty(length, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2]
    return table


class Embedding(nn.Module):
    """Rows of channels become vectors of width ``d_model`` that know their place."""

    def __init__(self, n_channels: int, d_model: int, *, length: int, dropout: float) -> None:
        super().__init__()
        self.value = TimeConvolution(n_channels, d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("position", positions(length, d_model), persistent=False)  # (t, D)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, c)`` to ``(b, t, D)``."""
        embedded: Tensor = self.dropout(self.value(x) + self.position)
        return embedded

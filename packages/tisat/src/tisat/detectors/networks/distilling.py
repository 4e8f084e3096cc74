"""Distilling: between two encoder layers, convolve and keep half the rows.

``MaxPool(ELU(Conv1d(x)))`` with widths 3 and stride 2 (Zhou et al. 2021, equation 5). ELU is increasing, so the pool may
come first, and the ELU then meets half as many values; the result is the same. No batch normalisation: it is not in the
paper, and a score would then depend on the batch it was trained in.

Legend: b batch, t time, D model width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tisat.detectors.networks.embedding import TimeConvolution


def halve(x: Tensor) -> Tensor:
    """The maximum over rows ``2 i - 1, 2 i, 2 i + 1``: ``(b, t, D)`` to ``(b, ceil(t / 2), D)``."""
    middle = x[:, 0::2]  # rows 2 i
    right = x[:, 1::2]  # rows 2 i + 1: one fewer where t is odd
    left = nn.functional.pad(right[:, : middle.shape[1] - 1], (0, 0, 1, 0), value=-math.inf)  # rows 2 i - 1
    if right.shape[1] < middle.shape[1]:
        right = nn.functional.pad(right, (0, 0, 0, 1), value=-math.inf)
    return torch.maximum(torch.maximum(left, middle), right)


class Distilling(nn.Module):
    """Convolve over time and keep half the rows."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.convolution = TimeConvolution(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, D)`` to ``(b, ceil(t / 2), D)``."""
        return nn.functional.elu(halve(self.convolution(x)))

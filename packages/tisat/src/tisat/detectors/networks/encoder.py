"""The encoder: a deep stack on the whole window beside a shallow one on its last quarter.

Between the layers of a stack :mod:`~tisat.detectors.networks.distilling` halves the rows (100 -> 50 -> 25), so that both stacks end with
about as many, and their outputs are concatenated along time (Zhou et al. 2021; Doshi et al., section IV-B).

Legend: b batch, t time, D model width. The encoder does not know channels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tisat.detectors.networks.attention import MultiHeadAttention
from tisat.detectors.networks.distilling import Distilling


class LayerSizes(NamedTuple):
    """What every layer of the encoder and of the decoder is made of."""

    d_model: int  # width
    n_heads: int
    d_ff: int  # width of the feed-forward layer
    dropout: float
    attention: str  # see :class:`MultiHeadAttention`
    factor: int


class FeedForward(nn.Module):
    """Two linear maps with a GELU between, row by row."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.widen = nn.Linear(sizes.d_model, sizes.d_ff)
        self.narrow = nn.Linear(sizes.d_ff, sizes.d_model)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, D)`` to the same shape."""
        forwarded: Tensor = self.dropout(self.narrow(self.dropout(nn.functional.gelu(self.widen(x)))))
        return forwarded


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each added to its input and normalised."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(sizes.d_model, sizes.n_heads, kind=sizes.attention, factor=sizes.factor)
        self.attention_norm = nn.LayerNorm(sizes.d_model)
        self.feed_forward = FeedForward(sizes)
        self.feed_forward_norm = nn.LayerNorm(sizes.d_model)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, D)`` to the same shape."""
        x = self.attention_norm(x + self.dropout(self.attention(x)))
        encoded: Tensor = self.feed_forward_norm(x + self.feed_forward(x))
        return encoded


class Stack(nn.Module):
    """Encoder layers with distilling between them."""

    def __init__(self, n_layers: int, sizes: LayerSizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(sizes) for _ in range(n_layers))
        self.distilling = nn.ModuleList(Distilling(sizes.d_model) for _ in range(n_layers - 1))
        self.norm = nn.LayerNorm(sizes.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, D)`` to ``(b, ceil(t / 2^(n - 1)), D)``."""
        x = self.layers[0](x)
        for distil, layer in zip(self.distilling, self.layers[1:], strict=True):
            x = layer(distil(x))
        stacked: Tensor = self.norm(x)
        return stacked


def quarter(length: int) -> int:
    """Rows of the last quarter of a window, at least one.

    Examples
    --------
    >>> quarter(100), quarter(8), quarter(3)
    (25, 2, 1)
    """
    return max(1, length // 4)


class Encoder(nn.Module):
    """One stack of ``n_layers`` on the window and, if asked for, one layer on its last quarter, side by side."""

    def __init__(self, n_layers: int, sizes: LayerSizes, *, quarter_stack: bool = True) -> None:
        super().__init__()
        self.deep = Stack(n_layers, sizes)
        shallow = Stack(1, sizes)
        self.shallow = shallow if quarter_stack else None

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, D)`` to ``(b, t', D)``, both stacks along time."""
        if self.shallow is None:
            alone: Tensor = self.deep(x)
            return alone
        return torch.cat([self.deep(x), self.shallow(x[:, -quarter(x.shape[1]) :])], dim=1)

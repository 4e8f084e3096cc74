"""The decoder: a start token of known rows and zeros for the target, answered in one pass.

Each layer is masked self-attention, cross-attention to the encoder's output, feed-forward. There is no recursion over the
horizon. Only the target rows are wanted in the end, so the last layer computes nothing else; the result is the same.

Legend: b batch, t time, D model width, H horizon.
"""

from __future__ import annotations

from torch import Tensor, nn

from tisat.detectors.networks.attention import MultiHeadAttention
from tisat.detectors.networks.encoder import FeedForward, LayerSizes


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each added to its input and normalised."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        width, heads = sizes.d_model, sizes.n_heads
        self.attention = MultiHeadAttention(width, heads, kind=sizes.attention, factor=sizes.factor, causal=True)
        self.attention_norm = nn.LayerNorm(width)
        self.cross = MultiHeadAttention(width, heads, kind="dense")
        self.cross_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(sizes)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor, memory: Tensor, last: int | None = None) -> Tensor:
        """``x`` ``(b, t, D)`` and the encoder's ``memory`` ``(b, s, D)`` to ``(b, t, D)``, or its ``last`` rows."""
        kept = x if last is None else x[:, -last:]
        kept = self.attention_norm(kept + self.dropout(self.attention(x, last=last)))
        kept = self.cross_norm(kept + self.dropout(self.cross(kept, memory)))
        decoded: Tensor = self.feed_forward_norm(kept + self.feed_forward(kept))
        return decoded


class Decoder(nn.Module):
    """Layers that turn start token and placeholder into the target rows."""

    def __init__(self, n_layers: int, sizes: LayerSizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(sizes) for _ in range(n_layers))
        self.norm = nn.LayerNorm(sizes.d_model)

    def forward(self, x: Tensor, memory: Tensor, horizon: int) -> Tensor:
        """``x`` ``(b, t + H, D)`` and ``memory`` ``(b, s, D)`` to the target rows ``(b, H, D)``."""
        for layer in self.layers[:-1]:
            x = layer(x, memory)
        decoded: Tensor = self.norm(self.layers[-1](x, memory, last=horizon))
        return decoded

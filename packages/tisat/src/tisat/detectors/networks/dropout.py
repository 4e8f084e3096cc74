"""Dropout by a compiled loop: on a CPU a part of the usual cost, and no mask is kept for the way back.

The rate is kept to within 2^-32. A key is drawn from torch's default generator, which the training loop seeds; what is dropped follows
from it, on every processor alike. On other devices it is torch's own dropout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tisat.detectors.networks._kernels import drop
from tisat.detectors.networks.plain import applied, is_plain


def _dropped(x: Tensor, key: int, rate: float) -> Tensor:
    x = x.detach().contiguous()
    out = torch.empty_like(x)
    drop(x.view(-1).numpy(), key, round(rate * 2**32), 1 / (1 - rate), out.view(-1).numpy())
    return out


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        ctx.key, ctx.rate = int(torch.empty((), dtype=torch.int64).random_()), rate
        return _dropped(x, ctx.key, rate)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _dropped(grads[0], ctx.key, ctx.rate), None


class Dropout(nn.Module):
    """Zero a share ``rate`` of the values in training; nothing afterwards."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """``x`` with values dropped and the rest scaled up."""
        if not self.training or self.rate == 0.0:
            return x
        if not is_plain(x):
            return nn.functional.dropout(x, self.rate)
        return applied(_Dropped, x, self.rate)

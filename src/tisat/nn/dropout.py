"""Dropout from four 16-bit draws a random word: on a CPU half the cost of the usual one draw a value.

The rate is kept to within 1/65536. It draws from torch's default generator, which the training loop seeds. On other
devices it is torch's own dropout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

LEVELS = 1 << 16  # values of a 16-bit draw


def _mask(x: Tensor, rate: float) -> Tensor:
    """Zero at a share ``rate`` of the places of ``x``, ``1 / (1 - rate)`` at the others."""
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    mask = torch.empty(x.shape, dtype=x.dtype)
    return torch.ge(draws, round(rate * LEVELS) - LEVELS // 2, out=mask).mul_(1 / (1 - rate))


class _Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        mask = _mask(x, rate)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return grads[0] * mask, None


class Dropout(nn.Module):
    """Zero a share ``rate`` of the values in training; nothing afterwards."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """``x`` with values dropped and the rest scaled up."""
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.rate)
        dropped: Tensor = _Masked.apply(x, self.rate)  # type: ignore[no-untyped-call]  # torch has none
        return dropped

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        return f"rate={self.rate:g}"

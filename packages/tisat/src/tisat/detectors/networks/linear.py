"""Linear maps of many rows by oneDNN, which torch brings: quicker than its usual product, GELU included where nothing is learned.

Torch calls oneDNN's product itself only in graphs that it compiles. Where it is not there, for few rows, on other devices and while a
graph is traced, the usual product is taken; the result is the same up to rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tisat.detectors.networks.plain import applied, is_plain

FEW = 1000  # rows below which the usual product is as quick
PRODUCT: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # None: torch was built without oneDNN


def _by_onednn(x: Tensor) -> bool:
    return PRODUCT is not None and x.numel() >= FEW * x.shape[-1] and is_plain(x)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        product: Tensor = PRODUCT(x, weight, bias, "none", [], None)
        return product

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        rows = grads[0].flatten(0, -2)
        to_x = PRODUCT(grads[0], weight.t(), None, "none", [], None) if ctx.needs_input_grad[0] else None
        return to_x, rows.t() @ x.flatten(0, -2), rows.sum(dim=0)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``x @ weight.T + bias``."""
    if not _by_onednn(x):
        return functional.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        plain: Tensor = PRODUCT(x, weight, bias, "none", [], None)
        return plain
    return applied(_Linear, x, weight, bias)


class Linear(nn.Linear):
    """``nn.Linear``; the weights have the same names."""

    def forward(self, x: Tensor) -> Tensor:
        """``(..., i)`` to ``(..., o)``."""
        return linear(x, self.weight, self.bias)

    def then_gelu(self, x: Tensor) -> Tensor:
        """The GELU of the same."""
        if torch.is_grad_enabled() or not _by_onednn(x):
            return functional.gelu(self(x))
        activated: Tensor = PRODUCT(x, self.weight, self.bias, "gelu", [], "none")
        return activated

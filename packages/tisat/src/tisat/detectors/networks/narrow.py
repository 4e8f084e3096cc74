"""Dense attention for narrow heads on a CPU: the compiled loops of :mod:`tisat.detectors.networks._kernels`, with their gradient.

Less than the cost of torch's fused attention, and the rows are taken as the linear maps leave them: nothing is copied into heads
and back. The result is the same up to rounding. Elsewhere (other widths, other devices, a processor without wide vectors, a graph being traced) torch's is used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tisat.detectors.networks._kernels import WIDTH, attend, gradients
from tisat.detectors.networks.plain import applied, is_plain

WIDE_VECTORS = torch.backends.cpu.get_cpu_capability().startswith("AVX")  # with narrower ones torch's own is as quick


def is_narrow(rows: Tensor) -> bool:
    """Whether the loops are made for rows ``(b, s, n, h, d)``."""
    return WIDE_VECTORS and rows.shape[-1] == WIDTH and is_plain(rows)


def narrow_attention(rows: Tensor, query: Tensor | None = None, *, causal: bool = False) -> Tensor:
    """Softmax attention ``(b, l, h, d)``; causal with fewer queries than keys means the last ones.

    Parameters
    ----------
    rows : Tensor (b, s, n, h, d)
        Keys and values, ``n = 2``; or queries, keys and values, ``n = 3``.
    query : Tensor (b, l, 1, h, d), optional
        The queries where they are not among the rows.
    causal : bool
        Position i sees positions ``<= i``.
    """
    return applied(_Narrow, rows, query, causal)


class _Narrow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, query: Tensor | None, causal: bool) -> Tensor:  # noqa: FBT001
        asking = rows if query is None else query.contiguous()
        batch, queries, _, heads, width = asking.shape
        out = rows.new_empty(batch, queries, heads, width)
        levels = rows.new_empty(batch, queries, heads if any(ctx.needs_input_grad) else 0)
        attend(asking.detach().numpy(), rows.detach().numpy(), rows.shape[2] - 2, causal, out.numpy(), levels.numpy())
        ctx.causal, ctx.apart = causal, query is not None
        ctx.save_for_backward(rows, asking, out, levels)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor | None, None]:
        rows, asking, out, levels = (each.detach() for each in ctx.saved_tensors)
        to_rows = torch.empty_like(rows)
        to_asking = torch.empty_like(asking) if ctx.apart else to_rows
        done = (out, levels, slope.contiguous(), to_asking, to_rows)
        gradients(asking.numpy(), rows.numpy(), rows.shape[2] - 2, ctx.causal, *(each.numpy() for each in done))
        return to_rows, to_asking if ctx.apart else None, None

"""Which tensors the compiled loops take, where torch's own operations are not used, and how a gradient of one's own is called."""

from __future__ import annotations

import torch
from torch import Tensor


def is_plain(x: Tensor) -> bool:
    """Single numbers side by side in the memory of this machine, and no graph is being made of what is done to them."""
    here = x.dtype == torch.float32 and x.device.type == "cpu" and x.is_contiguous()
    return here and not torch.onnx.is_in_onnx_export()


def applied(function: type[torch.autograd.Function], *arguments: object) -> Tensor:
    """What a function with a gradient of its own makes of its arguments."""
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]  # torch has no types here
    return result

"""Which tensors the compiled loops take, and torch's own operations otherwise."""

from __future__ import annotations

import torch
from torch import Tensor


def is_plain(x: Tensor) -> bool:
    """Single numbers side by side in the memory of this machine, and no graph is being made of what is done to them."""
    here = x.dtype == torch.float32 and x.device.type == "cpu" and x.is_contiguous()
    return here and not torch.onnx.is_in_onnx_export()

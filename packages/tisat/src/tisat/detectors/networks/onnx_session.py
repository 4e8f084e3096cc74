"""One window at a time, quickly: the network as an ONNX graph run by ONNX Runtime.

For a single window most of torch's time is spent between operations; ONNX Runtime runs the same graph in about half of
it. The graph lives in memory only: the weights in the model file stay the one source. Without the ``fast`` extra, or off
the CPU, there is no session and torch answers, with the same numbers up to rounding.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

Singles: TypeAlias = npt.NDArray[np.float32]


def session_available() -> bool:
    """Whether the packages of the ``fast`` extra are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("onnx", "onnxruntime"))


def one_window_session(network: torch.nn.Module, shape: tuple[int, int]) -> Callable[[Singles], Singles] | None:
    """A function from one window ``(1, L, C)`` to the network's output, or None where there can be no session.

    Parameters
    ----------
    network : Module
        In evaluation mode, on the CPU, with one tensor in and one out.
    shape : (L, C)
    """
    if not session_available() or next(network.parameters()).device.type != "cpu":
        return None
    import onnxruntime

    graph = io.BytesIO()
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # The tracing exporter is right here: shapes are fixed, and it needs no compiler stack. It warns that it is old,
            # and wherever a shape becomes a constant, which is what is wanted.
            warnings.simplefilter("ignore")
            example = (torch.zeros(1, *shape),)
            torch.onnx.export(
                network,
                example,
                graph,  # type: ignore[arg-type]  # a buffer is taken too
                dynamo=False,
                opset_version=17,
                input_names=["window"],
            )
    finally:
        exporter.setLevel(level)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # a window is too small to share
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.getvalue(),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],  # a sixth slower than the sum and the norm that it joins
    )

    def run(window: Singles) -> Singles:
        return np.asarray(session.run(None, {"window": window})[0])

    return run

"""Tensors in, tensors out: the building blocks of the networks. No training, no data, no detectors.

Read bottom-up: :mod:`~tisat.nn.attention`, :mod:`~tisat.nn.embedding`, :mod:`~tisat.nn.distilling`,
:mod:`~tisat.nn.encoder`, :mod:`~tisat.nn.decoder`, and :mod:`~tisat.nn.forecaster`, which puts them together.
Importing any of them imports torch. Detectors have it from here, so that a missing one is missed with the command that installs it.
"""

from typing import TYPE_CHECKING

from tisat._extras import require

if TYPE_CHECKING:
    import torch as torch
else:
    torch = require("torch", whose="A neural detector")

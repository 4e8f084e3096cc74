"""Tensors in, tensors out: the building blocks of the networks.

No training, no data, no detectors.

Read bottom-up: :mod:`~tisat.detectors.networks.attention`, :mod:`~tisat.detectors.networks.embedding`, :mod:`~tisat.detectors.networks.distilling`,
:mod:`~tisat.detectors.networks.encoder`, :mod:`~tisat.detectors.networks.decoder`, and :mod:`~tisat.detectors.networks.forecaster`, which puts them together.
Importing any of them imports torch. Detectors have it from here, so that a missing one is missed with the command that installs it.
"""

from typing import TYPE_CHECKING

from tisat.utils.extras import require

if TYPE_CHECKING:
    import torch as torch
else:
    torch = require("torch", whose="A neural detector")

"""What the variational detectors share: log-densities as points, and a divergence that must not be negative.

A log-density has no natural zero: it changes sign with the unit of the data, so a score made of it could not be compared
with a nominal level. Measured from the highest density the decoder can give (its smallest standard deviation, hit
exactly) it is never negative, and ranks instants as before. This module knows no network.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tisat._extras import require
from tisat.errors import TrainingError

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", whose="A neural detector")


def deviance_residuals(log_density: torch.Tensor, *, floor: float) -> torch.Tensor:
    """Points whose squares are twice how far each log-density lies below the highest a deviation >= ``floor`` allows.

    The mean of squares over the channels is then an increasing function of the negative log-likelihood of the instant.
    """
    highest = -math.log(floor) - 0.5 * math.log(2 * math.pi)
    return torch.sqrt(2 * (highest - log_density).clamp(min=0.0))


def check_divergence(estimates: torch.Tensor, *, whose: str) -> None:
    """Refuse a posterior whose KL divergence from the prior is negative beyond the noise of its estimates ``(n,)``."""
    if len(estimates) < 2:
        return
    mean = float(estimates.mean())
    error = float(estimates.std()) / math.sqrt(len(estimates))
    if not math.isfinite(mean) or mean + 6 * error < -1e-3 * (1 + abs(mean)):
        raise TrainingError(
            f"The KL divergence of {whose} must be finite and not negative. Got {mean:.4g} +- {error:.2g} over "
            f"{len(estimates)} training windows: its densities do not belong to its samples; lower learning_rate."
        )

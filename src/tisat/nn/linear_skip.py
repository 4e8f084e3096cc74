"""One linear map over time per channel, solved and not trained, beside a network that learns the rest.

Linear forecasters are hard to beat. With this beside it a network starts from the best linear forecast of its training
windows and only has to learn what a line cannot say. Windows are measured from their last value, whatever the network
sees, so that the penalty pulls towards the last-value forecast; both were chosen on the tails of training splits
(``experiments/tisat_linear_skip.py``). It is not part of any paper we follow.

Legend: b batch, r reach, H horizon, C channels. This module does not know the network it stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

REACH = 100  # last rows of a window the map looks at: its normal equations grow with the square


class LinearSkip(nn.Module):
    """Each channel's next values: its last one, and a weighted sum of how the earlier ones differ from it.

    Parameters
    ----------
    n_channels, window, horizon : int
    ridge : float
        Penalty on the weights, as a share of the mean square of the inputs.
    """

    weight: Tensor  # (C, r, H)
    bias: Tensor  # (H, C)
    rest: Tensor  # (H, C) root mean square of what the map leaves unsaid: the unit of what is learned beside it

    def __init__(self, n_channels: int, *, window: int, horizon: int, ridge: float = 0.1) -> None:
        super().__init__()
        self.reach, self.ridge = min(window, REACH), ridge
        self.register_buffer("weight", torch.zeros(n_channels, self.reach, horizon))
        self.register_buffer("bias", torch.zeros(horizon, n_channels))
        self.register_buffer("rest", torch.ones(horizon, n_channels))

    def solve(self, examples: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Set the ridge solution for windows ``(b, L, C)`` and targets ``(b, H, C)``, given in batches."""
        channels, reach, horizon = self.weight.shape
        rows = reach + 1  # the inputs and a constant
        gram = torch.zeros(channels, rows, rows, dtype=torch.float64)
        cross = torch.zeros(channels, rows, horizon, dtype=torch.float64)
        square = torch.zeros(channels, horizon, dtype=torch.float64)
        count = 0
        for window, target in examples:
            last = window[:, -1:]  # (b, 1, C)
            inputs = (window[:, -reach:] - last).permute(2, 0, 1).cpu().double()  # (C, b, r); float32 is not enough
            inputs = nn.functional.pad(inputs, (0, 1), value=1.0)  # (C, b, r + 1)
            change = (target - last).permute(2, 0, 1).cpu().double()  # (C, b, H)
            gram += inputs.transpose(1, 2) @ inputs
            cross += inputs.transpose(1, 2) @ change
            square += change.square().sum(dim=1)
            count += len(window)
        power = gram.diagonal(dim1=1, dim2=2)[:, :-1].mean(dim=1)  # (C,), n times the mean square
        penalty = torch.where(power > 1e-12 * count, self.ridge * power, torch.ones_like(power))
        shrink = penalty[:, None].repeat(1, rows)
        shrink[:, -1] = 1e-9 * count  # the constant is not penalised
        exact = torch.linalg.solve(gram + torch.diag_embed(shrink), cross)  # (C, r + 1, H)
        left = square - 2 * (exact * cross).sum(dim=1) + (exact * (gram @ exact)).sum(dim=1)  # (C, H)
        self.rest.copy_((left / count).clamp(min=1e-8).sqrt().T)
        solved = exact.to(self.weight)
        self.weight.copy_(solved[:, :-1])
        self.bias.copy_(solved[:, -1].T)

    def forward(self, window: Tensor) -> Tensor:
        """``(b, L, C)`` to ``(b, H, C)``."""
        last = window[:, -1:]
        inputs = (window[:, -self.reach :] - last).permute(2, 0, 1)  # (C, b, r)
        return last + (inputs @ self.weight).permute(1, 2, 0) + self.bias

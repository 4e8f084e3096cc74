"""One linear map over time per channel, solved and not trained, beside a network that learns the rest.

Linear forecasters are hard to beat. With this beside it a network starts from the best linear forecast of its training
windows and only has to learn what a line cannot say. Windows are measured from their last value, whatever the network
sees, so that the penalty pulls towards the last-value forecast; both were chosen on the tails of training splits
(``experiments/tisat_linear_skip.py``). It is not part of any paper we follow.

Legend: b batch, r reach, H horizon, C channels. This module does not know the network it stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.fft
import torch
from torch import Tensor, nn

from tisat.utils.types import Array

REACH = 100  # last rows of a window the map looks at: its normal equations grow with the square
BLOCK = 1 << 16  # windows whose products are summed at a time


def _moments(rows: Array, size: int) -> tuple[Array, Array]:
    """Sums over all windows of ``size`` of ``rows`` ``(C, n)``: of products of two places ``(C, size, size)``, of places ``(C, size)``.

    From one place to the next in both, a sum of products loses its first term and gains one: only those with the first place are
    summed whole, by a Fourier transform. Each channel is
    measured from the mean of its rows, which leaves differences of places as they are.
    """
    count = rows.shape[1] - size + 1
    mean = rows.mean(axis=1, keepdims=True)
    x = rows - mean
    length = scipy.fft.next_fast_len(x.shape[1], real=True)
    there, here = scipy.fft.rfft(x, length), scipy.fft.rfft(x[:, :count], length)
    products = np.empty((len(x), size, size))
    products[:, 0] = scipy.fft.irfft(there * here.conj(), length)[:, :size]
    lost, gained = x[:, : size - 1], x[:, count : count + size - 1]
    for i in range(size - 1):
        change = gained[:, [i]] * gained[:, i:] - lost[:, [i]] * lost[:, i:]
        products[:, i + 1, i + 1 :] = products[:, i, i:-1] + change
    upper = np.triu(products)
    products = upper + np.triu(products, 1).transpose(0, 2, 1)
    sums = np.cumsum(np.concatenate([x[:, :count].sum(axis=1, keepdims=True), gained - lost], axis=1), axis=1)
    return products, sums


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
        self.window, self.reach, self.ridge = window, min(window, REACH), ridge
        self.register_buffer("weight", torch.zeros(n_channels, self.reach, horizon))
        self.register_buffer("bias", torch.zeros(horizon, n_channels))
        self.register_buffer("rest", torch.ones(horizon, n_channels))

    def solve(self, stretches: Iterable[Tensor], leads: Sequence[int]) -> None:
        """Set the ridge solution for every window of unbroken rows ``(n, C)``, whose targets are so many rows ahead."""
        channels, reach, _ = self.weight.shape
        size = reach + max(leads)  # rows from the first input to the last target
        products = np.zeros((channels, size, size))
        sums = np.zeros((channels, size))
        count = 0
        for rows in stretches:
            seen = rows[self.window - reach :].T.cpu().double().numpy()  # float32 is not enough
            for first in range(0, seen.shape[1] - size + 1, BLOCK):
                block = seen[:, first : first + BLOCK + size - 1]
                product, total = _moments(block, size)
                products += product
                sums += total
                count += block.shape[1] - size + 1
        last, ahead = reach - 1, np.array([reach - 1 + lead for lead in leads])
        # Of differences from the last value: a constant added to a channel changes nothing.
        changes = products - products[:, :, [last]] - products[:, [last], :] + products[:, [last]][:, :, [last]]
        gram = np.zeros((channels, reach + 1, reach + 1))  # the inputs and a constant
        gram[:, :-1, :-1] = changes[:, :reach, :reach]
        gram[:, -1, :-1] = gram[:, :-1, -1] = sums[:, :reach] - sums[:, [last]]
        gram[:, -1, -1] = count
        cross = np.concatenate([changes[:, :reach, ahead], (sums[:, ahead] - sums[:, [last]])[:, None]], axis=1)
        square = changes[:, ahead, ahead]  # (C, H)
        power = gram.diagonal(axis1=1, axis2=2)[:, :-1].mean(axis=1)  # (C,), n times the mean square
        penalty = np.where(power > 1e-12 * count, self.ridge * power, 1.0)
        shrink = np.repeat(penalty[:, None], reach + 1, axis=1)
        shrink[:, -1] = 1e-9 * count  # the constant is not penalised
        exact = np.linalg.solve(gram + shrink[:, :, None] * np.eye(reach + 1), cross)  # (C, r + 1, H)
        left = square - 2 * (exact * cross).sum(axis=1) + (exact * (gram @ exact)).sum(axis=1)  # (C, H)
        self.rest.copy_(torch.from_numpy(np.sqrt(np.maximum(left / count, 1e-8)).T))
        self.weight.copy_(torch.from_numpy(exact[:, :-1]))
        self.bias.copy_(torch.from_numpy(exact[:, -1].T))

    def forward(self, window: Tensor) -> Tensor:
        """``(b, L, C)`` to ``(b, H, C)``."""
        last = window[:, -1:]
        inputs = (window[:, -self.reach :] - last).permute(2, 0, 1)  # (C, b, r)
        return last + (inputs @ self.weight).permute(1, 2, 0) + self.bias

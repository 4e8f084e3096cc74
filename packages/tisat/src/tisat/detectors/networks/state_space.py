"""The linear Gaussian state-space model: a prior over sequences, with its exact log-density.

    s_1 ~ N(0, I)        s_t = T s_{t-1} + v_t,  v ~ N(0, Q)        z_t = O s_t + e_t,  e ~ N(0, R)

T, O and the diagonals of Q and R are learned, from the identity and ones. A sequence is one Gaussian vector, so its
log-density is one Cholesky factor away: a few large products, where the Kalman filter's recursion (the same number, see the
tests) is thousands of small ones. This module does not know what z stands for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

SMALLEST_VARIANCE = 1e-4


class LinearGaussianStateSpace(nn.Module):
    """A prior over sequences ``(b, T, d)`` in which neighbours in time are tied.

    Examples
    --------
    >>> LinearGaussianStateSpace(3).log_prob(torch.zeros(2, 10, 3)).shape
    torch.Size([2])
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        unit = math.log(math.expm1(1.0 - SMALLEST_VARIANCE))  # softplus of it, plus the smallest, is 1
        self.transition = nn.Parameter(torch.eye(size))  # T
        self.observation = nn.Parameter(torch.eye(size))  # O
        self.raw_state_noise = nn.Parameter(torch.full((size,), unit))  # Q = diag
        self.raw_observation_noise = nn.Parameter(torch.full((size,), unit))  # R = diag

    def noises(self) -> tuple[Tensor, Tensor]:
        """Q and R, ``(d, d)`` each."""
        raw = (self.raw_state_noise, self.raw_observation_noise)
        state, observation = (torch.diag(functional.softplus(value) + SMALLEST_VARIANCE) for value in raw)
        return state, observation

    def log_prob(self, z: Tensor) -> Tensor:
        """Log-density ``(b,)`` of sequences ``(b, T, d)``."""
        length, size = z.shape[1:]
        exact = z.dtype if z.device.type == "mps" else torch.float64  # mps has no float64
        state_noise, observation_noise = (noise.to(exact) for noise in self.noises())
        transition, observation = self.transition.to(exact), self.observation.to(exact)
        identity = torch.eye(length, dtype=exact, device=z.device)
        whole = torch.eye(length * size, dtype=exact, device=z.device)
        first = torch.zeros_like(identity)
        first[0, 0] = 1.0
        before = torch.diag(identity.new_ones(length - 1), -1)  # row t picks t - 1
        # With A = I - [T below the diagonal] and w the shocks, A s = w: so s = A^-1 w and z = O s + e.
        shocks = torch.kron(first, whole[:size, :size]) + torch.kron(identity - first, state_noise)  # s_1 ~ N(0, I)
        states = torch.linalg.solve_triangular(whole - torch.kron(before, transition), whole, upper=False)
        reach = torch.kron(identity, observation) @ states
        factor = torch.linalg.cholesky(reach @ shocks @ reach.T + torch.kron(identity, observation_noise))
        white = torch.linalg.solve_triangular(factor, z.reshape(len(z), -1).to(exact).T, upper=False)  # (T d, b)
        constant = factor.diagonal().log().sum() + 0.5 * length * size * math.log(2 * math.pi)
        log_density: Tensor = -0.5 * (white**2).sum(dim=0) - constant
        return log_density.to(z.dtype)

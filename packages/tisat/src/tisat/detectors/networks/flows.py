"""Normalizing flows: invertible maps that bend a Gaussian sample and say by how much they stretched space.

Both flows take points ``(..., d)`` and return the moved points with ``log |det Jacobian|`` of shape ``(...)``; the
log-density of the moved point is that of the first one minus this number. :class:`PlanarFlow` is the flow of
OmniAnomaly, :class:`CouplingFlow` the RealNVP of InterFusion. Neither can be run backwards here: the posteriors that use
them only ever evaluate their own samples.

References
----------
Rezende, Mohamed: Variational Inference with Normalizing Flows, ICML 2015. Dinh, Sohl-Dickstein, Bengio: Density
estimation using Real NVP, ICLR 2017. Kingma, Dhariwal: Glow, NeurIPS 2018 (the learned mixing between couplings).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class PlanarFlow(nn.Module):
    """``n_layers`` planar maps ``z + u tanh(w z + b)``, each kept invertible by ``w u >= -1`` (Rezende, appendix A.1).

    Examples
    --------
    >>> moved, log_det = PlanarFlow(3, n_layers=2)(torch.zeros(5, 3))
    >>> moved.shape, log_det.shape
    (torch.Size([5, 3]), torch.Size([5]))
    """

    def __init__(self, size: int, *, n_layers: int) -> None:
        super().__init__()
        self.u = nn.Parameter(0.01 * torch.randn(n_layers, size))
        self.w = nn.Parameter(0.1 * torch.randn(n_layers, size))
        self.b = nn.Parameter(torch.zeros(n_layers))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Points ``(..., d)`` -> moved points ``(..., d)`` and log |det| ``(...)``."""
        log_det = z.new_zeros(z.shape[:-1])
        inner = (self.w * self.u).sum(dim=1, keepdim=True)  # (k, 1)
        length = (self.w**2).sum(dim=1, keepdim=True).clamp(min=1e-8)
        u = self.u + (functional.softplus(inner) - 1 - inner) * self.w / length  # w u = softplus - 1 > -1
        for u_k, w_k, b_k in zip(u, self.w, self.b, strict=True):
            bend = torch.tanh(z @ w_k + b_k)
            slope = (w_k @ u_k) * (1 - bend**2)  # u . psi(z)
            log_det = log_det + torch.log((1 + slope).clamp(min=1e-8))
            z = z + u_k * bend[..., None]
        return z, log_det


class Coupling(nn.Module):
    """An affine coupling: the second half is scaled and shifted by what the first half says; it starts as a constant scale.

    The scale is ``sigmoid(s + 2)``, so it stays in (0, 1): a layer can only contract, and training cannot run away.
    """

    def __init__(self, size: int, *, hidden: int) -> None:
        super().__init__()
        self.kept = size // 2
        self.body = nn.Linear(self.kept, hidden)
        self.head = nn.Linear(hidden, 2 * (size - self.kept))
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Points ``(..., d)`` -> moved points and log |det|."""
        first, second = z[..., : self.kept], z[..., self.kept :]
        shift, scale = self.head(torch.relu(self.body(first))).chunk(2, dim=-1)
        log_scale = functional.logsigmoid(scale + 2.0)
        return torch.cat([first, (second + shift) * log_scale.exp()], dim=-1), log_scale.sum(dim=-1)


class CouplingFlow(nn.Module):
    """RealNVP: ``n_layers`` of a learned invertible mixing of the coordinates followed by a coupling.

    Examples
    --------
    >>> moved, log_det = CouplingFlow(3, n_layers=2, hidden=8)(torch.zeros(5, 7, 3))
    >>> moved.shape, log_det.shape
    (torch.Size([5, 7, 3]), torch.Size([5, 7]))
    """

    def __init__(self, size: int, *, n_layers: int, hidden: int) -> None:
        super().__init__()
        start = torch.linalg.qr(torch.randn(n_layers, size, size)).Q  # a rotation: stretches nothing
        self.mixing = nn.Parameter(start.contiguous())
        self.couplings = nn.ModuleList(Coupling(size, hidden=hidden) for _ in range(n_layers))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Points ``(..., d)`` -> moved points and log |det|."""
        log_det = z.new_zeros(z.shape[:-1])
        mixed = torch.linalg.slogdet(self.mixing).logabsdet  # (k,)
        for k, coupling in enumerate(self.couplings):
            z, stretched = coupling(z @ self.mixing[k].T)
            log_det = log_det + stretched + mixed[k]
        return z, log_det

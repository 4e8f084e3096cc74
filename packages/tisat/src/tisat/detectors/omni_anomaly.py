"""OmniAnomaly: a recurrent variational autoencoder.

The score is how improbable it finds the last row.

Su, Zhao, Niu, Liu, Sun, Pei, "Robust Anomaly Detection for Multivariate Time Series through Stochastic Recurrent Neural
Network", KDD 2019. The parts that make it itself are in :mod:`tisat.detectors.networks.omni_anomaly`: GRUs on both sides, latent variables
that are told their predecessor, planar flows in the posterior, a linear Gaussian state-space model as prior.

The paper's threshold, peaks over threshold fitted to the scores, is no part of this detector: any
detector's scores get their threshold from the alarm layer.
"""

from __future__ import annotations

from tisat.detectors._variational import VariationalDetector, deviance_residuals
from tisat.detectors.networks import torch
from tisat.detectors.networks.omni_anomaly import OmniAnomalyNetwork, gaussian_log_density
from tisat.utils.parameters import integer, real
from tisat.utils.types import Params


class OmniAnomaly(VariationalDetector[OmniAnomalyNetwork]):
    """Negative log-probability of the newest row under a stochastic recurrent network, channel by channel.

    Notes
    -----
    Score: ``-log p(x_t | z)`` of the last row of the window that ends at t, one term a channel, measured from
    the highest density that epsilon allows so that it is never negative; the ranking of rows is the paper's.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.sin(np.arange(400)[:, None] / np.array([5.0, 7.0]))
    >>> detector = OmniAnomaly(window=12, hidden=8, dense=8, n_flows=2, epochs=1, stride=4).fit(train)
    >>> detector.points(train).shape
    (400, 2)
    >>> sorted(detector.history_[0])
    ['divergence', 'epoch', 'likelihood', 'loss', 'validation']
    """

    window: int = integer(compact=40, paper=100, doc="Rows the network sees: T + 1 in the paper.")
    hidden: int = integer(compact=32, paper=500, at_least=1, doc="Units of the GRUs.")
    latent: int = integer(3, at_least=1, doc="Latent variables of a row.")
    n_flows: int = integer(compact=8, paper=20, at_least=1, doc="Planar flows of the posterior.")
    floor: float = real(
        compact=1e-2,
        paper=1e-4,
        above=0.0,
        at_most=1.0,
        doc="epsilon: the smallest standard deviation, in units of a channel's training range.",
    )
    n_samples: int = integer(compact=4, paper=1, at_least=1, doc="Latent samples a window is scored with.")
    epochs: int = integer(compact=12, paper=20)
    batch_size: int = integer(compact=64, paper=50)

    @classmethod
    def _test_params(cls) -> Params:
        return {
            "window": 8, "hidden": 8, "dense": 8, "latent": 2, "n_flows": 2, "n_samples": 2, "epochs": 2, "stride": 4,
            "learning_rate": 1e-2,
        }  # fmt: skip

    def _network(self, n_channels: int) -> OmniAnomalyNetwork:
        return OmniAnomalyNetwork(
            n_channels, hidden=self.hidden, dense=self.dense, latent=self.latent, n_flows=self.n_flows, floor=self.floor
        )

    def _halves(
        self, network: OmniAnomalyNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log p(x | z) and the divergence, ``(b,)`` each, per row."""
        shape = (*batch.shape[:2], self.latent)
        noise = torch.randn(shape, generator=generator, device=batch.device)
        likelihood, divergence = network.evidence_bound(batch, noise)
        return likelihood / batch.shape[1], divergence / batch.shape[1]

    def _window_points(
        self, network: OmniAnomalyNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        shape = (self.n_samples, 1, batch.shape[1], self.latent)  # the same noise for every window
        noise = torch.randn(shape, generator=generator, device=batch.device)
        mean, deviation = network.decode(network.encode(batch, noise).z)  # (n, b, T, C)
        density = gaussian_log_density(batch[:, -1], mean[:, :, -1], deviation[:, :, -1])
        return deviance_residuals(density.mean(dim=0), floor=self.floor)

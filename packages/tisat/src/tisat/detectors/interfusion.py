"""InterFusion: two views of a window, one short in time and one narrow in channels; the score is how improbable they find the newest row.

Li, Zhao, Han, Su, Jiao, Wen, Pei, "Multivariate Time Series Anomaly Detection and Interpretation using Hierarchical
Inter-Metric and Temporal Embedding", KDD 2021. The network is in :mod:`tisat.detectors.networks.interfusion`.

An anomalous row spoils the embedding that should have told it from a normal one. So before a window is scored its last row
is taken out and imputed by MCMC, and the row as it was is compared with what the embedding of the
imputed window expects. This module knows no thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tisat.detectors._training import Batches, Losses, Optimizers, Phase
from tisat.detectors._variational import VariationalDetector, deviance_residuals
from tisat.detectors.networks import torch
from tisat.detectors.networks.interfusion import SMALLEST, InterFusionNetwork, impute
from tisat.detectors.networks.omni_anomaly import gaussian_log_density
from tisat.utils.parameters import integer
from tisat.utils.types import Params


class InterFusion(VariationalDetector[InterFusionNetwork]):
    """Negative log-probability of the newest row under a hierarchical autoencoder that was not shown it, channel by channel.

    Notes
    -----
    Score: ``-log p(x_t | z)`` of the last row of the window that ends at t, one term a channel, z from the window whose last
    row was imputed; measured from the highest density the decoder can give, so that it is never negative.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.sin(np.arange(400)[:, None] / np.array([5.0, 7.0]))
    >>> detector = InterFusion(window=16, hidden=8, dense=8, n_flows=2, epochs=1, pretrain_epochs=1, stride=4).fit(train)
    >>> detector.points(train).shape
    (400, 2)
    >>> sorted(detector.history_[0])
    ['divergence', 'epoch', 'likelihood', 'loss', 'validation']
    """

    window: int = integer(compact=40, paper=100, at_least=8)
    hidden: int = integer(compact=32, paper=500, at_least=1, doc="Units of the GRU.")
    latent: int = integer(3, at_least=2, doc="Latent variables of a row in z1.")
    n_flows: int = integer(compact=4, paper=20, at_least=1, doc="RealNVP layers of the posterior of z1.")
    coupling: int = integer(compact=32, paper=100, at_least=1, doc="Units of the network inside each RealNVP layer.")
    n_steps: int = integer(
        compact=5,
        paper=10,
        at_least=0,
        doc="Steps of the MCMC imputation of the last row; 0 embeds the window as it is.",
    )
    n_chains: int = integer(
        compact=2, paper=10, at_least=1, doc="Chains, each with its own noise; the imputed row is their mean."
    )
    n_samples: int = integer(compact=4, paper=100, at_least=1, doc="Latent samples a window is scored with.")
    pretrain_epochs: int = integer(
        compact=10, paper=20, at_least=0, doc="Epochs of the first stage, which trains z2 alone (prefiltering)."
    )
    halve_every: int = integer(10, at_least=1, doc="Epochs after which the learning rate is halved, in both stages.")
    epochs: int = integer(compact=20, paper=20, doc="Epochs of the second stage; 0 gives the untrained network.")
    batch_size: int = integer(compact=64, paper=100)

    @classmethod
    def _test_params(cls) -> Params:
        return {
            "window": 8, "hidden": 8, "dense": 8, "latent": 2, "n_flows": 1, "n_steps": 1, "n_chains": 2, "n_samples": 2,
            "pretrain_epochs": 2, "epochs": 2, "stride": 4, "learning_rate": 1e-2,
        }  # fmt: skip

    def _network(self, n_channels: int) -> InterFusionNetwork:
        return InterFusionNetwork(
            n_channels,
            window=self.window,
            hidden=self.hidden,
            dense=self.dense,
            latent=self.latent,
            n_flows=self.n_flows,
            coupling=self.coupling,
        )

    # ------------------------------------------------------------------ the first stage

    def _phases(self, network: InterFusionNetwork) -> Sequence[Phase]:
        """First an autoencoder with z2 alone, so that d is a sensible window before z1 learns from it."""
        learned = network.first_stage_parameters()
        optimizer = torch.optim.Adam(learned, lr=self.learning_rate, weight_decay=self.weight_decay)

        def step(batch: torch.Tensor, generator: torch.Generator) -> Losses:
            noise = torch.randn(len(batch), *network.shape, generator=generator, device=batch.device)
            loss = -network.first_stage_bound(batch, noise).mean() / batch.shape[1]
            self._descend(optimizer, loss)
            return {"loss": loss}

        def after_epoch(batches: Batches, done: int, epochs: int) -> None:
            self._halve(optimizer, done)

        epochs = self.pretrain_epochs if self.epochs else 0
        return [
            Phase("first stage", epochs, {"all": optimizer}, step, after_epoch=after_epoch),
            self._main_phase(network),
        ]

    def _halve(self, optimizer: torch.optim.Optimizer, done: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate * 0.5 ** (done // self.halve_every)

    # ------------------------------------------------------------------ the second stage

    def _halves(
        self, network: InterFusionNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log p(x | z) and the divergence, ``(b,)`` each, per row."""
        noise = network.noise((len(batch),), batch.shape[1], generator=generator)
        likelihood, divergence = network.evidence_bound(batch, noise)
        return likelihood / batch.shape[1], divergence / batch.shape[1]

    def _after_epoch(
        self, network: InterFusionNetwork, batches: Batches, optimizers: Optimizers, done: int, epochs: int
    ) -> None:
        self._halve(optimizers["all"], done)

    # ------------------------------------------------------------------ scoring

    def _imputed(self, network: InterFusionNetwork, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Windows whose last row is the mean of what ``n_chains`` chains of the model end with, given the rows before it."""

        def draw(windows: torch.Tensor) -> torch.Tensor:  # (n, b, T, C): a chain's noise is the same for every window
            noise = network.noise((self.n_chains, 1), windows.shape[-2], generator=generator)
            mean, deviation = network.last_row(windows, noise)
            row = mean + deviation * torch.randn(
                self.n_chains, 1, mean.shape[-1], generator=generator, device=mean.device
            )
            return row[..., None, :]

        last = (torch.arange(batch.shape[1], device=batch.device) == batch.shape[1] - 1)[:, None]
        chains = impute(batch[None], last, draw, n_steps=self.n_steps)  # the first draw makes them differ
        return chains.mean(dim=0)

    def _window_points(
        self, network: InterFusionNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        shown = self._imputed(network, batch, generator)
        noise = network.noise((self.n_samples, 1), batch.shape[1], generator=generator)
        density = gaussian_log_density(batch[:, -1], *network.last_row(shown, noise))  # (n, b, C)
        return deviance_residuals(density.mean(dim=0), floor=math.exp(SMALLEST))

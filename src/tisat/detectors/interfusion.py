"""InterFusion: two views of a window, one short in time and one narrow in channels; the score is how improbable they find the newest row.

Li, Zhao, Han, Su, Jiao, Wen, Pei, "Multivariate Time Series Anomaly Detection and Interpretation using Hierarchical
Inter-Metric and Temporal Embedding", KDD 2021. The network is in :mod:`tisat.nn.interfusion`. Section numbers are the paper's.

An anomalous row spoils the embedding that should have told it from a nominal one. So before a window is scored its last row
is taken out and imputed by MCMC (section 3.5), and the row as it was is compared with what the embedding of the
imputed window expects. This module knows no thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from tisat._extras import require
from tisat._validation import check_integer, check_real
from tisat.detectors._neural import Batches, Optimizers
from tisat.detectors._preset import PresetDetector
from tisat.detectors._variational import check_divergence, deviance_residuals

if TYPE_CHECKING:
    import torch

    from tisat.nn.interfusion import InterFusionNetwork
else:
    torch = require("torch", whose="InterFusion")

MIXED = 64  # batches of the first stage that are mixed with each other


class InterFusion(PresetDetector):
    """Negative log-probability of the newest row under a hierarchical autoencoder that was not shown it, channel by channel.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. ``"paper"``: section 4.1 and the authors' released configuration (window
        100, 500 GRU and dense units, 3 latent variables an instant, 20 RealNVP layers, 20 + 20 epochs, batches of 100,
        learning rate 1e-3 halved every 10 epochs, L2 1e-4, 30 % for validation, chains of 10, 100 samples).
        ``"compact"``: the same network, narrower, on every other window.
    window : int
        Rows the network sees, at least 8.
    hidden, dense : int
        Units of the GRU and of the dense layers.
    latent : int
        Latent variables an instant in z1, at least 2.
    n_flows : int
        RealNVP layers of the posterior of z1.
    n_steps : int
        Steps of the MCMC imputation of the last row; 0 embeds the window as it is.
    n_samples : int
        Latent samples a window is scored with.
    pretrain_epochs : int
        Epochs of the first stage, which trains z2 alone (section 3.3, prefiltering).
    halve_every : int
        Epochs after which the learning rate is halved, in both stages.
    weight_decay : float
        Coefficient of the L2 penalty.
    epochs, batch_size, learning_rate, stride, validation, patience, gradient_clip, device, random_state
        Of the second stage; see ``docs/detectors/interfusion.md``. 0 epochs give the untrained network, without the first
        stage.

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

    points_are_channels = True
    rounding = 1e-3
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {
            "window": 40, "hidden": 32, "dense": 32, "n_flows": 4, "n_steps": 5, "n_samples": 4, "pretrain_epochs": 10,
            "epochs": 20, "batch_size": 64, "learning_rate": 3e-3, "stride": 2, "validation": 0.1,
        },
        "paper": {
            "window": 100, "hidden": 500, "dense": 500, "n_flows": 20, "n_steps": 10, "n_samples": 100,
            "pretrain_epochs": 20, "epochs": 20, "batch_size": 100, "learning_rate": 1e-3, "stride": 1,
            "validation": 0.3,
        },
    }  # fmt: skip

    window: Any
    hidden: Any
    dense: Any
    n_flows: Any
    n_steps: Any
    n_samples: Any
    pretrain_epochs: Any
    epochs: Any
    batch_size: Any
    learning_rate: Any
    stride: Any
    validation: Any

    def __init__(
        self,
        *,
        preset: str = "compact",
        window: int | None = None,
        hidden: int | None = None,
        dense: int | None = None,
        latent: int = 3,
        n_flows: int | None = None,
        n_steps: int | None = None,
        n_samples: int | None = None,
        pretrain_epochs: int | None = None,
        halve_every: int = 10,
        weight_decay: float = 1e-4,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        stride: int | None = None,
        validation: float | None = None,
        patience: int = 5,
        gradient_clip: float = 10.0,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.window = window
        self.hidden = hidden
        self.dense = dense
        self.latent = latent
        self.n_flows = n_flows
        self.n_steps = n_steps
        self.n_samples = n_samples
        self.pretrain_epochs = pretrain_epochs
        self.halve_every = halve_every
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.stride = stride
        self.validation = validation
        self.patience = patience
        self.gradient_clip = gradient_clip
        self.device = device
        self.random_state = random_state

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {
            "window": 8, "hidden": 8, "dense": 8, "latent": 2, "n_flows": 1, "n_steps": 2, "n_samples": 2,
            "pretrain_epochs": 2, "epochs": 2, "stride": 4, "learning_rate": 1e-2,
        }  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whose = type(self).__name__
        for name in ("hidden", "dense", "n_flows", "n_samples", "halve_every"):
            check_integer(getattr(self, name), name, whose, minimum=1)
        for name in ("n_steps", "pretrain_epochs"):
            check_integer(getattr(self, name), name, whose, minimum=0)
        check_integer(self.latent, "latent", whose, minimum=2)
        check_integer(self.window, "window", whose, minimum=8)
        check_real(self.weight_decay, "weight_decay", whose, at_least=0.0)

    def _network(self, n_channels: int) -> torch.nn.Module:
        from tisat.nn.interfusion import InterFusionNetwork

        return InterFusionNetwork(
            n_channels,
            window=self.window,
            hidden=self.hidden,
            dense=self.dense,
            latent=self.latent,
            n_flows=self.n_flows,
            pretrain_epochs=self.pretrain_epochs,
        )

    # ------------------------------------------------------------------ the first stage

    def _before_training(self, network: InterFusionNetwork, batches: Batches) -> None:  # type: ignore[override]
        """The first stage: an autoencoder with z2 alone, so that d is a sensible window before z1 learns from it."""
        rate = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        optimizer = torch.optim.Adam(network.first_stage_parameters(), **rate)
        network.train()
        for epoch in range(self.pretrain_epochs if self.epochs else 0):
            total, seen = 0.0, 0
            for batch in self._shuffled(batches()):
                with torch.enable_grad():
                    noise = torch.randn(len(batch), *network.shape, device=batch.device)
                    loss = -network.first_stage_bound(batch, noise).mean() / batch.shape[1]
                    self._descend(optimizer, loss)
                total += len(batch) * self._finite(
                    float(loss.detach()), f"loss in epoch {epoch + 1} of the first stage"
                )
                seen += len(batch)
            network.pretraining_losses[epoch] = total / seen
            self._halve(optimizer, epoch)

    def _shuffled(self, batches: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
        """The same windows, mixed within stretches of ``MIXED`` batches: neighbours in time are nearly equal."""
        while stretch := list(islice(batches, MIXED)):
            windows = torch.cat(stretch)
            order = torch.randperm(len(windows), device=windows.device)
            for first in range(0, len(windows), self.batch_size):
                yield windows[order[first : first + self.batch_size]]

    def _halve(self, optimizer: torch.optim.Optimizer, epoch: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate * 0.5 ** ((epoch + 1) // self.halve_every)

    # ------------------------------------------------------------------ the second stage

    def _optimizers(self, network: torch.nn.Module) -> Optimizers:
        decay = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        return {"all": torch.optim.Adam(network.parameters(), **decay)}

    def _halves(
        self, network: InterFusionNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log p(x | z) and the divergence, ``(b,)`` each, per instant."""
        noise = network.noise((len(batch),), batch.shape[1], generator=generator)
        likelihood, divergence = network.evidence_bound(batch, noise)
        return likelihood / batch.shape[1], divergence / batch.shape[1]

    def _loss(  # type: ignore[override]
        self, network: InterFusionNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        likelihood, divergence = self._halves(network, batch, generator)
        return (divergence - likelihood).mean()

    def _training_step(  # type: ignore[override]
        self, network: InterFusionNetwork, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        likelihood, divergence = (half.mean() for half in self._halves(network, batch, generator))
        loss = divergence - likelihood
        self._descend(optimizers["all"], loss)
        return {"loss": loss, "likelihood": likelihood, "divergence": divergence}

    def _after_epoch(self, network: torch.nn.Module, batches: Batches, optimizers: Optimizers, epoch: int) -> None:
        self._halve(optimizers["all"], epoch)

    def _after_training(self, network: InterFusionNetwork, batches: Batches) -> None:  # type: ignore[override]
        generator = torch.Generator(device=self._device).manual_seed(self.random_state)
        estimates = [self._halves(network, batch, generator)[1] for batch in islice(batches(), 8)]
        check_divergence(torch.cat(estimates), whose=type(self).__name__)

    # ------------------------------------------------------------------ scoring

    def _imputed(self, network: InterFusionNetwork, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Windows whose last row is a draw of the model, given the rows before it."""
        from tisat.nn.interfusion import impute

        last = torch.zeros(batch.shape[1:], dtype=torch.bool, device=batch.device)
        last[-1] = True

        def draw(windows: torch.Tensor) -> torch.Tensor:
            noise = network.noise((1,), windows.shape[1], generator=generator)  # the same for every window
            mean, deviation = network.decode(network.encode(windows, noise))
            return mean + deviation * torch.randn(1, *mean.shape[1:], generator=generator, device=mean.device)

        return impute(batch, last, draw, n_steps=self.n_steps)

    def _window_points(  # type: ignore[override]
        self, network: InterFusionNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        from tisat.nn.interfusion import SMALLEST
        from tisat.nn.omni_anomaly import gaussian_log_density

        shown = self._imputed(network, batch, generator)
        noise = network.noise((self.n_samples, 1), batch.shape[1], generator=generator)
        mean, deviation = network.decode(network.encode(shown, noise))  # (n, b, T, C)
        density = gaussian_log_density(batch[:, -1], mean[:, :, -1], deviation[:, :, -1])
        return deviance_residuals(density.mean(dim=0), floor=math.exp(SMALLEST))

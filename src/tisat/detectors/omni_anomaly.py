"""OmniAnomaly: a recurrent variational autoencoder; the score is how improbable it finds the last instant.

Su, Zhao, Niu, Liu, Sun, Pei, "Robust Anomaly Detection for Multivariate Time Series through Stochastic Recurrent Neural
Network", KDD 2019. The parts that make it itself are in :mod:`tisat.nn.omni_anomaly`: GRUs on both sides, latent variables
that are told their predecessor, planar flows in the posterior, a linear Gaussian state-space model as prior. Equation and
section numbers are the paper's.

The paper's threshold, peaks over threshold fitted to the scores (section 3.5), is no part of this detector: any
detector's scores get their threshold from the alarm layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from tisat._extras import require
from tisat._validation import check_integer, check_real
from tisat.detectors._neural import Batches, Optimizers
from tisat.detectors._preset import PresetDetector
from tisat.detectors._variational import check_divergence, deviance_residuals

if TYPE_CHECKING:
    import torch

    from tisat.nn.omni_anomaly import OmniAnomalyNetwork
else:
    torch = require("torch", whose="OmniAnomaly")


class OmniAnomaly(PresetDetector):
    """Negative log-probability of the newest row under a stochastic recurrent network, channel by channel.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. ``"paper"``: section 4.2 and the authors' released configuration (window
        100, 500 GRU and dense units, 3 latent variables, 20 planar flows, epsilon 1e-4, L2 1e-4, batches of 50, learning
        rate 1e-3, 20 epochs, 30 % for validation). ``"compact"``: the same network, narrower, on every other window.
    window : int
        Rows the network sees: T + 1 in the paper.
    hidden, dense : int
        Units of the GRUs and of the dense layers.
    latent : int
        Latent variables an instant.
    n_flows : int
        Planar flows, K in eq. (3).
    floor : float
        epsilon in eqs. (2) and (6): the smallest standard deviation, in units of a channel's training range.
    n_samples : int
        Latent samples a window is scored with.
    weight_decay : float
        Coefficient of the L2 penalty.
    epochs, batch_size, learning_rate, stride, validation, patience, gradient_clip, device, random_state
        Of training; see ``docs/detectors/omni-anomaly.md``. 0 epochs give the untrained network.

    Notes
    -----
    Score: ``-log p(x_t | z)`` of the last row of the window that ends at t (section 3.4), one term a channel, measured from
    the highest density that epsilon allows so that it is never negative; the ranking of instants is the paper's.

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

    points_are_channels = True
    rounding = 1e-3
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {
            "window": 40, "hidden": 32, "dense": 32, "n_flows": 8, "floor": 1e-2, "n_samples": 4, "epochs": 12,
            "batch_size": 64, "learning_rate": 3e-3, "stride": 2, "validation": 0.1,
        },
        "paper": {
            "window": 100, "hidden": 500, "dense": 500, "n_flows": 20, "floor": 1e-4, "n_samples": 1, "epochs": 20,
            "batch_size": 50, "learning_rate": 1e-3, "stride": 1, "validation": 0.3,
        },
    }  # fmt: skip

    window: Any
    hidden: Any
    dense: Any
    n_flows: Any
    floor: Any
    n_samples: Any
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
        floor: float | None = None,
        n_samples: int | None = None,
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
        self.floor = floor
        self.n_samples = n_samples
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
            "window": 8, "hidden": 8, "dense": 8, "latent": 2, "n_flows": 2, "n_samples": 2, "epochs": 2, "stride": 4,
            "learning_rate": 1e-2,
        }  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whose = type(self).__name__
        for name in ("hidden", "dense", "latent", "n_flows", "n_samples"):
            check_integer(getattr(self, name), name, whose, minimum=1)
        check_real(self.floor, "floor", whose, above=0.0, at_most=1.0)
        check_real(self.weight_decay, "weight_decay", whose, at_least=0.0)

    def _network(self, n_channels: int) -> torch.nn.Module:
        from tisat.nn.omni_anomaly import OmniAnomalyNetwork

        return OmniAnomalyNetwork(
            n_channels, hidden=self.hidden, dense=self.dense, latent=self.latent, n_flows=self.n_flows, floor=self.floor
        )

    def _optimizers(self, network: torch.nn.Module) -> Optimizers:
        decay = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        return {"all": torch.optim.Adam(network.parameters(), **decay)}

    def _halves(
        self, network: OmniAnomalyNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log p(x | z) and the divergence, ``(b,)`` each, per instant."""
        shape = (*batch.shape[:2], self.latent)
        noise = torch.randn(shape, generator=generator, device=batch.device)
        likelihood, divergence = network.evidence_bound(batch, noise)
        return likelihood / batch.shape[1], divergence / batch.shape[1]

    def _loss(  # type: ignore[override]
        self, network: OmniAnomalyNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        likelihood, divergence = self._halves(network, batch, generator)
        return (divergence - likelihood).mean()  # eq. (7), negated, an instant

    def _training_step(  # type: ignore[override]
        self, network: OmniAnomalyNetwork, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        likelihood, divergence = (half.mean() for half in self._halves(network, batch, generator))
        loss = divergence - likelihood
        self._descend(optimizers["all"], loss)
        return {"loss": loss, "likelihood": likelihood, "divergence": divergence}

    def _after_training(self, network: OmniAnomalyNetwork, batches: Batches) -> None:  # type: ignore[override]
        generator = torch.Generator(device=self._device).manual_seed(self.random_state)
        estimates = [self._halves(network, batch, generator)[1] for batch in islice(batches(), 8)]
        check_divergence(torch.cat(estimates), whose=type(self).__name__)

    def _window_points(  # type: ignore[override]
        self, network: OmniAnomalyNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        from tisat.nn.omni_anomaly import gaussian_log_density

        shape = (self.n_samples, 1, batch.shape[1], self.latent)  # the same noise for every window
        noise = torch.randn(shape, generator=generator, device=batch.device)
        mean, deviation = network.decode(network.encode(batch, noise).z)  # (n, b, T, C)
        density = gaussian_log_density(batch[:, -1], mean[:, :, -1], deviation[:, :, -1])  # section 3.4
        return deviance_residuals(density.mean(dim=0), floor=self.floor)

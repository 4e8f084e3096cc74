"""LSTM-VAE: a variational autoencoder that runs along time; the score is how unlikely the newest row is.

Park, Hoshi, Kemp, "A Multimodal Anomaly Detector for Robot-Assisted Feeding Using an LSTM-Based Variational Autoencoder",
IEEE RA-L 2018 (arXiv 1711.00614); several other papers share the name. Its parts, by section III: an LSTM encoder that
gives a mean and a variance of the latent state at every instant; a prior whose centre moves with the progress of the
execution; an LSTM decoder that gives a mean and a variance of the row; noise on the input, none on the target; the
negative log-likelihood as score; and a threshold that depends on the latent state, learned by support vector regression.

Encoder and decoder run forwards only, so the score of a row never depends on later ones. The detector knows no
executions with a beginning and an end: progress is the place in the window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.svm import SVR

from tisat._extras import require
from tisat._validation import check_choice, check_integer, check_real
from tisat.base import Array
from tisat.detectors._neural import Batches
from tisat.detectors._preset import PresetDetector

if TYPE_CHECKING:
    import torch
    from torch.nn import functional
else:
    torch = require("torch", whose="LSTMVAE")
    functional = torch.nn.functional

# b batch, t time, c channel, z latent state, s support vector

THRESHOLDS = ("constant", "state")
SUPPORT = 500  # latent states the state-based threshold is learned from
LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def divergence(mean: torch.Tensor, variance: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """KL of N(mean, variance) from N(centre, 1), summed over the latent axis: the progress-based regulariser.

    Examples
    --------
    >>> float(divergence(torch.ones(3), torch.ones(3), torch.ones(3)))
    0.0
    """
    return 0.5 * (variance + (centre - mean) ** 2 - 1.0 - torch.log(variance)).sum(dim=-1)


def negative_log_likelihood(rows: torch.Tensor, mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
    """``-log N(x; mu, sigma²)`` of each channel."""
    return 0.5 * ((rows - mean) / spread) ** 2 + torch.log(spread) + LOG_ROOT_2PI


class VariationalLSTM(torch.nn.Module):
    """Encoder, decoder, prior, and the support vectors of the state-based threshold."""

    support: torch.Tensor  # (s, z) latent states
    coefficients: torch.Tensor  # (s,) 0 where there is no support vector
    intercept: torch.Tensor  # ()
    gamma: torch.Tensor  # () of the radial kernel

    def __init__(self, n_channels: int, hidden: int, latent: int, smallest_spread: float) -> None:
        super().__init__()
        self.smallest_spread = smallest_spread
        self.encoder = torch.nn.LSTM(n_channels, hidden, batch_first=True)
        self.to_latent = torch.nn.Linear(hidden, 2 * latent)
        self.decoder = torch.nn.LSTM(latent, hidden, batch_first=True)
        self.to_rows = torch.nn.Linear(hidden, 2 * n_channels)
        self.first = torch.nn.Parameter(torch.full((latent,), -0.5))  # p_1, the prior's centre when a window begins
        self.last = torch.nn.Parameter(torch.full((latent,), 0.5))  # p_T, when it ends
        self.register_buffer("support", torch.zeros(SUPPORT, latent))
        self.register_buffer("coefficients", torch.zeros(SUPPORT))
        self.register_buffer("intercept", torch.zeros(()))
        self.register_buffer("gamma", torch.ones(()))

    def prior(self, length: int) -> torch.Tensor:
        """Centres ``(t, z)`` of the prior: from p_1 to p_T in a straight line, section III-B."""
        progress = torch.linspace(0.0, 1.0, length, device=self.first.device)[:, None]
        return (1 - progress) * self.first + progress * self.last

    def encode(self, windows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance ``(b, t, z)`` of the latent state."""
        mean, raw = self.to_latent(self.encoder(windows)[0]).chunk(2, dim=-1)
        return mean, functional.softplus(raw) + 1e-6

    def decode(self, latent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation ``(b, t, c)`` of the rows."""
        mean, raw = self.to_rows(self.decoder(latent)[0]).chunk(2, dim=-1)
        return mean, functional.softplus(raw) + self.smallest_spread

    def expected(self, latent: torch.Tensor) -> torch.Tensor:
        """The score to expect in each latent state ``(b, z)``, ``(b,)``: support vector regression, section III-D."""
        kernel = torch.exp(-self.gamma * torch.cdist(latent, self.support) ** 2)  # (b, s)
        return kernel @ self.coefficients + self.intercept


class LSTMVAE(PresetDetector):
    """Negative log-likelihood of the newest row under the row distribution that the decoder expects.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. The paper gives no table of sizes; ``"paper"`` is a large network on every
        window, trained at learning rate 1e-3.
    threshold : {"constant", "state"}
        ``"constant"``: the score is the negative log-likelihood, to be compared with one level. ``"state"``: it is what is left
        of it after the score to expect in the present latent state is taken away, so that a level c on it is the paper's
        state-based threshold ``f(z) + c``.
    window : int
        Rows of one window.
    hidden, latent : int
        Width of both LSTMs, and dimension of the latent state.
    noise : float
        Standard deviation of the noise on the input in training, in training ranges.
    divergence_weight : float
        Of the regulariser; 1 is the variational bound.
    smallest_spread : float
        Floor of a channel's standard deviation, in training ranges. Without it the likelihood of a channel that never moves
        has no upper bound.
    epochs, batch_size, learning_rate, stride, validation, patience, device, random_state
        Of training; see ``docs/detectors/lstm-vae.md``. 0 epochs give the untrained network.

    Notes
    -----
    Points are the channels' negative log-likelihoods, of rows in training ranges, above the least there can be (a row met
    exactly, with the smallest spread); the score is their sum: the negative log-likelihood but for a constant, and never
    negative, except with the state-based threshold. The latent state is its mean when scoring; it is drawn in training.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.stack([np.sin(np.arange(400) / 5.0), np.cos(np.arange(400) / 5.0)], axis=1)
    >>> detector = LSTMVAE(window=10, hidden=8, latent=2, epochs=3).fit(train)
    >>> detector.points(train).shape
    (400, 2)
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {
            "window": 32, "hidden": 32, "latent": 8, "epochs": 15, "stride": 4, "batch_size": 64, "learning_rate": 3e-3,
        },
        "paper": {
            "window": 100, "hidden": 128, "latent": 20, "epochs": 100, "stride": 1, "batch_size": 256, "learning_rate": 1e-3,
        },
    }  # fmt: skip
    points_are_channels = True
    rounding = 1e-3

    window: Any
    hidden: Any
    latent: Any
    epochs: Any
    stride: Any
    batch_size: Any
    learning_rate: Any

    def __init__(
        self,
        *,
        preset: str = "compact",
        threshold: str = "constant",
        window: int | None = None,
        hidden: int | None = None,
        latent: int | None = None,
        noise: float = 0.1,
        divergence_weight: float = 1.0,
        smallest_spread: float = 0.01,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        stride: int | None = None,
        validation: float = 0.1,
        patience: int = 4,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.threshold = threshold
        self.window = window
        self.hidden = hidden
        self.latent = latent
        self.noise = noise
        self.divergence_weight = divergence_weight
        self.smallest_spread = smallest_spread
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.stride = stride
        self.validation = validation
        self.patience = patience
        self.device = device
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.threshold, "threshold", "LSTMVAE", choices=THRESHOLDS)
        for name in ("hidden", "latent"):
            check_integer(getattr(self, name), name, "LSTMVAE", minimum=1)
        check_real(self.noise, "noise", "LSTMVAE", at_least=0.0)
        check_real(self.divergence_weight, "divergence_weight", "LSTMVAE", at_least=0.0)
        check_real(self.smallest_spread, "smallest_spread", "LSTMVAE", above=0.0)

    def _network(self, n_channels: int) -> VariationalLSTM:
        return VariationalLSTM(n_channels, self.hidden, self.latent, self.smallest_spread)

    def _least(self) -> float:
        """The least negative log-likelihood of one channel."""
        return math.log(self.smallest_spread) + LOG_ROOT_2PI

    def _loss(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Minus the bound, a row: the likelihood of the clean rows, given the noisy ones, and the regulariser."""
        assert isinstance(network, VariationalLSTM)
        noise = torch.randn(batch.shape, generator=generator, device=batch.device)
        noisy = batch + self.noise * noise if network.training else batch
        mean, variance = network.encode(noisy)
        drawn = torch.randn(mean.shape, generator=generator, device=batch.device)
        rows, spread = network.decode(mean + torch.sqrt(variance) * drawn)
        likelihood = negative_log_likelihood(batch, rows, spread).sum(dim=-1)  # (b, t)
        prior = network.prior(batch.shape[1])
        return (likelihood + self.divergence_weight * divergence(mean, variance, prior)).mean()

    def _newest(self, network: VariationalLSTM, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Negative log-likelihood of the last rows ``(b, c)``, and the latent states ``(b, z)`` there."""
        latent, _ = network.encode(batch)
        rows, spread = network.decode(latent)
        return negative_log_likelihood(batch[:, -1], rows[:, -1], spread[:, -1]), latent[:, -1]

    def _after_training(self, network: torch.nn.Module, batches: Batches) -> None:
        if self.threshold == "constant":
            return
        assert isinstance(network, VariationalLSTM)
        pairs = [self._newest(network, batch) for batch in batches()]
        scores = torch.cat([likelihood.sum(dim=1) for likelihood, _ in pairs]).cpu().double().numpy()
        states = torch.cat([latent for _, latent in pairs]).cpu().double().numpy()
        chosen = np.linspace(0, len(scores) - 1, min(SUPPORT, len(scores))).astype(np.int64)
        regression = SVR(kernel="rbf").fit(states[chosen], scores[chosen])  # section III-D
        used = len(regression.support_)
        network.support[:used] = torch.from_numpy(regression.support_vectors_).float()
        network.coefficients.zero_()
        network.coefficients[:used] = torch.from_numpy(regression.dual_coef_[0]).float()
        network.intercept.fill_(float(regression.intercept_[0]))
        network.gamma.fill_(float(regression._gamma))

    def _window_points(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        assert isinstance(network, VariationalLSTM)
        likelihood, latent = self._newest(network, batch)
        if self.threshold == "state":
            return likelihood - network.expected(latent)[:, None] / self.n_channels_
        return likelihood - self._least()

    def aggregate(self, points: Array) -> Array:
        """The sum over channels: minus the log-likelihood."""
        return np.asarray(points.sum(axis=1))

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"window": 8, "hidden": 8, "latent": 2, "epochs": 2, "stride": 4, "learning_rate": 1e-2}

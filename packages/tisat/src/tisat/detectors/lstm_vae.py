"""LSTM-VAE: a variational autoencoder that runs along time.

The score is how unlikely the newest row is.

Park, Hoshi, Kemp, "A Multimodal Anomaly Detector for Robot-Assisted Feeding Using an LSTM-Based Variational Autoencoder",
IEEE RA-L 2018 (arXiv 1711.00614); several other papers share the name. Its parts, by section III: an LSTM encoder that
gives a mean and a variance of the latent state at every row; a prior whose centre moves with the progress of the
execution; an LSTM decoder that gives a mean and a variance of the row; noise on the input, none on the target; the
negative log-likelihood as score; and a threshold that depends on the latent state, learned by support vector regression.

Encoder and decoder run forwards only, so the score of a row never depends on later ones. The detector knows no
executions with a beginning and an end: progress is the place in the window.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.svm import SVR

from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Batches
from tisat.detectors.base import Array, Traits
from tisat.detectors.networks import torch
from tisat.detectors.networks.lstm_vae import (
    LOG_ROOT_2PI,
    SUPPORT,
    VariationalLSTM,
    divergence,
    negative_log_likelihood,
)
from tisat.utils.parameters import choice, integer, presets, real
from tisat.utils.types import Params

THRESHOLDS = ("constant", "state")


class LSTMVAE(NeuralDetector[VariationalLSTM]):
    """Negative log-likelihood of the newest row under the row distribution that the decoder expects.

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

    preset: str = presets(compact="sizes for two CPU cores", paper="the authors' released program")

    threshold: str = choice(
        compact="constant",
        paper="state",
        of=THRESHOLDS,
        doc="'constant': the score is the negative log-likelihood, to be compared with one level. 'state': what is left of it after "
        "the score to expect in the present latent state, so that a level c on it is the paper's state-based threshold f(z) + c.",
    )
    window: int = integer(compact=32, paper=100)
    hidden: int | None = integer(
        compact=32, paper=None, at_least=1, none="as many as channels", doc="Width of both LSTMs."
    )
    latent: int = integer(compact=8, paper=3, at_least=1, doc="Dimension of the latent state.")
    noise: float = real(
        compact=0.1,
        paper=0.05,
        at_least=0.0,
        doc="Standard deviation of the noise on the input in training, in training ranges.",
    )
    divergence_weight: float = real(1.0, at_least=0.0, doc="Of the regulariser; 1 is the variational bound.")
    smallest_spread: float = real(
        0.01,
        above=0.0,
        doc="Floor of a channel's standard deviation, in training ranges: without it the likelihood of a channel that never moves "
        "has no upper bound.",
    )
    epochs: int = integer(compact=15, paper=100)
    batch_size: int = integer(compact=64, paper=256)
    learning_rate: float = real(compact=3e-3, paper=1e-3)
    stride: int = integer(compact=4, paper=1)
    patience: int = 4
    gradient_clip: float | None = real(compact=1.0, paper=None, none="not clipped")

    traits: ClassVar[Traits] = replace(NeuralDetector.traits, points_are_channels=True)

    def _network(self, n_channels: int) -> VariationalLSTM:
        return VariationalLSTM(n_channels, self.hidden or n_channels, self.latent, self.smallest_spread)

    def _least(self) -> float:
        """The least negative log-likelihood of one channel."""
        return math.log(self.smallest_spread) + LOG_ROOT_2PI

    def _loss(self, network: VariationalLSTM, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Minus the bound, a row: the likelihood of the clean rows, given the noisy ones, and the regulariser."""
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

    def _after_training(self, network: VariationalLSTM, batches: Batches) -> None:
        if self.threshold == "constant":
            return
        pairs = [self._newest(network, batch) for batch in batches()]
        scores = torch.cat([likelihood.sum(dim=1) for likelihood, _ in pairs]).cpu().double().numpy()
        states = torch.cat([latent for _, latent in pairs]).cpu().double().numpy()
        chosen = np.linspace(0, len(scores) - 1, min(SUPPORT, len(scores))).astype(np.int64)
        regression = SVR(kernel="rbf").fit(states[chosen], scores[chosen])
        used = len(regression.support_)
        network.support[:used] = torch.from_numpy(regression.support_vectors_).float()
        network.coefficients.zero_()
        network.coefficients[:used] = torch.from_numpy(regression.dual_coef_[0]).float()
        network.intercept.fill_(float(regression.intercept_[0]))
        network.gamma.fill_(float(regression._gamma))

    def _window_points(self, network: VariationalLSTM, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        likelihood, latent = self._newest(network, batch)
        if self.threshold == "state":
            return likelihood - network.expected(latent)[:, None] / self.n_channels_
        return likelihood - self._least()

    def aggregate(self, points: Array) -> Array:
        """The sum over channels: minus the log-likelihood."""
        return np.asarray(points.sum(axis=1))

    @classmethod
    def _test_params(cls) -> Params:
        return {"window": 8, "hidden": 8, "latent": 2, "epochs": 2, "stride": 4, "learning_rate": 1e-2}

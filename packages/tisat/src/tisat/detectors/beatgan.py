"""BeatGAN: a convolutional autoencoder whose reconstructions must also deceive a discriminator; the score is their error.

Zhou et al., "BeatGAN: Anomalous Rhythm Detection using Adversarially Generated Time Series", IJCAI 2019. Its parts, all in
section 3: the generator is an encoder and a decoder of strided convolutions; the discriminator, of the encoder's shape, is
trained to tell windows from reconstructions; the generator is trained to reconstruct and, instead of fooling the
discriminator outright, to give it the same features pairwise as the window itself has. Its augmentation by time warping is left out.

The paper cuts heart beats out of a recording; this detector knows no beats: every window of fixed length is one.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import ClassVar

from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Batches, Optimizers
from tisat.detectors.base import Traits
from tisat.detectors.networks import torch
from tisat.detectors.networks.beatgan import Game, feature_matching, initialise
from tisat.utils.parameters import choice, integer, integers, learned, presets, real
from tisat.utils.types import Params
from tisat.utils.validation import check_integer

SCALINGS = ("train", "window")
# A discriminator with a smaller loss teaches nothing and starts again, as in the authors' released loop.
DEFEATED = 5e-6
LEAST_VARIETY = 0.01  # share of the windows' variance below which the reconstructions are all the same


class BeatGAN(NeuralDetector[Game]):
    """Reconstruction error of a window under an autoencoder trained against a discriminator.

    Attributes
    ----------
    variety_ : float
        Variance of the reconstructions over training windows as a share of the windows' own. Near 0 the generator has
        collapsed: it says the same whatever it sees; fitting then warns.

    Notes
    -----
    Points are the channels' root mean squared errors; the score is their mean square. Early stopping watches the
    reconstruction error on a tail of the training rows; the authors' released loop keeps the epoch that is best on
    *labelled* validation beats, which is not offered here. Nor is their scaling of scores by the whole test set's range.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.sin(np.arange(800) / 5.0)
    >>> detector = BeatGAN(window=16, filters=(8, 16), latent=2, epochs=3, stride=1).fit(train)
    >>> sorted(detector.history_[0])
    ['discriminator', 'epoch', 'loss', 'matching', 'reconstruction', 'validation']
    """

    preset: str = presets(compact="sizes for two CPU cores", paper="section 4 and the authors' released options")

    window: int = integer(compact=32, paper=320)
    filters: tuple[int, ...] = integers(
        compact=(32, 64),
        paper=(32, 64, 128, 256, 512),
        at_least=1,
        doc="Filters of the strided convolutions; each halves the window.",
    )
    latent: int = integer(compact=10, paper=50, at_least=1, doc="Numbers a window is compressed to.")
    scored: int | None = integer(
        None,
        at_least=1,
        none="the whole window, as published",
        doc="How many rows, the last of the window, the error is taken over. One row weighs little in a whole window, "
        "and a whole window remembers a fault for as long.",
    )
    scaling: str = choice(
        "train",
        of=SCALINGS,
        doc="'train': each channel by its training range. 'window': each window and channel by its own range, as the authors do "
        "with beats; then levels and sizes are invisible and only shapes count.",
    )
    matching_weight: float = real(
        1.0, at_least=0.0, doc="lambda of the pairwise feature matching loss; 0 is a plain autoencoder."
    )
    epochs: int = integer(compact=12, paper=100)
    learning_rate: float = real(compact=1e-3, paper=1e-4)
    stride: int = integer(compact=4, paper=1)
    patience: int = 4
    gradient_clip: float | None = real(compact=1.0, paper=None, none="not clipped")

    traits: ClassVar[Traits] = replace(
        NeuralDetector.traits, points_are_channels=True, retired={"warped_copies": 0, "warp_share": 0.05}
    )
    variety_: float = learned()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.window, "window", "BeatGAN", minimum=2 ** len(self.filters))
        if self.scored is not None:
            check_integer(self.scored, "scored", "BeatGAN", minimum=1, maximum=self.window)

    def _network(self, n_channels: int) -> Game:
        return Game(n_channels, self.window, tuple(self.filters), self.latent)

    def _optimizers(self, network: Game) -> Optimizers:
        players = {"generator": network.generator, "discriminator": network.discriminator}
        return {
            name: torch.optim.Adam(player.parameters(), lr=self.learning_rate, betas=(0.5, 0.999))
            for name, player in players.items()
        }

    def _beats(self, batch: torch.Tensor) -> torch.Tensor:
        """Windows ``(b, c, t)`` in [-1, 1], the range of the generator's tanh."""
        windows = batch.transpose(1, 2)
        if self.scaling == "window":
            low, high = windows.amin(dim=2, keepdim=True), windows.amax(dim=2, keepdim=True)
            windows = (windows - low) / torch.clamp(high - low, min=1e-3)
        return 2 * windows - 1

    def _training_step(
        self, network: Game, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        real = self._beats(batch)
        # L_D: real windows towards 1, reconstructions towards 0
        with torch.no_grad():
            fake = network.generator(real)
        judged, invented = network.discriminator(real)[0], network.discriminator(fake)[0]
        told_apart = torch.nn.functional.softplus(-judged).mean() + torch.nn.functional.softplus(invented).mean()
        self._descend(optimizers["discriminator"], told_apart)
        # L_G: reconstruct, and have the features of the original
        fake = network.generator(real)
        reconstruction = torch.mean((real - fake) ** 2)
        with torch.no_grad():
            wanted = network.discriminator(real)[1]
        matching = feature_matching(wanted, network.discriminator(fake)[1])
        loss = reconstruction + self.matching_weight * matching
        self._descend(optimizers["generator"], loss)
        if float(told_apart.detach()) < DEFEATED:
            initialise(network.discriminator)
            optimizers["discriminator"].state.clear()
            network.restarts += 1
        return {"loss": loss, "discriminator": told_apart, "reconstruction": reconstruction, "matching": matching}

    def _loss(self, network: Game, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Reconstruction error: the part of the game that is comparable from epoch to epoch."""
        beats = self._beats(batch)
        return torch.mean((beats - network.generator(beats)) ** 2)

    def _after_training(self, network: Game, batches: Batches) -> None:
        moments = torch.zeros(2, 2, self.n_channels_, self.window, dtype=torch.float64)  # window or rebuilt, power
        count = 0
        for batch in batches():
            beats = self._beats(batch)
            for kind, values in enumerate((beats, network.generator(beats))):
                exact = values.cpu().double()
                moments[kind] += torch.stack([exact.sum(dim=0), (exact**2).sum(dim=0)])
            count += len(batch)
        means = moments / count
        variances = torch.clamp(means[:, 1] - means[:, 0] ** 2, min=0.0).sum(dim=(1, 2))
        self.variety_ = float(variances[1] / variances[0]) if float(variances[0]) > 1e-9 else 1.0
        if self.epochs and self.variety_ < LEAST_VARIETY:
            warnings.warn(
                f"The generator of BeatGAN collapsed: its reconstructions vary {self.variety_:.2%} as much as the windows, so its "
                "scores only measure distance from one window. Train longer, or lower learning_rate or matching_weight.",
                stacklevel=2,
            )
        if int(network.restarts):
            warnings.warn(
                f"The discriminator of BeatGAN won and was started again {int(network.restarts)} times: the adversarial part "
                "taught the generator little. Lower learning_rate or widen the latent.",
                stacklevel=2,
            )

    def _window_points(self, network: Game, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        beats = self._beats(batch)
        errors = (beats - network.generator(beats)) ** 2  # (b, c, t), A(x) before its sum
        last = self.window if self.scored is None else self.scored
        return torch.sqrt(errors[:, :, -last:].mean(dim=2))

    @classmethod
    def _test_params(cls) -> Params:
        return {"window": 8, "filters": (8, 16), "latent": 3, "epochs": 3, "stride": 2, "learning_rate": 1e-2}

"""BeatGAN: a convolutional autoencoder whose reconstructions must also fool a discriminator; the score is their error.

Zhou et al., "BeatGAN: Anomalous Rhythm Detection using Adversarially Generated Time Series", IJCAI 2019. Its parts, all in
section 3: the generator is an encoder and a decoder of strided convolutions; the discriminator, of the encoder's shape, is
trained to tell windows from reconstructions; the generator is trained to reconstruct and, instead of fooling the
discriminator outright, to give it the same features pairwise as the window itself has; windows may be augmented by time
warping.

The paper cuts heart beats out of a recording; this detector knows no beats: every window of fixed length is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from tisat._extras import require
from tisat._validation import check_choice, check_integer, check_real
from tisat.detectors._neural import Batches, Optimizers
from tisat.detectors._preset import PresetDetector
from tisat.errors import ParameterError

if TYPE_CHECKING:
    import torch
    from torch.nn import functional
else:
    torch = require("torch", whose="BeatGAN")
    functional = torch.nn.functional

# b batch, c channel, f filter, t time, z latent

SCALINGS = ("train", "window")
LEAK = 0.2  # slope of the leaky ReLU below 0, as in the authors' released networks
DEFEATED = (
    5e-6  # a discriminator with a smaller loss teaches nothing and starts again, as in the authors' released loop
)
LEAST_VARIETY = 0.01  # share of the windows' variance below which the reconstructions are all the same


def _lengths(window: int, stages: int) -> list[int]:
    """Length of the window before each strided convolution, and after the last."""
    lengths = [window]
    for _ in range(stages):
        lengths.append(lengths[-1] // 2)
    return lengths


def _features(n_channels: int, filters: tuple[int, ...]) -> torch.nn.Sequential:
    """Convolutions of width 4 and stride 2; batch normalisation in all but the first."""
    layers: list[torch.nn.Module] = []
    for stage, (inner, outer) in enumerate(pairwise((n_channels, *filters))):
        layers.append(torch.nn.Conv1d(inner, outer, 4, stride=2, padding=1, bias=False))
        if stage:
            layers.append(torch.nn.BatchNorm1d(outer))
        layers.append(torch.nn.LeakyReLU(LEAK))
    return torch.nn.Sequential(*layers)


class Generator(torch.nn.Module):
    """G = G_D(G_E(x)): windows ``(b, c, t)`` in [-1, 1] to their reconstructions."""

    def __init__(self, n_channels: int, window: int, filters: tuple[int, ...], latent: int) -> None:
        super().__init__()
        lengths = _lengths(window, len(filters))
        self.encoder = torch.nn.Sequential(
            _features(n_channels, filters), torch.nn.Conv1d(filters[-1], latent, lengths[-1], bias=False)
        )
        layers: list[torch.nn.Module] = [torch.nn.ConvTranspose1d(latent, filters[-1], lengths[-1], bias=False)]
        for inner, outer, length in zip(filters[::-1], (*filters[-2::-1], n_channels), lengths[-2::-1], strict=True):
            layers += [torch.nn.BatchNorm1d(inner), torch.nn.ReLU()]
            odd = length % 2
            layers.append(torch.nn.ConvTranspose1d(inner, outer, 4, 2, 1, output_padding=odd, bias=False))
        self.decoder = torch.nn.Sequential(*layers, torch.nn.Tanh())

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """Reconstructions ``(b, c, t)``."""
        rebuilt: torch.Tensor = self.decoder(self.encoder(windows))
        return rebuilt


class Discriminator(torch.nn.Module):
    """D: the encoder's shape with one output; its last hidden layer is f_D."""

    def __init__(self, n_channels: int, window: int, filters: tuple[int, ...]) -> None:
        super().__init__()
        self.features = _features(n_channels, filters)
        self.judge = torch.nn.Conv1d(filters[-1], 1, _lengths(window, len(filters))[-1], bias=False)

    def forward(self, windows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of being real ``(b,)``, and the features f_D ``(b, f, t)``."""
        features = self.features(windows)
        return self.judge(features).flatten(), features


def initialise(module: torch.nn.Module) -> None:
    """Start weights: Glorot normal for convolutions, 1 with a spread of 0.02 for the scale of batch normalisation."""
    for part in module.modules():
        if isinstance(part, torch.nn.Conv1d | torch.nn.ConvTranspose1d):
            torch.nn.init.xavier_normal_(part.weight)
        elif isinstance(part, torch.nn.BatchNorm1d):
            torch.nn.init.normal_(part.weight, 1.0, 0.02)
            torch.nn.init.zeros_(part.bias)


class Game(torch.nn.Module):
    """Both players, and how often the discriminator had to start again."""

    restarts: torch.Tensor  # ()

    def __init__(self, n_channels: int, window: int, filters: tuple[int, ...], latent: int) -> None:
        super().__init__()
        self.generator = Generator(n_channels, window, filters, latent)
        self.discriminator = Discriminator(n_channels, window, filters)
        initialise(self)
        self.register_buffer("restarts", torch.zeros(()))


def feature_matching(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """The pairwise feature matching loss: mean squared difference of f_D(x) and f_D(x'), window by window.

    Examples
    --------
    >>> float(feature_matching(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 4.0]])))
    2.0
    """
    return torch.mean((real - fake) ** 2)


def warp(windows: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """Windows ``(b, c, t)`` with some instants hurried and as many delayed, section 3.4.

    Of every window a random number of instants, at most ``share`` of them, is left out; after as many others a new one is
    put in, the mean of its two neighbours. The length stays.
    """
    count, _, length = windows.shape
    device = windows.device
    most = int(share * length)
    number = torch.randint(0, most + 1, (count, 1), generator=generator, device=device)
    rank = torch.rand(count, length, generator=generator, device=device).argsort(dim=1).argsort(dim=1)
    place = torch.arange(length, device=device).expand(count, length).to(windows.dtype)
    never = torch.full_like(place, torch.inf)
    kept = torch.where(rank < number, never, place)
    inserted = torch.where((rank >= number) & (rank < 2 * number), place + 0.5, never)
    source = torch.cat([kept, inserted], dim=1).sort(dim=1).values[:, :length]  # (b, t), in steps of a half
    before = source.floor().long()
    after = torch.clamp(source.ceil().long(), max=length - 1)
    index = (before[:, None].expand_as(windows), after[:, None].expand_as(windows))
    return 0.5 * (windows.gather(2, index[0]) + windows.gather(2, index[1]))


class BeatGAN(PresetDetector):
    """Reconstruction error of a window under an autoencoder trained against a discriminator.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. ``"paper"``: windows of 320, filters 32, 64, 128, 256, 512, learning rate
        1e-4, 100 epochs, every window (section 4 and the authors' released options).
    window : int
        Rows of one window.
    filters : tuple of int
        Filters of the strided convolutions; each halves the window.
    latent : int
        Numbers a window is compressed to.
    scored : int or None
        How many rows, the last of the window, the error is taken over. None is the published score, over the whole window: it
        is causal too, but one row weighs little in it, and it remembers a fault for a whole window.
    scaling : {"train", "window"}
        ``"train"``: each channel by its training range. ``"window"``: each window and channel by its own range, as the authors do
        with beats; then levels and sizes are invisible and only shapes count.
    matching_weight : float
        lambda of the pairwise feature matching loss; 1 in section 4, 0 is a plain autoencoder.
    warped_copies : int
        Copies of every training window, warped in time, added to each batch.
    warp_share : float
        Largest share of a window's instants that are hurried, and delayed.
    epochs, batch_size, learning_rate, stride, validation, patience, device, random_state
        Of training; see ``docs/detectors/beatgan.md``. Adam has momentum 0.5, as in section 4. 0 epochs give the untrained
        network.

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

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {
            "window": 32, "filters": (32, 64), "latent": 10, "epochs": 12, "stride": 4, "learning_rate": 1e-3,
        },
        "paper": {
            "window": 320, "filters": (32, 64, 128, 256, 512), "latent": 50, "epochs": 100, "stride": 1,
            "learning_rate": 1e-4,
        },
    }  # fmt: skip
    points_are_channels = True
    rounding = 1e-3

    variety_: float

    window: Any
    filters: Any
    latent: Any
    epochs: Any
    stride: Any
    learning_rate: Any

    def __init__(
        self,
        *,
        preset: str = "compact",
        window: int | None = None,
        filters: tuple[int, ...] | None = None,
        latent: int | None = None,
        scored: int | None = None,
        scaling: str = "train",
        matching_weight: float = 1.0,
        warped_copies: int = 0,
        warp_share: float = 0.05,
        epochs: int | None = None,
        batch_size: int = 64,
        learning_rate: float | None = None,
        stride: int | None = None,
        validation: float = 0.1,
        patience: int = 4,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.window = window
        self.filters = filters
        self.latent = latent
        self.scored = scored
        self.scaling = scaling
        self.matching_weight = matching_weight
        self.warped_copies = warped_copies
        self.warp_share = warp_share
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
        check_choice(self.scaling, "scaling", "BeatGAN", choices=SCALINGS)
        check_integer(self.latent, "latent", "BeatGAN", minimum=1)
        check_integer(self.warped_copies, "warped_copies", "BeatGAN", minimum=0)
        check_real(self.warp_share, "warp_share", "BeatGAN", at_least=0.0, at_most=0.5)
        check_real(self.matching_weight, "matching_weight", "BeatGAN", at_least=0.0)
        if not self.filters:
            raise ParameterError("The 'filters' parameter of BeatGAN must name at least one convolution. Got none.")
        for width in self.filters:
            check_integer(width, "filters", "BeatGAN", minimum=1)
        check_integer(self.window, "window", "BeatGAN", minimum=2 ** len(self.filters))
        if self.warped_copies and self.warp_share * self.window < 1:
            raise ParameterError(
                f"The 'warp_share' parameter of BeatGAN must be at least 1/window ({1 / self.window:.3g}) where there are "
                f"warped_copies: a smaller share moves no instant of a window of {self.window}. Got {self.warp_share} instead."
            )
        if self.scored is not None:
            check_integer(self.scored, "scored", "BeatGAN", minimum=1, maximum=self.window)

    def _network(self, n_channels: int) -> Game:
        return Game(n_channels, self.window, tuple(self.filters), self.latent)

    def _optimizers(self, network: torch.nn.Module) -> Optimizers:
        assert isinstance(network, Game)
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
        self, network: torch.nn.Module, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        assert isinstance(network, Game)
        real = self._beats(batch)
        if self.warped_copies:
            copies = [warp(real, self.warp_share, generator) for _ in range(self.warped_copies)]
            real = torch.cat([real, *copies])
        # L_D: real windows towards 1, reconstructions towards 0
        with torch.no_grad():
            fake = network.generator(real)
        judged, invented = network.discriminator(real)[0], network.discriminator(fake)[0]
        told_apart = functional.softplus(-judged).mean() + functional.softplus(invented).mean()
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

    def _loss(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Reconstruction error: the part of the game that is comparable from epoch to epoch."""
        assert isinstance(network, Game)
        beats = self._beats(batch)
        return torch.mean((beats - network.generator(beats)) ** 2)

    def _after_training(self, network: torch.nn.Module, batches: Batches) -> None:
        assert isinstance(network, Game)
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

    def _window_points(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        assert isinstance(network, Game)
        beats = self._beats(batch)
        errors = (beats - network.generator(beats)) ** 2  # (b, c, t), A(x) before its sum
        last = self.window if self.scored is None else self.scored
        return torch.sqrt(errors[:, :, -last:].mean(dim=2))

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"window": 8, "filters": (8, 16), "latent": 3, "epochs": 3, "stride": 2, "learning_rate": 1e-2}

"""The networks of BeatGAN: a convolutional autoencoder and the discriminator it is trained against.

Zhou et al., "BeatGAN: Anomalous Rhythm Detection using Adversarially Generated Time Series", IJCAI 2019, section 3. Window
lengths halve with every strided convolution. This module knows no training and no scores.
"""

from __future__ import annotations

from itertools import pairwise

import torch

# b batch, c channel, f filter, t time, z latent

LEAK = 0.2  # slope of the leaky ReLU below 0, as in the authors' released networks


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

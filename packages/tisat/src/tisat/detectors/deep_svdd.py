"""Deep-SVDD: a network that sends normal windows close to one point.

The score is the distance from it.

Ruff et al., "Deep One-Class Classification", ICML 2018. What keeps the map from collapsing to a constant is theirs and is
all here: no bias anywhere (proposition 2), no bounded activation (proposition 3), a centre that is fixed before training
and kept away from 0, the image of the all-zero weights (proposition 1). Equation and section numbers below are theirs.

The paper's networks see images; here the same modules (convolution, batch normalisation, leaky ReLU, pooling by 2) run
along time. The network does not know which channel moved: a point is the score alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Batches, Losses, Optimizers, Phase
from tisat.detectors.base import Traits
from tisat.detectors.networks import torch
from tisat.detectors.networks.deep_svdd import Decoder, Encoder, away_from_zero, best_radius_squared, soft_boundary
from tisat.utils.parameters import choice, integer, integers, presets, real
from tisat.utils.types import Params
from tisat.utils.validation import check_integer

OBJECTIVES = ("one-class", "soft-boundary")
CENTRE_AWAY = 0.1  # smallest |c_i|: the authors' released code; the paper only says that c must not be 0
SAME = 1e-4  # new users spread less than this share of |c|² when the map is a constant


class DeepSVDD(NeuralDetector[Encoder]):
    """Squared distance of a window's representation from a centre that normal windows were drawn to.

    Notes
    -----
    Scores: eq. (5), and with the soft boundary ``d² - R²``, so that 0 is the sphere. The window ends at the
    row it scores. Differences from the paper: convolutions along time; the radius is solved exactly, over all training
    windows, instead of by line search; early stopping on a tail of the training rows in the compact preset.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.sin(np.arange(600) / 5.0)
    >>> detector = DeepSVDD(window=16, epochs=2, pretrain_epochs=1).fit(train)
    >>> sorted(name for name, _ in detector.network_.named_parameters() if "bias" in name)
    []
    >>> bool((detector.network_.centre.abs() >= 0.1).all())
    True
    """

    preset: str = presets(
        compact="sizes for two CPU cores", paper="section 4 with the 3-module network of its CIFAR experiments"
    )

    objective: str = choice(
        "one-class",
        of=OBJECTIVES,
        doc="Eq. (4), the mean distance, for training data without anomalies; eq. (3), a sphere that leaves about nu of the "
        "training windows outside, for data with some.",
    )
    nu: float = real(
        0.1,
        above=0.0,
        at_most=1.0,
        doc="Share of training windows allowed outside the sphere; only for the soft boundary.",
    )
    radius_every: int = integer(
        compact=2, paper=5, at_least=1, doc="Epochs between two solutions for the radius, which starts at 0."
    )
    window: int = integer(compact=32, paper=128)
    filters: tuple[int, ...] = integers(
        compact=(32, 32),
        paper=(32, 64, 128),
        at_least=1,
        doc="Filters of each convolutional module; each halves the window.",
    )
    representation: int = integer(compact=32, paper=128, at_least=1, doc="d, the dimension of the space of the sphere.")
    pretrain_epochs: int = integer(
        compact=3,
        paper=350,
        at_least=0,
        doc="Epochs of an autoencoder whose encoder is the network's beginning; 0: none.",
    )
    pretrain_fine_tune: int = integer(
        compact=1, paper=100, at_least=0, doc="How many of them, the last, run at a tenth of the learning rate."
    )
    epochs: int = integer(compact=12, paper=250)
    fine_tune: int = integer(
        compact=4, paper=100, at_least=0, doc="How many epochs, the last, run at a tenth of the learning rate."
    )
    learning_rate: float = real(compact=1e-3, paper=1e-4)
    weight_decay: float = real(1e-6, at_least=0.0, doc="lambda in eqs. (3) and (4).")
    batch_size: int = 200
    stride: int = integer(compact=2, paper=1)
    validation: float = real(compact=0.1, paper=0.0)
    patience: int = 4
    gradient_clip: float | None = real(compact=1.0, paper=None, none="not clipped")

    traits: ClassVar[Traits] = Traits(rounding=1e-4)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.window, "window", "DeepSVDD", minimum=2 ** len(self.filters))

    def _network(self, n_channels: int) -> Encoder:
        return Encoder(n_channels, self.window, tuple(self.filters), self.representation)

    # ------------------------------------------------------------------ before the first epoch

    def _phases(self, network: Encoder) -> Sequence[Phase]:
        """First an autoencoder of the same shape, whose encoder is where training begins (section 4.1)."""
        decoder = Decoder(network).to(self._device)
        both = torch.nn.ModuleList([network, decoder])
        optimizer = torch.optim.Adam(both.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)

        def step(batch: torch.Tensor, generator: torch.Generator) -> Losses:
            loss = ((decoder(network(batch)) - batch) ** 2).mean()
            self._descend(optimizer, loss)
            return {"reconstruction": loss}

        def after_epoch(batches: Batches, done: int, epochs: int) -> None:
            self._cut_rate(optimizer, done, epochs - self.pretrain_fine_tune)

        pretraining = Phase(
            "pre-training", self.pretrain_epochs, {"all": optimizer}, step,
            after_epoch=after_epoch, helpers={"decoder": decoder},
        )  # fmt: skip
        return [pretraining, self._main_phase(network)]

    def _cut_rate(self, optimizer: torch.optim.Optimizer, done: int, when: int) -> None:
        """A tenth of the learning rate from epoch ``when`` on."""
        if done == when:
            for group in optimizer.param_groups:
                group["lr"] = 0.1 * self.learning_rate

    def _before_training(self, network: Encoder, batches: Batches) -> None:
        total = torch.zeros_like(network.centre, dtype=torch.float64)
        count = 0
        for batch in batches():
            total += network(batch).double().sum(dim=0)
            count += len(batch)
        centre = (total / count).float()  # c, the mean of an initial forward pass
        network.centre.copy_(away_from_zero(centre, CENTRE_AWAY))

    # ------------------------------------------------------------------ training

    def _loss(self, network: Encoder, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        distances = network.distances(batch)
        if self.objective == "soft-boundary":
            return soft_boundary(distances, network.radius_squared, self.nu)  # eq. (3)
        return distances.mean()  # eq. (4)

    def _after_epoch(self, network: Encoder, batches: Batches, optimizers: Optimizers, done: int, epochs: int) -> None:
        super()._after_epoch(network, batches, optimizers, done, epochs)
        if self.objective == "soft-boundary" and done % self.radius_every == 0:
            self._solve_radius(network, batches)
        self._cut_rate(optimizers["all"], done, epochs - self.fine_tune)

    def _solve_radius(self, network: Encoder, batches: Batches) -> None:
        distances = torch.cat([network.distances(batch) for batch in batches()])
        network.radius_squared.copy_(best_radius_squared(distances, self.nu))

    def _after_training(self, network: Encoder, batches: Batches) -> None:
        if self.objective == "soft-boundary":
            self._solve_radius(network, batches)
        unknown = torch.rand(64, self.window, self.n_channels_, device=self._device)
        spread = float(network(unknown).var(dim=0).sum())
        if spread < SAME * float((network.centre**2).sum()):
            warnings.warn(
                "Training of DeepSVDD collapsed: windows of noise have the representation of normal ones, so its scores "
                "say nothing. Train for fewer epochs or with a lower learning_rate.",
                stacklevel=2,
            )

    # ------------------------------------------------------------------ scoring

    def _window_points(self, network: Encoder, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        distances = network.distances(batch)[:, None]  # eq. (5)
        return distances - network.radius_squared if self.objective == "soft-boundary" else distances

    @classmethod
    def _test_params(cls) -> Params:
        return {"window": 8, "filters": (8, 8), "representation": 4, "epochs": 2, "pretrain_epochs": 1, "stride": 2}

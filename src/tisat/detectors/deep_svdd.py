"""Deep-SVDD: a network that sends nominal windows close to one point; the score is the distance from it.

Ruff et al., "Deep One-Class Classification", ICML 2018. What keeps the map from collapsing to a constant is theirs and is
all here: no bias anywhere (proposition 2), no bounded activation (proposition 3), a centre that is fixed before training
and kept away from 0, the image of the all-zero weights (proposition 1). Equation and section numbers below are theirs.

The paper's networks see images; here the same modules (convolution, batch normalisation, leaky ReLU, pooling by 2) run
along time. The network does not know which channel moved: a point is the score alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tisat._extras import require
from tisat._validation import check_choice, check_integer, check_real
from tisat.detectors._neural import INITIAL, Batches, Optimizers
from tisat.detectors._preset import PresetDetector
from tisat.errors import ParameterError

if TYPE_CHECKING:
    import torch
    from torch.nn import functional
else:
    torch = require("torch", whose="DeepSVDD")
    functional = torch.nn.functional

# b batch, c channel, f filter, t time, d representation

OBJECTIVES = ("one-class", "soft-boundary")
LEAK = 0.1  # slope of the leaky ReLU below 0, section 4.1
WIDTH = 5  # of every convolution, section 4.1
NORM_EPSILON = 1e-4  # of batch normalisation, as in the authors' released networks
CENTRE_AWAY = 0.1  # smallest |c_i|: the authors' released code; the paper only says that c must not be 0
SAME = 1e-4  # strangers spread less than this share of |c|² when the map is a constant


class Encoder(torch.nn.Module):
    """phi(x; W): windows ``(b, t, c)`` to representations ``(b, d)``; no bias, no bounded activation."""

    centre: torch.Tensor  # (d,)
    radius_squared: torch.Tensor  # () R², of the soft boundary

    def __init__(self, n_channels: int, window: int, filters: tuple[int, ...], representation: int) -> None:
        super().__init__()
        self.widths = widths = [n_channels, *filters]
        self.lengths = [window]  # of the window before each module, and after the last
        for _ in filters:
            self.lengths.append(self.lengths[-1] // 2)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv1d(inner, outer, WIDTH, padding=WIDTH // 2, bias=False) for inner, outer in pairwise(widths)
        )
        self.norms = torch.nn.ModuleList(
            torch.nn.BatchNorm1d(width, eps=NORM_EPSILON, affine=False) for width in filters
        )
        self.dense = torch.nn.Linear(filters[-1] * self.lengths[-1], representation, bias=False)
        for layer in (*self.convolutions, self.dense):
            torch.nn.init.xavier_uniform_(layer.weight)  # Glorot uniform, section 4.1
        self.register_buffer("centre", torch.ones(representation))
        self.register_buffer("radius_squared", torch.zeros(()))

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """Representations ``(b, d)`` of windows ``(b, t, c)``."""
        hidden = windows.transpose(1, 2)  # (b, c, t)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            hidden = functional.leaky_relu(norm(convolution(hidden)), LEAK)
            hidden = functional.max_pool1d(hidden, 2)  # (b, f, t // 2)
        represented: torch.Tensor = self.dense(hidden.flatten(1))  # (b, d)
        return represented

    def distances(self, windows: torch.Tensor) -> torch.Tensor:
        """``|phi(x; W) - c|²``, ``(b,)``: eq. (5)."""
        return torch.sum((self(windows) - self.centre) ** 2, dim=1)


class Decoder(torch.nn.Module):
    """The encoder backwards, upsampling where it pooled (section 4.1); used for pre-training and then thrown away."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        widths = encoder.widths[::-1]
        self.first = (widths[0], encoder.lengths[-1])
        self.lengths = encoder.lengths[-2::-1]
        self.dense = torch.nn.Linear(encoder.dense.out_features, self.first[0] * self.first[1], bias=False)
        self.norms = torch.nn.ModuleList(
            torch.nn.BatchNorm1d(width, eps=NORM_EPSILON, affine=False) for width in widths[:-1]
        )
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv1d(inner, outer, WIDTH, padding=WIDTH // 2, bias=False) for inner, outer in pairwise(widths)
        )

    def forward(self, represented: torch.Tensor) -> torch.Tensor:
        """Windows ``(b, t, c)`` from representations ``(b, d)``."""
        hidden = self.dense(represented).unflatten(1, self.first)  # (b, f, t)
        for norm, convolution, length in zip(self.norms, self.convolutions, self.lengths, strict=True):
            hidden = functional.interpolate(functional.leaky_relu(norm(hidden), LEAK), size=length)
            hidden = convolution(hidden)
        return torch.as_tensor(hidden.transpose(1, 2))  # (b, t, c)


def away_from_zero(centre: torch.Tensor, least: float) -> torch.Tensor:
    """``centre`` with every coordinate at least ``least`` from 0, its sign kept: a zero is met by zero weights.

    Examples
    --------
    >>> away_from_zero(torch.tensor([0.5, -0.01, 0.0]), 0.1)
    tensor([ 0.5000, -0.1000,  0.1000])
    """
    signs = torch.where(centre < 0, -1.0, 1.0)
    return torch.where(centre.abs() < least, signs * least, centre)


def soft_boundary(distances: torch.Tensor, radius_squared: torch.Tensor, nu: float) -> torch.Tensor:
    """Eq. (3) without its weight decay: ``R² + mean(max(0, d² - R²)) / nu``."""
    return radius_squared + torch.relu(distances - radius_squared).mean() / nu


def best_radius_squared(distances: torch.Tensor, nu: float) -> torch.Tensor:
    """The R² that minimises eq. (3) for given distances: their (1 - nu) quantile, which is what a line search finds."""
    above = int(np.floor(nu * len(distances)))  # how many distances may lie outside
    return torch.sort(distances, descending=True).values[min(above, len(distances) - 1)]


class DeepSVDD(PresetDetector):
    """Squared distance of a window's representation from a centre that nominal windows were drawn to.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. ``"paper"``: section 4 (learning rate 1e-4, then a tenth of it; 150 + 100
        epochs after 250 + 100 of pre-training; batches of 200; no early stopping), with the 3-module network of its CIFAR
        experiments.
    objective : {"one-class", "soft-boundary"}
        Eq. (4), the mean distance, for training data without anomalies; eq. (3), a sphere that leaves about ``nu`` of the
        training windows outside, for data with some.
    nu : float
        The share of training windows allowed outside the sphere; only for the soft boundary (0.01 and 0.1 in section 4).
    radius_every : int
        Epochs between two solutions for the radius, which starts at 0 (section 3.3 trains W and solves for R in turns; 5 in
        section 4).
    window : int
        Rows of one window.
    filters : tuple of int
        Filters of each convolutional module; each halves the window.
    representation : int
        d, the dimension of the space of the sphere.
    pretrain_epochs : int
        Epochs of an autoencoder whose encoder is the network's beginning (section 4.1); 0: none.
    epochs, fine_tune : int
        Epochs in all, and how many of them, the last, at a tenth of the learning rate. 0 epochs give the untrained network.
    weight_decay : float
        lambda in eqs. (3) and (4).
    batch_size, learning_rate, stride, validation, patience, device, random_state
        Of training; see ``docs/detectors/deep-svdd.md``.

    Notes
    -----
    Scores: eq. (5), and with the soft boundary ``d² - R²``, so that 0 is the sphere (section 3.3). The window ends at the
    instant it scores. Differences from the paper: convolutions along time; the radius is solved exactly, over all training
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

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {
            "window": 32, "filters": (32, 32), "representation": 32, "pretrain_epochs": 3, "epochs": 12, "fine_tune": 4,
            "learning_rate": 1e-3, "stride": 2, "validation": 0.1, "radius_every": 2,
        },
        "paper": {
            "window": 128, "filters": (32, 64, 128), "representation": 128, "pretrain_epochs": 350, "epochs": 250,
            "fine_tune": 100, "learning_rate": 1e-4, "stride": 1, "validation": 0.0, "radius_every": 5,
        },
    }  # fmt: skip
    rounding = 1e-4

    window: Any
    filters: Any
    representation: Any
    pretrain_epochs: Any
    epochs: Any
    fine_tune: Any
    learning_rate: Any
    stride: Any
    validation: Any
    radius_every: Any

    def __init__(
        self,
        *,
        preset: str = "compact",
        objective: str = "one-class",
        nu: float = 0.1,
        radius_every: int | None = None,
        window: int | None = None,
        filters: tuple[int, ...] | None = None,
        representation: int | None = None,
        pretrain_epochs: int | None = None,
        epochs: int | None = None,
        fine_tune: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-6,
        batch_size: int = 200,
        stride: int | None = None,
        validation: float | None = None,
        patience: int = 4,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.objective = objective
        self.nu = nu
        self.radius_every = radius_every
        self.window = window
        self.filters = filters
        self.representation = representation
        self.pretrain_epochs = pretrain_epochs
        self.epochs = epochs
        self.fine_tune = fine_tune
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.stride = stride
        self.validation = validation
        self.patience = patience
        self.device = device
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.objective, "objective", "DeepSVDD", choices=OBJECTIVES)
        check_real(self.nu, "nu", "DeepSVDD", above=0.0, at_most=1.0)
        check_real(self.weight_decay, "weight_decay", "DeepSVDD", at_least=0.0)
        check_integer(self.radius_every, "radius_every", "DeepSVDD", minimum=1)
        check_integer(self.representation, "representation", "DeepSVDD", minimum=1)
        check_integer(self.pretrain_epochs, "pretrain_epochs", "DeepSVDD", minimum=0)
        check_integer(self.fine_tune, "fine_tune", "DeepSVDD", minimum=0)
        if not self.filters:
            raise ParameterError("The 'filters' parameter of DeepSVDD must name at least one module. Got none.")
        for width in self.filters:
            check_integer(width, "filters", "DeepSVDD", minimum=1)
        check_integer(self.window, "window", "DeepSVDD", minimum=2 ** len(self.filters))

    def _network(self, n_channels: int) -> Encoder:
        return Encoder(n_channels, self.window, tuple(self.filters), self.representation)

    # ------------------------------------------------------------------ before the first epoch

    def _train(self, values: torch.Tensor, lengths: Sequence[int]) -> None:
        self._pool = (values, self._split(lengths)[0])  # pre-training draws its own order
        try:
            super()._train(values, lengths)
        finally:
            del self._pool

    def _before_training(self, network: torch.nn.Module, batches: Batches) -> None:
        assert isinstance(network, Encoder)
        self._pretrain(network)
        network.eval()
        total = torch.zeros_like(network.centre, dtype=torch.float64)
        count = 0
        for batch in batches():
            total += network(batch).double().sum(dim=0)
            count += len(batch)
        centre = (total / count).float()  # c, the mean of an initial forward pass, section 3.3
        network.centre.copy_(away_from_zero(centre, CENTRE_AWAY))

    def _pretrain(self, network: Encoder) -> None:
        """Section 4.1: the encoder of an autoencoder of the same shape is where training begins."""
        values, starts = self._pool
        decoder = Decoder(network).to(self._device)
        both = torch.nn.ModuleList([network, decoder]).train()
        optimizer = torch.optim.Adam(both.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)
        for epoch in range(self.pretrain_epochs):
            order = np.random.default_rng([self.random_state, INITIAL, epoch]).permutation(starts)
            for batch in self._batches(values, order):
                with torch.enable_grad():
                    loss = ((decoder(network(batch)) - batch) ** 2).mean()
                    self._descend(optimizer, loss)
                self._finite(float(loss.detach()), f"the autoencoder's loss in pre-training epoch {epoch + 1}")

    # ------------------------------------------------------------------ training

    def _optimizers(self, network: torch.nn.Module) -> Optimizers:
        # Adam's weight decay adds lambda W to the gradient: the last term of eqs. (3) and (4).
        return {"all": torch.optim.Adam(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)}

    def _loss(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        assert isinstance(network, Encoder)
        distances = network.distances(batch)
        if self.objective == "soft-boundary":
            return soft_boundary(distances, network.radius_squared, self.nu)  # eq. (3)
        return distances.mean()  # eq. (4)

    def _after_epoch(self, network: torch.nn.Module, batches: Batches, optimizers: Optimizers, epoch: int) -> None:
        if self.objective == "soft-boundary" and (epoch + 1) % self.radius_every == 0:
            self._solve_radius(network, batches)
        if epoch + 1 == self.epochs - self.fine_tune:
            for group in optimizers["all"].param_groups:
                group["lr"] = 0.1 * self.learning_rate

    def _solve_radius(self, network: torch.nn.Module, batches: Batches) -> None:
        assert isinstance(network, Encoder)
        distances = torch.cat([network.distances(batch) for batch in batches()])
        network.radius_squared.copy_(best_radius_squared(distances, self.nu))

    def _after_training(self, network: torch.nn.Module, batches: Batches) -> None:
        assert isinstance(network, Encoder)
        if self.objective == "soft-boundary":
            self._solve_radius(network, batches)
        strangers = torch.rand(64, self.window, self.n_channels_, device=self._device)
        spread = float(network(strangers).var(dim=0).sum())
        if spread < SAME * float((network.centre**2).sum()):
            warnings.warn(
                "Training of DeepSVDD collapsed: windows of noise have the representation of nominal ones, so its scores "
                "say nothing. Train for fewer epochs or with a lower learning_rate.",
                stacklevel=2,
            )

    # ------------------------------------------------------------------ scoring

    def _window_points(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        assert isinstance(network, Encoder)
        distances = network.distances(batch)[:, None]  # eq. (5)
        return distances - network.radius_squared if self.objective == "soft-boundary" else distances

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"window": 8, "filters": (8, 8), "representation": 4, "epochs": 2, "pretrain_epochs": 1, "stride": 2}

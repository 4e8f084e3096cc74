"""THOC: normal rows, seen at several time scales at once, gather around learned directions; the score is the angle off them.

Shen, Li, Kwok, "Timeseries Anomaly Detection using Temporal Hierarchical One-Class Network", NeurIPS 2020. The network is
in :mod:`tisat.detectors.networks.thoc`: dilated RNN, hierarchical soft clustering, orthogonal centres, forecasts as self-supervision.
Equation numbers are the paper's.

Clusters mix all channels before anything is compared, so this detector does not know which channel moved.
"""

from __future__ import annotations

import warnings
from itertools import islice

from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Batches, Optimizers
from tisat.detectors.networks import torch
from tisat.detectors.networks.thoc import THOCNetwork
from tisat.errors import ParameterError
from tisat.utils.parameters import choice, integer, integers, presets, real
from tisat.utils.types import Params

CENTRE_BATCHES = 20  # batches whose features the first centres are means of
STILL, SMALLEST = 1e-6, 0.01  # movement of a channel that never moved; smallest unit, in training ranges
ANNEAL_EVERY = 5  # epochs
JITTER = 1e-2  # keeps two centres of the same features apart


class THOC(NeuralDetector[THOCNetwork]):
    """Cosine distance of the newest row's multiscale summary from the centres that answer for it.

    Notes
    -----
    Score: ``sum_j R_j (1 - cos(f_j, c_j))`` at the last row of the window that ends at t, over the centres of the top scale.
    Before training the centres are set to k-means of the untrained features, scale by scale.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.sin(np.arange(400)[:, None] / np.array([5.0, 7.0]))
    >>> detector = THOC(window=16, hidden=8, dilations=(1, 4), n_clusters=(4, 2), epochs=1).fit(train)
    >>> sorted(detector.history_[0])
    ['epoch', 'loss', 'one_class', 'orthogonality', 'self_supervision', 'validation']
    """

    preset: str = presets(
        compact="sizes for two CPU cores", paper="one point of the grid the paper searches for each data set"
    )

    window: int = integer(compact=64, paper=100)
    hidden: int = integer(compact=32, paper=64, at_least=1, doc="Width of every layer.")
    dilations: tuple[int, ...] = integers(
        (1, 4, 8), at_least=1, doc="s(l): the step of each layer's memory, and the horizon of its forecast."
    )
    n_clusters: tuple[int, ...] = integers(
        compact=(6, 4, 2), paper=(6, 6, 6), at_least=1, doc="K(l): centres of each scale."
    )
    temperature: float = real(
        compact=0.1,
        paper=200.0,
        above=0.0,
        doc="Of the soft assignment, eq. (5), at the start of training: towards 0 each feature goes to its nearest centre alone.",
    )
    annealing: float = real(
        compact=1.0, paper=2 / 3, above=0.0, at_most=1.0, doc="What the temperature is multiplied by every 5 epochs."
    )
    orthogonality: float = real(1.0, at_least=0.0, doc="Weight of L_orth.")
    self_supervision: float = real(1.0, at_least=0.0, doc="Weight of L_TSS.")
    weight_decay: float = 1e-6
    epochs: int = integer(compact=6, paper=100)
    learning_rate: float = real(compact=2e-3, paper=1e-3)
    stride: int = integer(compact=3, paper=1)
    patience: int = 5
    gradient_clip: float | None = real(compact=1.0, paper=None, none="not clipped")
    anchor: str = choice(compact="mean", paper="none")

    @classmethod
    def _test_params(cls) -> Params:
        return {
            "window": 12, "hidden": 8, "dilations": (1, 3), "n_clusters": (3, 2), "epochs": 2, "stride": 4,
            "learning_rate": 1e-2,
        }  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        caller = type(self).__name__
        if len(self.dilations) != len(self.n_clusters):
            raise ParameterError(
                f"The 'n_clusters' parameter of {caller} must have one number for each of the dilations "
                f"{self.dilations!r}. Got {self.n_clusters!r} instead."
            )
        if max(self.dilations) >= self.window:
            raise ParameterError(
                f"The 'dilations' parameter of {caller} must be below the window ({self.window}). Got {self.dilations!r} instead."
            )

    def _network(self, n_channels: int) -> THOCNetwork:
        return THOCNetwork(
            n_channels,
            hidden=self.hidden,
            dilations=self.dilations,
            n_clusters=self.n_clusters,
            temperature=self.temperature,
        )

    def _before_training(self, network: THOCNetwork, batches: Batches) -> None:
        if self.anchor == "mean":
            squares = torch.stack([(network.prepared(batch) ** 2).mean(dim=(0, 1)) for batch in batches()])
            movement = squares.mean(dim=0).sqrt()
            still = torch.ones_like(movement)
            network.scale.copy_(torch.where(movement < STILL, still, movement.clamp(min=SMALLEST)))
        self._place_centres(network, batches)

    def _anchored_windows(self, windows: torch.Tensor) -> torch.Tensor:
        return windows - windows.mean(dim=1, keepdim=True) if self.anchor == "mean" else windows

    def _after_epoch(
        self, network: THOCNetwork, batches: Batches, optimizers: Optimizers, done: int, epochs: int
    ) -> None:
        super()._after_epoch(network, batches, optimizers, done, epochs)
        if done % ANNEAL_EVERY == 0:
            network.temperature.mul_(self.annealing)

    def _place_centres(self, network: THOCNetwork, batches: Batches) -> None:
        """Centres where the features are: k-means of every scale, from the bottom up."""
        every = max(1, sum(1 for _ in batches()) // CENTRE_BATCHES)
        windows = torch.cat([batch[:: max(1, len(batch) // 8)] for batch in islice(batches(), 0, None, every)])
        received = None
        for level, features in enumerate(network.scales(network.prepared(windows))):
            inputs = network.joined(level, received, features[:, -1:])  # of the last rows: (n, 1, i, h)
            centres = network.centres[level]
            flat = torch.nn.functional.normalize(inputs.flatten(0, -2), dim=-1).cpu().numpy()
            if len(flat) >= len(centres):
                means = KMeans(len(centres), n_init=1, random_state=self.random_state)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # fewer features than centres: a still series
                    found = torch.from_numpy(means.fit(flat).cluster_centers_).to(centres)
                centres.copy_(found + JITTER * torch.randn(centres.shape, device=centres.device))
            share = network.assignment(level, inputs)
            received = share.transpose(-1, -2) @ torch.relu(network.transforms[level](inputs))

    def _parts(self, network: THOCNetwork, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        windows = network.prepared(batch)
        scales = network.scales(windows)
        one_class = network.distances(network.summary(scales)).mean() / self.n_clusters[-1]
        orthogonality = network.orthogonality()
        forecast = network.self_supervision(scales, windows)  # eq. (12)
        loss = one_class + self.orthogonality * orthogonality + self.self_supervision * forecast
        return {"loss": loss, "one_class": one_class, "orthogonality": orthogonality, "self_supervision": forecast}

    def _loss(self, network: THOCNetwork, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return self._parts(network, batch)["loss"]

    def _training_step(
        self, network: THOCNetwork, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        parts = self._parts(network, batch)
        self._descend(optimizers["all"], parts["loss"])
        return parts

    def _window_points(self, network: THOCNetwork, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        scales = [features[:, -1:] for features in network.scales(network.prepared(batch))]
        return network.distances(network.summary(scales))  # (b, 1)

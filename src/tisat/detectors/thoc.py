"""THOC: nominal rows, seen at several time scales at once, gather around learned directions; the score is the angle off them.

Shen, Li, Kwok, "Timeseries Anomaly Detection using Temporal Hierarchical One-Class Network", NeurIPS 2020. The network is
in :mod:`tisat.nn.thoc`: dilated RNN, hierarchical soft clustering, orthogonal centres, forecasts as self-supervision.
Equation numbers are the paper's.

Clusters mix all channels before anything is compared, so this detector does not know which channel moved.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from tisat._extras import require
from tisat._validation import check_flag, check_integer, check_real
from tisat.detectors._neural import Batches, Optimizers
from tisat.detectors._preset import PresetDetector
from tisat.errors import ParameterError

if TYPE_CHECKING:
    import torch

    from tisat.nn.thoc import THOCNetwork
else:
    torch = require("torch", whose="THOC")

CENTRE_BATCHES = 20  # batches whose features the first centres are means of
STILL, SMALLEST = 1e-6, 0.01  # movement of a channel that never moved; smallest unit, in training ranges
JITTER = 1e-2  # keeps two centres of the same features apart


class THOC(PresetDetector):
    """Cosine distance of the newest row's multiscale summary from the centres that answer for it.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. The paper chooses widths, dilations, clusters and weights by grid search for
        each data set; ``"paper"`` is one point of that grid. ``"compact"``: the same network, narrower, on every third window.
    window : int
        Rows the network sees.
    hidden : int
        Width of every layer.
    dilations : tuple of int
        s(l): the step of each layer's memory, and the horizon of its forecast.
    n_clusters : tuple of int
        K(l): centres of each scale.
    temperature : float
        Of the soft assignment, eq. (5): towards 0 each feature goes to its nearest centre alone.
    anchored : bool
        Subtract each window's own mean first, so that a level outside the training range is not a fault in itself.
    orthogonality : float
        Weight of L_orth.
    self_supervision : float
        Weight of L_TSS.
    weight_decay : float
        Weight of the squared weights in eq. (9).
    epochs, batch_size, learning_rate, stride, validation, patience, device, random_state
        Of training; see ``docs/detectors/thoc.md``. 0 epochs give the untrained network.

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

    rounding = 1e-3
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {"window": 64, "hidden": 32, "n_clusters": (6, 4, 2), "epochs": 6, "learning_rate": 2e-3, "stride": 3},
        "paper": {"window": 100, "hidden": 64, "n_clusters": (12, 6, 4), "epochs": 100, "learning_rate": 1e-3, "stride": 1},
    }  # fmt: skip

    window: Any
    hidden: Any
    n_clusters: Any
    epochs: Any
    stride: Any
    learning_rate: Any

    def __init__(
        self,
        *,
        preset: str = "compact",
        window: int | None = None,
        hidden: int | None = None,
        dilations: tuple[int, ...] = (1, 4, 8),
        n_clusters: tuple[int, ...] | None = None,
        temperature: float = 0.1,
        anchored: bool = True,
        orthogonality: float = 1.0,
        self_supervision: float = 1.0,
        weight_decay: float = 1e-6,
        epochs: int | None = None,
        batch_size: int = 64,
        learning_rate: float | None = None,
        stride: int | None = None,
        validation: float = 0.1,
        patience: int = 5,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.window = window
        self.hidden = hidden
        self.dilations = dilations
        self.n_clusters = n_clusters
        self.temperature = temperature
        self.anchored = anchored
        self.orthogonality = orthogonality
        self.self_supervision = self_supervision
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.stride = stride
        self.validation = validation
        self.patience = patience
        self.device = device
        self.random_state = random_state

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {
            "window": 12, "hidden": 8, "dilations": (1, 3), "n_clusters": (3, 2), "epochs": 2, "stride": 4,
            "learning_rate": 1e-2,
        }  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whose = type(self).__name__
        check_integer(self.hidden, "hidden", whose, minimum=1)
        for name in ("temperature", "orthogonality", "self_supervision", "weight_decay"):
            check_real(getattr(self, name), name, whose, at_least=0.0)
        check_real(self.temperature, "temperature", whose, above=0.0)
        check_flag(self.anchored, "anchored", whose)
        if not self.dilations or len(self.dilations) != len(self.n_clusters):
            raise ParameterError(
                f"The 'n_clusters' parameter of {whose} must have one number for each of the dilations "
                f"{self.dilations!r}. Got {self.n_clusters!r} instead."
            )
        for value in self.n_clusters:
            check_integer(value, "n_clusters", whose, minimum=1)
        for value in self.dilations:
            check_integer(value, "dilations", whose, minimum=1, maximum=self.window - 1)

    def _network(self, n_channels: int) -> torch.nn.Module:
        from tisat.nn.thoc import THOCNetwork

        return THOCNetwork(
            n_channels,
            hidden=self.hidden,
            dilations=self.dilations,
            n_clusters=self.n_clusters,
            temperature=self.temperature,
            anchored=self.anchored,
        )

    def _optimizers(self, network: torch.nn.Module) -> Optimizers:
        decay = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        return {"all": torch.optim.Adam(network.parameters(), **decay)}

    def _before_training(self, network: THOCNetwork, batches: Batches) -> None:  # type: ignore[override]
        if self.anchored:
            squares = torch.stack([(network.prepared(batch) ** 2).mean(dim=(0, 1)) for batch in batches()])
            movement = squares.mean(dim=0).sqrt()
            still = torch.ones_like(movement)
            network.scale.copy_(torch.where(movement < STILL, still, movement.clamp(min=SMALLEST)))
        self._place_centres(network, batches)

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
        one_class = network.distances(network.summary(scales)).mean() / self.n_clusters[-1]  # eq. (9)
        orthogonality = network.orthogonality()  # eq. (11)
        forecast = network.self_supervision(scales, windows)  # eq. (12)
        loss = one_class + self.orthogonality * orthogonality + self.self_supervision * forecast  # eq. (13)
        return {"loss": loss, "one_class": one_class, "orthogonality": orthogonality, "self_supervision": forecast}

    def _loss(  # type: ignore[override]
        self, network: THOCNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        return self._parts(network, batch)["loss"]

    def _training_step(  # type: ignore[override]
        self, network: THOCNetwork, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        parts = self._parts(network, batch)
        self._descend(optimizers["all"], parts["loss"])
        return parts

    def _window_points(  # type: ignore[override]
        self, network: THOCNetwork, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        scales = [features[:, -1:] for features in network.scales(network.prepared(batch))]
        return network.distances(network.summary(scales))  # (b, 1)

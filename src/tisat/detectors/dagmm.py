"""DAGMM: an autoencoder and a Gaussian mixture trained together; the score is the energy under the mixture.

Zong et al., "Deep Autoencoding Gaussian Mixture Model for Unsupervised Anomaly Detection", ICLR 2018; equation and
section numbers below are theirs. A window is compressed to a few numbers; to these come two that say how badly it was
reconstructed; a small network shares the result out among the components of a mixture, whose parameters follow in closed
form, and whose energy, the negative log-likelihood, is trained together with the reconstruction.

The mixture that scores is that of the whole training set under the final weights, not of the last batch. The detector
does not know which channel moved: a point is the energy alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tisat._extras import require
from tisat._validation import check_integer, check_real
from tisat.detectors._neural import Batches, Optimizers
from tisat.detectors._preset import PresetDetector
from tisat.errors import ParameterError

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", whose="DAGMM")

# b batch, x length of a flat window, z length of [z_c, z_r], k component

JITTER = 1e-6  # added to every variance; ten times more as often as a covariance is still singular
MAX_JITTERS = 12
SMALLEST_NORM = 1e-2  # a window whose values have a smaller root mean square is measured against this


class Mixture(NamedTuple):
    """Parameters of eq. (5), the covariances by their Cholesky factors."""

    log_shares: torch.Tensor  # (k,) log of phi
    means: torch.Tensor  # (k, z)
    factors: torch.Tensor  # (k, z, z) lower triangular
    variances: torch.Tensor  # (k, z) diagonals of the covariances


def reconstruction_features(windows: torch.Tensor, rebuilt: torch.Tensor) -> torch.Tensor:
    """z_r in eq. (2), ``(b, 2)``: the relative Euclidean distance and the cosine similarity of section 3.2."""
    least = SMALLEST_NORM * math.sqrt(windows.shape[1])
    tiny = least**2 * 1e-6  # keeps the gradient of the root finite where the reconstruction is exact
    distance = torch.sqrt(((windows - rebuilt) ** 2).sum(dim=1) + tiny)
    norm = torch.clamp(windows.norm(dim=1), min=least)
    other = torch.sqrt((rebuilt**2).sum(dim=1) + tiny)
    cosine = (windows * rebuilt).sum(dim=1) / (norm * torch.clamp(other, min=least))
    return torch.stack([distance / norm, cosine], dim=1)


def cholesky(covariances: torch.Tensor) -> torch.Tensor:
    """Factors ``(k, z, z)``; what is singular gets the least of 1e-6, 1e-5, ... on its diagonal that mends it."""
    identity = torch.eye(covariances.shape[-1], dtype=covariances.dtype, device=covariances.device)
    jitter = JITTER
    for _ in range(MAX_JITTERS):
        factors, failed = torch.linalg.cholesky_ex(covariances + jitter * identity)
        if not bool(failed.any()):
            break
        jitter *= 10
    return torch.as_tensor(factors)


def fit_mixture(features: torch.Tensor, shares: torch.Tensor) -> Mixture:
    """Eq. (5): mixture from features z ``(b, z)`` and soft memberships gamma ``(b, k)``."""
    weight = shares.sum(dim=0).clamp(min=1e-8)  # (k,)
    means = (shares.T @ features) / weight[:, None]
    centred = features[None] - means[:, None]  # (k, b, z)
    covariances = torch.einsum("bk,kby,kbz->kyz", shares, centred, centred) / weight[:, None, None]
    factors = cholesky(covariances)
    variances = (factors**2).sum(dim=2)  # the diagonal of L L', jitter included
    return Mixture(torch.log(weight / len(features)), means, factors, variances)


def energy(features: torch.Tensor, mixture: Mixture) -> torch.Tensor:
    """E(z) in eq. (6), ``(b,)``: minus the log-likelihood, by log-sum-exp over the components."""
    centred = (features[None] - mixture.means[:, None]).transpose(1, 2)  # (k, z, b)
    whitened = torch.linalg.solve_triangular(mixture.factors, centred, upper=False)
    log_root_determinant = torch.log(torch.diagonal(mixture.factors, dim1=1, dim2=2)).sum(dim=1)  # (k,)
    constant = 0.5 * features.shape[1] * math.log(2 * math.pi)
    log_densities = -0.5 * (whitened**2).sum(dim=1) - (constant + log_root_determinant)[:, None]  # (k, b)
    return -torch.logsumexp(mixture.log_shares[:, None] + log_densities, dim=0)


def least_energy(mixture: Mixture) -> torch.Tensor:
    """A bound no energy is below, ``()``: that of a point in the middle of every component at once."""
    log_root_determinant = torch.log(torch.diagonal(mixture.factors, dim1=1, dim2=2)).sum(dim=1)  # (k,)
    constant = 0.5 * mixture.means.shape[1] * math.log(2 * math.pi)
    return -torch.logsumexp(mixture.log_shares - constant - log_root_determinant, dim=0)


def _stack(widths: list[int]) -> torch.nn.Sequential:
    """Dense layers with tanh between them and none after the last: section 4.3."""
    layers: list[torch.nn.Module] = []
    for inner, outer in pairwise(widths):
        layers += [torch.nn.Linear(inner, outer), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


class CompressionAndEstimation(torch.nn.Module):
    """Both networks of section 3, and the mixture of the training set in buffers."""

    log_shares: torch.Tensor
    means: torch.Tensor
    factors: torch.Tensor

    def __init__(
        self, width: int, hidden: tuple[int, ...], latent: int, estimation: int, components: int, dropout: float
    ) -> None:
        super().__init__()
        self.encoder = _stack([width, *hidden, latent])
        self.decoder = _stack([latent, *reversed(hidden), width])
        self.estimation = torch.nn.Sequential(
            torch.nn.Linear(latent + 2, estimation),
            torch.nn.Tanh(),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(estimation, components),
            torch.nn.Softmax(dim=1),
        )
        z = latent + 2
        self.register_buffer("log_shares", torch.full((components,), -math.log(components)))
        self.register_buffer("means", torch.zeros(components, z))
        self.register_buffer("factors", torch.eye(z).repeat(components, 1, 1))

    def forward(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Reconstructions ``(b, x)``, features z ``(b, z)`` and memberships gamma ``(b, k)`` of flat windows."""
        code = self.encoder(flat)  # z_c, eq. (1)
        rebuilt = self.decoder(code)  # x', eq. (1)
        features = torch.cat([code, reconstruction_features(flat, rebuilt)], dim=1)  # eq. (3)
        return rebuilt, features, self.estimation(features)  # eq. (4)

    @property
    def mixture(self) -> Mixture:
        """The mixture of the training set."""
        return Mixture(self.log_shares, self.means, self.factors, (self.factors**2).sum(dim=2))

    def keep(self, mixture: Mixture) -> None:
        """Take ``mixture`` as the one of the training set."""
        self.log_shares.copy_(mixture.log_shares)
        self.means.copy_(mixture.means)
        self.factors.copy_(mixture.factors)


def _precise(tensor: torch.Tensor) -> torch.Tensor:
    """Double precision where the device has it: the mixture is where single precision hurts."""
    return tensor if tensor.device.type == "mps" else tensor.double()


class DAGMM(PresetDetector):
    """Energy of a window's code and reconstruction errors under a Gaussian mixture of the training set's.

    Parameters
    ----------
    preset : {"compact", "paper"}
        Where the numbers left at None come from. ``"paper"``: section 4.3, the network for KDDCUP: single rows, layers 60,
        30, 10 and a code of 1 number, 4 components, 200 epochs in batches of 1024 at learning rate 1e-4, no early stopping.
    window : int
        Rows of one window, given to the network flat; 1 is the paper's record without time.
    hidden : tuple of int
        Widths of the encoder; the decoder has them backwards.
    latent : int
        Numbers in the code z_c.
    estimation : int
        Width of the estimation network (10 in section 4.3).
    components : int
        Gaussians in the mixture.
    dropout : float
        In the estimation network (0.5 in section 4.3).
    energy_weight, covariance_weight : float
        lambda_1 and lambda_2 of eq. (7); 0.1 and 0.005 in section 3.4. Much less in the compact preset: where windows can be
        reconstructed well, the variances of the two error features are about 1e-4 and 1e-6, and 0.005 divided by them is so
        large that the network unlearns to reconstruct. ``docs/log.md`` has the figures.
    epochs, batch_size, learning_rate, stride, validation, patience, device, random_state
        Of training; see ``docs/detectors/dagmm.md``. 0 epochs give the untrained network.

    Notes
    -----
    The score is E(z) of eq. (6) above a bound that no energy under the same mixture is below: a density has no unit, so the
    energy itself may be negative; the score never is. The window ends at the instant it scores. Differences from the paper: windows; a floor under ``|x|`` in the relative distance, because a scaled window can
    be all zeros; the mixture that scores is fitted to the whole training set after training.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.stack([np.sin(np.arange(600) / 5.0), np.cos(np.arange(600) / 5.0)], axis=1)
    >>> detector = DAGMM(window=2, hidden=(10,), epochs=20, batch_size=32).fit(train)
    >>> far = train.copy()
    >>> far[300] += 5.0
    >>> bool(detector.decision_function(far)[300] > detector.nominal_level())
    True
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "compact": {
            "window": 10, "hidden": (60, 30, 10), "latent": 3, "epochs": 30, "batch_size": 128, "learning_rate": 5e-3,
            "validation": 0.1, "energy_weight": 1e-3, "covariance_weight": 1e-8,
        },
        "paper": {
            "window": 1, "hidden": (60, 30, 10), "latent": 1, "epochs": 200, "batch_size": 1024, "learning_rate": 1e-4,
            "validation": 0.0, "energy_weight": 0.1, "covariance_weight": 0.005,
        },
    }  # fmt: skip
    rounding = 1e-4

    window: Any
    hidden: Any
    latent: Any
    epochs: Any
    batch_size: Any
    learning_rate: Any
    validation: Any
    energy_weight: Any
    covariance_weight: Any

    def __init__(
        self,
        *,
        preset: str = "compact",
        window: int | None = None,
        hidden: tuple[int, ...] | None = None,
        latent: int | None = None,
        estimation: int = 10,
        components: int = 4,
        dropout: float = 0.5,
        energy_weight: float | None = None,
        covariance_weight: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        stride: int = 1,
        validation: float | None = None,
        patience: int = 5,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.window = window
        self.hidden = hidden
        self.latent = latent
        self.estimation = estimation
        self.components = components
        self.dropout = dropout
        self.energy_weight = energy_weight
        self.covariance_weight = covariance_weight
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
        for name in ("latent", "estimation", "components"):
            check_integer(getattr(self, name), name, "DAGMM", minimum=1)
        check_real(self.dropout, "dropout", "DAGMM", at_least=0.0, below=1.0)
        check_real(self.energy_weight, "energy_weight", "DAGMM", at_least=0.0)
        check_real(self.covariance_weight, "covariance_weight", "DAGMM", at_least=0.0)
        if not isinstance(self.hidden, tuple):
            raise ParameterError(
                f"The 'hidden' parameter of DAGMM must be a tuple of widths. Got {self.hidden!r} instead."
            )
        for width in self.hidden:
            check_integer(width, "hidden", "DAGMM", minimum=1)

    def _network(self, n_channels: int) -> CompressionAndEstimation:
        return CompressionAndEstimation(
            self.window * n_channels, self.hidden, self.latent, self.estimation, self.components, self.dropout
        )

    def _loss(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """In training the mixture is the batch's, as in the paper, in validation the training set's."""
        assert isinstance(network, CompressionAndEstimation)
        flat = batch.flatten(1)
        rebuilt, features, shares = network(flat)
        if network.training:
            mixture = fit_mixture(_precise(features), _precise(shares))
        else:
            mixture = Mixture(*map(_precise, network.mixture))
        reconstruction = ((flat - rebuilt) ** 2).sum(dim=1).mean()  # L(x, x')
        likelihood = energy(_precise(features), mixture).mean()
        penalty = (1.0 / mixture.variances).sum()  # P(Sigma), section 3.4
        return torch.as_tensor(
            reconstruction + self.energy_weight * likelihood + self.covariance_weight * penalty
        )  # eq. (7)

    def _fit_mixture(self, network: torch.nn.Module, batches: Batches) -> None:
        """Eq. (5) over all training windows, which are only a few numbers each."""
        assert isinstance(network, CompressionAndEstimation)
        outputs = [network(batch.flatten(1))[1:] for batch in batches()]
        features = torch.cat([features for features, _ in outputs]).cpu().double()
        shares = torch.cat([shares for _, shares in outputs]).cpu().double()
        network.keep(fit_mixture(features, shares))

    def _after_epoch(self, network: torch.nn.Module, batches: Batches, optimizers: Optimizers, epoch: int) -> None:
        self._fit_mixture(network, batches)

    def _after_training(self, network: torch.nn.Module, batches: Batches) -> None:
        self._fit_mixture(network, batches)

    def _window_points(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        assert isinstance(network, CompressionAndEstimation)
        _, features, _ = network(batch.flatten(1))
        mixture = Mixture(*map(_precise, network.mixture))
        return (energy(_precise(features), mixture) - least_energy(mixture))[:, None]

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"window": 3, "hidden": (8,), "epochs": 3, "batch_size": 64, "learning_rate": 1e-2}

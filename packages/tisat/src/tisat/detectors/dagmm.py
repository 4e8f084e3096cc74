"""DAGMM: an autoencoder and a Gaussian mixture trained together.

The score is the energy under the mixture.

Zong et al., "Deep Autoencoding Gaussian Mixture Model for Unsupervised Anomaly Detection", ICLR 2018; equation and
section numbers below are theirs. A window is compressed to a few numbers; to these come two that say how badly it was
reconstructed; a small network shares the result out among the components of a mixture, whose parameters follow in closed
form, and whose energy, the negative log-likelihood, is trained together with the reconstruction.

The mixture that scores is that of the whole training set under the final weights, not of the last batch. The detector
does not know which channel moved: a point is the energy alone.
"""

from __future__ import annotations

from typing import ClassVar

from tisat.detectors._neural import NeuralDetector
from tisat.detectors._training import Batches, Optimizers
from tisat.detectors.base import Array, Traits
from tisat.detectors.networks import torch
from tisat.detectors.networks.dagmm import CompressionAndEstimation, Mixture, energy, fit_mixture, least_energy, precise
from tisat.utils.parameters import integer, integers, presets, real
from tisat.utils.types import Params


class DAGMM(NeuralDetector[CompressionAndEstimation]):
    """Energy of a window's code and reconstruction errors under a Gaussian mixture of the training set's.

    Notes
    -----
    The score is E(z) of eq. (6) above a bound that no energy under the same mixture is below: a density has no unit, so the
    energy itself may be negative; the score never is. The window ends at the row it scores. Differences from the paper: windows; a floor under ``|x|`` in the relative distance, because a scaled window can
    be all zeros; the mixture that scores is fitted to the whole training set after training.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.stack([np.sin(np.arange(600) / 5.0), np.cos(np.arange(600) / 5.0)], axis=1)
    >>> detector = DAGMM(window=2, hidden=(10,), epochs=20, batch_size=32).fit(train)
    >>> far = train.copy()
    >>> far[300] += 5.0
    >>> bool(detector.decision_function(far)[300] > detector.normal_level())
    True
    """

    preset: str = presets(compact="windows of 10 rows", paper="section 4.3, the network for KDDCUP: single rows")

    window: int = integer(
        compact=10, paper=1, doc="Rows of one window, given to the network flat; 1 is the paper's record without time."
    )
    hidden: tuple[int, ...] = integers(
        (60, 30, 10), at_least=1, doc="Widths of the encoder; the decoder has them backwards."
    )
    latent: int = integer(compact=3, paper=1, at_least=1, doc="Numbers in the code z_c.")
    estimation: int = integer(10, at_least=1, doc="Width of the estimation network.")
    components: int = integer(4, at_least=1, doc="Gaussians in the mixture.")
    dropout: float = real(
        0.5, at_least=0.0, below=1.0, doc="Share of units of the estimation network left out in training."
    )
    energy_weight: float = real(0.1, at_least=0.0, doc="lambda_1 of eq. (7): of the energy.")
    covariance_weight: float = real(
        0.005,
        at_least=0.0,
        doc="lambda_2 of eq. (7): of the penalty on small variances. docs/log.md has what less does.",
    )
    epochs: int = integer(compact=30, paper=200)
    batch_size: int = integer(compact=128, paper=1024)
    learning_rate: float = real(compact=5e-3, paper=1e-4)
    validation: float = real(compact=0.1, paper=0.0)
    patience: int = 5
    gradient_clip: float | None = real(compact=1.0, paper=None, none="not clipped")

    traits: ClassVar[Traits] = Traits(rounding=1e-4)

    def _network(self, n_channels: int) -> CompressionAndEstimation:
        return CompressionAndEstimation(
            self.window * n_channels, self.hidden, self.latent, self.estimation, self.components, self.dropout
        )

    def _loss(self, network: CompressionAndEstimation, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """In training the mixture is the batch's, as in the paper, in validation the training set's."""
        flat = batch.flatten(1)
        rebuilt, features, shares = network(flat)
        if network.training:
            mixture = fit_mixture(precise(features), precise(shares))
        else:
            mixture = Mixture(*map(precise, network.mixture))
        reconstruction = ((flat - rebuilt) ** 2).sum(dim=1).mean()  # L(x, x')
        likelihood = energy(precise(features), mixture).mean()
        penalty = (1.0 / mixture.variances).sum()  # P(Sigma), section 3.4
        return torch.as_tensor(
            reconstruction + self.energy_weight * likelihood + self.covariance_weight * penalty
        )  # eq. (7)

    def _fit_mixture(self, network: CompressionAndEstimation, batches: Batches) -> None:
        """Eq. (5) over all training windows, which are only a few numbers each."""
        outputs = [network(batch.flatten(1))[1:] for batch in batches()]
        features = torch.cat([features for features, _ in outputs]).cpu().double()
        shares = torch.cat([shares for _, shares in outputs]).cpu().double()
        network.keep(fit_mixture(features, shares))

    def _after_epoch(
        self, network: CompressionAndEstimation, batches: Batches, optimizers: Optimizers, done: int, epochs: int
    ) -> None:
        super()._after_epoch(network, batches, optimizers, done, epochs)
        self._fit_mixture(network, batches)

    def _after_training(self, network: CompressionAndEstimation, batches: Batches) -> None:
        self._fit_mixture(network, batches)

    def _window_points(
        self, network: CompressionAndEstimation, batch: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        _, features, _ = network(batch.flatten(1))
        mixture = Mixture(*map(precise, network.mixture))
        return (energy(precise(features), mixture) - least_energy(mixture))[:, None]

    def _left_out(self, row: Array) -> Array | None:
        return None  # its density has folds: putting a channel back to its usual value may make a row less likely

    @classmethod
    def _test_params(cls) -> Params:
        return {"window": 3, "hidden": (8,), "epochs": 3, "batch_size": 64, "learning_rate": 1e-2}

"""DeepAnT: a convolutional forecaster; its forecast errors are the points.

The network is in :mod:`tisat.detectors.networks.deepant`; training, scaling, seeds and scoring are those of every neural forecaster here
(:mod:`tisat.detectors._neural_forecast`). A window is all it sees: nothing is carried from one to the next.
"""

from __future__ import annotations

from tisat.detectors._neural_forecast import NeuralForecaster
from tisat.detectors.networks import torch
from tisat.detectors.networks.deepant import ConvolutionalForecaster
from tisat.errors import ParameterError
from tisat.utils.parameters import choice, integer, presets, real
from tisat.utils.types import Params


class DeepAnT(NeuralForecaster[ConvolutionalForecaster]):
    """Convolutional forecaster, scored by its forecast errors.

    Notes
    -----
    We differ from the paper: by default windows are anchored and errors scaled per channel, as for every forecaster of the
    package; ``preset="paper"`` does neither. Convolutions are padded so that a window of any length has an output. The
    paper's loss is the mean absolute error, and so is ours; its score is the Euclidean norm of the error, ours its mean
    square, which ranks rows alike.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(400.0) / 5)[:, None]
    >>> detector = DeepAnT(window=20, filters=8, dense=8, epochs=2).fit(wave)
    >>> detector.decision_function(wave).shape
    (400,)

    References
    ----------
    Munir, Siddiqui, Dengel, Ahmed: DeepAnT: A Deep Learning Approach for Unsupervised Anomaly Detection in Time Series, IEEE
    Access 2019: two blocks of 32 filters, each followed by pooling, and a dense layer of 40.
    """

    preset: str = presets(compact="ours", paper="the paper's, without anchoring and scaling")
    window: int = integer(45, at_least=4)
    filters: int = integer(32, at_least=1, doc="Filters of each convolution.")
    width: int = integer(3, at_least=1, doc="Rows a filter sees.")
    blocks: int = integer(2, at_least=1, doc="Convolutions, each followed by pooling that halves the window.")
    dense: int = integer(40, at_least=1, doc="Units of the dense layer.")
    anchor: str = choice(compact="mean", paper="none")
    units: str = choice(compact="spread", paper="range")
    gradient_clip: float | None = real(compact=1.0, paper=None, none="not clipped")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.window < 2**self.blocks:
            raise ParameterError(
                f"The 'window' parameter of DeepAnT must be at least {2**self.blocks} rows for {self.blocks} blocks. Got {self.window} instead."
            )

    def _network(self, n_channels: int) -> ConvolutionalForecaster:
        return ConvolutionalForecaster(
            n_channels, window=self.window, horizon=len(self._leads()), filters=self.filters, width=self.width,
            blocks=self.blocks, dense=self.dense,
        )  # fmt: skip

    def _loss(self, network: ConvolutionalForecaster, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        window, target = self._anchored(batch)
        error: torch.Tensor = network(window) - target
        return error.abs().mean()

    @classmethod
    def _test_params(cls) -> Params:
        return {"window": 10, "filters": 4, "dense": 8, "epochs": 1, "stride": 2, "device": "cpu"}

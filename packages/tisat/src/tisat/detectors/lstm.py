"""LSTM: a stacked recurrent forecaster; its forecast errors are the points.

The network reads the last ``window`` rows of all channels, measured from their anchor, and says the next ``horizon``
ones. Training, scaling, seeds and scoring are those of every neural forecaster here
(:mod:`tisat.detectors._neural_forecast`). It does not carry its state from one window to the next: what lies before the
window is forgotten.
"""

from __future__ import annotations

from tisat.detectors._neural_forecast import NeuralForecaster
from tisat.detectors.networks.lstm import StackedLSTM
from tisat.utils.parameters import integer, real
from tisat.utils.types import Params


class LSTM(NeuralForecaster[StackedLSTM]):
    """Stacked LSTM forecaster, scored by its squared forecast errors.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(400.0) / 5)[:, None]
    >>> detector = LSTM(window=20, hidden=8, layers=1, epochs=2, device="cpu").fit(wave)
    >>> detector.decision_function(wave).shape
    (400,)

    References
    ----------
    Malhotra et al.: Long short term memory networks for anomaly detection in time series, ESANN 2015 (stacked LSTM,
    prediction errors), and LSTM-based encoder-decoder, 2016, whose tables show it. Theirs fits a Gaussian to the error
    vectors; here errors are scaled per channel, as for every forecaster of the package, so that tables compare models.
    """

    window: int = 30
    hidden: int = integer(64, at_least=1, doc="Units of a layer.")
    layers: int = integer(2, at_least=1, doc="Stacked layers.")
    dropout: float = real(0.0, at_least=0.0, below=1.0, doc="Share of units left out between layers, in training.")
    batch_size: int = 128

    def _network(self, n_channels: int) -> StackedLSTM:
        return StackedLSTM(n_channels, self.hidden, self.layers, self.dropout, len(self._leads()))

    @classmethod
    def _test_params(cls) -> Params:
        return {"window": 10, "hidden": 4, "layers": 1, "epochs": 1, "stride": 2, "device": "cpu"}

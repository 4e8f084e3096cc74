"""LSTM: a stacked recurrent forecaster; its forecast errors are the points.

The network reads the last ``window`` rows of all channels, measured from their anchor, and says the next ``horizon``
ones. Training, scaling, seeds and scoring are those of every neural forecaster here
(:mod:`tisat.detectors._neural_forecast`). It does not carry its state from one window to the next: what lies before the
window is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tisat._extras import require
from tisat._validation import check_integer, check_real
from tisat.detectors._neural_forecast import NeuralForecaster

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", whose="LSTM")


class _StackedLSTM(torch.nn.Module):
    # b batch, t time, c channel, h hidden
    def __init__(self, n_channels: int, hidden: int, layers: int, dropout: float, horizon: int) -> None:
        super().__init__()
        self.shape = (horizon, n_channels)
        self.recurrent = torch.nn.LSTM(
            n_channels, hidden, num_layers=layers, batch_first=True, dropout=dropout if layers > 1 else 0.0
        )
        self.readout = torch.nn.Linear(hidden, horizon * n_channels)

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(window)  # (b, t, h)
        forecast: torch.Tensor = self.readout(states[:, -1]).unflatten(1, self.shape)  # (b, horizon, c)
        return forecast


class LSTM(NeuralForecaster):
    """Stacked LSTM forecaster, scored by its squared forecast errors.

    Parameters
    ----------
    window : int
        Rows the forecast is made from.
    hidden : int
        Units a layer.
    layers : int
        Stacked layers.
    dropout : float
        Between layers, in training.
    horizon : int
        Rows forecast in one pass.
    anchor : {"mean", "last", "none"}
        What a window is measured from: its mean, its last value, or nothing.
    stride, epochs, batch_size, learning_rate, device, random_state
        As in every neural detector: every how many rows a training window starts, and the usual.

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

    def __init__(
        self,
        *,
        window: int = 30,
        hidden: int = 64,
        layers: int = 2,
        dropout: float = 0.0,
        horizon: int = 1,
        anchor: str = "mean",
        stride: int = 1,
        epochs: int = 10,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.window = window
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout
        self.horizon = horizon
        self.anchor = anchor
        self.stride = stride
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.hidden, "hidden", "LSTM", minimum=1)
        check_integer(self.layers, "layers", "LSTM", minimum=1)
        check_real(self.dropout, "dropout", "LSTM", at_least=0.0, below=1.0)

    def _network(self, n_channels: int) -> torch.nn.Module:
        return _StackedLSTM(n_channels, self.hidden, self.layers, self.dropout, self.horizon)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"window": 10, "hidden": 4, "layers": 1, "epochs": 1, "stride": 2, "device": "cpu"}

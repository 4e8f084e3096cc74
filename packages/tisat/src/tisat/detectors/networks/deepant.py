"""The network of DeepAnT: convolutions along time, then a dense layer that says the next rows.

Legend: b batch, t time, c channel, f filter. Munir, Siddiqui, Dengel, Ahmed: DeepAnT: A Deep Learning Approach for
Unsupervised Anomaly Detection in Time Series, IEEE Access 2019. This module knows no training.
"""

from __future__ import annotations

import torch


class ConvolutionalForecaster(torch.nn.Module):
    """Windows ``(b, t, c)`` to forecasts ``(b, horizon, c)``: blocks of convolution, ReLU and max-pooling, then two dense layers.

    Examples
    --------
    >>> ConvolutionalForecaster(3, window=45, horizon=1, filters=32, width=3, blocks=2, dense=40)(torch.zeros(5, 45, 3)).shape
    torch.Size([5, 1, 3])
    """

    def __init__(
        self, n_channels: int, *, window: int, horizon: int, filters: int, width: int, blocks: int, dense: int
    ) -> None:
        super().__init__()
        self.shape = (horizon, n_channels)
        layers: list[torch.nn.Module] = []
        inner, length = n_channels, window
        for _ in range(blocks):
            layers += [
                torch.nn.Conv1d(inner, filters, width, padding=width // 2),
                torch.nn.ReLU(),
                torch.nn.MaxPool1d(2),
            ]
            inner, length = filters, (length + 2 * (width // 2) - width + 1) // 2
        self.features = torch.nn.Sequential(*layers)
        self.readout = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(inner * length, dense),
            torch.nn.ReLU(),
            torch.nn.Linear(dense, horizon * n_channels),
        )

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        """Forecasts ``(b, horizon, c)``."""
        forecast: torch.Tensor = self.readout(self.features(window.transpose(1, 2))).unflatten(1, self.shape)
        return forecast

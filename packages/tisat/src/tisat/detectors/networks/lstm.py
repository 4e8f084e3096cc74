"""A stacked LSTM that forecasts the next rows.

Legend: b batch, t time, c channel, h hidden. Malhotra et al.: Long short term memory networks for anomaly detection in time
series, ESANN 2015. This module knows no training.
"""

from __future__ import annotations

import torch


class StackedLSTM(torch.nn.Module):
    """Windows ``(b, t, c)`` to forecasts ``(b, horizon, c)``: recurrent layers, read out at the last row."""

    def __init__(self, n_channels: int, hidden: int, layers: int, dropout: float, horizon: int) -> None:
        super().__init__()
        self.shape = (horizon, n_channels)
        self.recurrent = torch.nn.LSTM(
            n_channels, hidden, num_layers=layers, batch_first=True, dropout=dropout if layers > 1 else 0.0
        )
        self.readout = torch.nn.Linear(hidden, horizon * n_channels)

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        """Forecasts ``(b, horizon, c)``."""
        states, _ = self.recurrent(window)  # (b, t, h)
        forecast: torch.Tensor = self.readout(states[:, -1]).unflatten(1, self.shape)  # (b, horizon, c)
        return forecast

"""TiSAT: the forecast error of a sparse-attention transformer. The detector users meet first.

The network is :class:`tisat.nn.forecaster.SparseTransformer`, the loop :mod:`~tisat.detectors._neural`, the way from
forecasts to points :mod:`~tisat.detectors._neural_forecast`. This file holds the parameters and the presets. It does not
know alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tisat._extras import require
from tisat._validation import check_choice, check_flag, check_integer, check_real
from tisat.base import Array
from tisat.detectors._forecast import SPREAD_FLOOR
from tisat.detectors._neural import Batches, Optimizers
from tisat.detectors._neural_forecast import Floats, NeuralForecaster
from tisat.detectors._preset import PresetDetector
from tisat.errors import ParameterError

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", whose="TiSAT")

ATTENTIONS = ("auto", "dense", "probsparse")


class TiSAT(NeuralForecaster, PresetDetector):
    """Forecast error of a sparse-attention transformer (Time Series Anomaly Transformer).

    The last ``window`` rows, measured from their anchor in units of the training range, are encoded by two stacks of
    ProbSparse attention; a decoder forecasts the next ``horizon`` rows in one pass. The point of an instant is the vector
    of forecast errors, each channel in units of its spread on the training rows; the score is the mean of squares. Training
    minimises the squared error in the same units where there is a linear skip, and plainly, as in the paper, where there is none.

    Parameters
    ----------
    window : int
        Rows the forecast is made from.
    horizon : int
        Rows forecast in one pass; more than 1 scores a series in fewer passes, from forecasts further ahead.
    preset : {"compact", "paper"}
        Where the parameters left at None come from: sizes that train on two CPU cores in minutes, or those of the paper.
    d_model, n_heads, d_ff : int, optional
        Width of the network, attention heads, width of its feed-forward layers.
    encoder_layers, decoder_layers : int, optional
        Layers of the deep encoder stack (a one-layer stack on the last quarter stands beside it) and of the decoder.
    dropout : float, optional
    attention : {"auto", "dense", "probsparse"}, optional
        ``"auto"`` uses fused dense attention where it is quicker and ProbSparse attention on long windows.
    factor : int, optional
        c of ProbSparse: ``c * ceil(ln L)`` queries attend to all keys.
    linear_skip : bool, optional
        Add the forecast of one linear map over time per channel (as :class:`~tisat.detectors.linear.LinearMean`), so that
        the transformer learns what a line cannot say. Not in the paper.
    lookahead : int, optional
        Forecast every row a second time, this many rows ahead; the point is the larger error. 1: one row ahead alone, as in
        the paper. With ``horizon > 1`` each row has one forecast and there is no lookahead.
    learning_rate, epochs : optional
        Of Adam, and passes over the training windows.
    decay : float, optional
        What the learning rate is multiplied by after each epoch (Informer halves it).
    max_windows : int, optional
        Training windows an epoch at most, drawn anew each epoch; with ``preset="paper"`` all of them.
    token : int
        Last rows of the window that start the decoder.
    anchor : {"mean", "last", "none"}
        What a window is measured from. ``"none"`` is the paper to the letter.
    aggregation : {"mean", "max"}
        The score is the mean of the squared points, or the largest.
    batch_size, stride, validation, patience, gradient_clip
        Windows a step; every how many rows a training window starts; share of each training part, its tail, that early
        stopping watches; epochs it waits for a better loss; largest norm of the gradient.
    device : {"auto", "cpu", "cuda", "mps"}
    random_state : int
        The same seed gives the same weights.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(600) / 5)[:, None]
    >>> detector = TiSAT(window=20, d_model=8, d_ff=16, epochs=1).fit(wave)
    >>> detector.decision_function(wave).shape
    (600,)

    References
    ----------
    Doshi, Abudalou, Yilmaz: Reward Once, Penalize Once: Rectifying Time Series Anomaly Detection, section V; the
    architecture is that of Zhou et al.: Informer, AAAI 2021. We differ: windows are anchored, residuals are scaled per
    channel, no calendar features, no batch normalisation, zero padding of convolutions (theirs is circular).
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "d_model": 512,
            "n_heads": 8,
            "d_ff": 2048,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "dropout": 0.05,
            "attention": "probsparse",
            "factor": 5,
            "linear_skip": False,
            "lookahead": 1,
            "learning_rate": 1e-4,
            "epochs": 4,
            "decay": 0.5,
            "max_windows": None,
        },
        "compact": {
            "d_model": 16,
            "n_heads": 2,
            "d_ff": 32,
            "encoder_layers": 2,
            "decoder_layers": 1,
            "dropout": 0.05,
            "attention": "auto",
            "factor": 5,
            "linear_skip": True,
            "lookahead": 5,
            "learning_rate": 1e-3,
            "epochs": 8,
            "decay": 0.8,
            "max_windows": 10_000,
        },
    }

    def __init__(
        self,
        *,
        window: int = 100,
        horizon: int = 1,
        preset: str = "compact",
        d_model: int | None = None,
        n_heads: int | None = None,
        d_ff: int | None = None,
        encoder_layers: int | None = None,
        decoder_layers: int | None = None,
        dropout: float | None = None,
        attention: str | None = None,
        factor: int | None = None,
        linear_skip: bool | None = None,
        lookahead: int | None = None,
        learning_rate: float | None = None,
        epochs: int | None = None,
        decay: float | None = None,
        max_windows: int | None = None,
        token: int = 50,
        anchor: str = "mean",
        aggregation: str = "mean",
        batch_size: int = 64,
        stride: int = 1,
        validation: float = 0.1,
        patience: int = 3,
        gradient_clip: float = 1.0,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.preset = preset
        self.d_model: Any = d_model
        self.n_heads: Any = n_heads
        self.d_ff: Any = d_ff
        self.encoder_layers: Any = encoder_layers
        self.decoder_layers: Any = decoder_layers
        self.dropout: Any = dropout
        self.attention: Any = attention
        self.factor: Any = factor
        self.linear_skip: Any = linear_skip
        self.lookahead: Any = lookahead
        self.learning_rate: Any = learning_rate
        self.epochs: Any = epochs
        self.decay: Any = decay
        self.max_windows: Any = max_windows
        self.token = token
        self.anchor = anchor
        self.aggregation = aggregation
        self.batch_size = batch_size
        self.stride = stride
        self.validation = validation
        self.patience = patience
        self.gradient_clip = gradient_clip
        self.device = device
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whose = type(self).__name__
        for name in ("d_model", "n_heads", "d_ff", "encoder_layers", "decoder_layers", "factor", "token"):
            check_integer(getattr(self, name), name, whose, minimum=1)
        if self.d_model % self.n_heads:
            raise ParameterError(
                f"The 'd_model' parameter of {whose} must be a multiple of n_heads ({self.n_heads}). "
                f"Got {self.d_model} instead."
            )
        if self.horizon > 1 and vars(self)["lookahead"] not in (None, 1):
            raise ParameterError(
                f"The 'lookahead' parameter of {whose} must be 1 or left out where horizon is above 1: a block's rows have one "
                f"forecast each. Got {self.lookahead} with horizon {self.horizon}."
            )
        check_real(self.decay, "decay", whose, above=0.0, at_most=1.0)
        check_real(self.dropout, "dropout", whose, at_least=0.0, below=1.0)
        check_choice(self.attention, "attention", whose, choices=ATTENTIONS)
        check_flag(self.linear_skip, "linear_skip", whose)

    def _network(self, n_channels: int) -> torch.nn.Module:
        from tisat.nn.forecaster import SparseTransformer

        return SparseTransformer(
            n_channels,
            window=self.window,
            horizon=len(self._leads()),
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            encoder_layers=self.encoder_layers,
            decoder_layers=self.decoder_layers,
            token=self.token,
            dropout=self.dropout,
            attention=self.attention,
            factor=self.factor,
            linear_skip=self.linear_skip,
        )

    def _fit(self, parts: Sequence[Array]) -> None:
        if hasattr(self, "_session"):
            del self._session
        super()._fit(parts)

    def _live_session(self) -> Callable[[Floats], Floats] | None:
        if not hasattr(self, "_session"):
            from tisat.nn.onnx_session import one_window_session

            self._session = one_window_session(self.network_, (self.window, self.n_channels_))
        return self._session

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_session"}  # it belongs to this process

    def _loss(self, network: torch.nn.Module, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        window, target = self._anchored(batch)
        error: torch.Tensor = network(window) - target  # (b, leads, C)
        if (
            self.linear_skip
        ):  # in units of what the line leaves, as the score: else the widest channel is all that counts
            error = error / network.linear_skip.rest.clamp(min=SPREAD_FLOOR)  # type: ignore[union-attr, operator]
        return error.square().mean()

    def _optimizers(self, network: torch.nn.Module) -> Optimizers:
        return {"all": torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)}

    def _after_epoch(self, network: torch.nn.Module, batches: Batches, optimizers: Optimizers, epoch: int) -> None:
        for group in optimizers["all"].param_groups:
            group["lr"] *= self.decay

    def _start_is_a_candidate(self) -> bool:
        return bool(self.linear_skip)  # it starts from the linear forecast, which may be the best there is

    def _before_training(self, network: torch.nn.Module, batches: Batches) -> None:
        if self.linear_skip:
            network.linear_skip.solve(self._anchored(batch) for batch in batches(stride=1))  # type: ignore[operator]

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {
            "window": 16,
            "token": 8,
            "d_model": 8,
            "n_heads": 2,
            "d_ff": 8,
            "lookahead": 5,
            "epochs": 2,
            "stride": 4,
        }

"""TiSAT: the forecast error of a sparse-attention transformer.

The detector users meet first.

The network is :class:`tisat.detectors.networks.forecaster.SparseTransformer`, the loop :mod:`~tisat.detectors._training`, the way from
forecasts to points :mod:`~tisat.detectors._neural_forecast`. This file holds the parameters and the presets. It does not
know alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tisat.detectors._checkpoint import Progress
from tisat.detectors._forecast import SPREAD_FLOOR
from tisat.detectors._neural_forecast import NeuralForecaster, Singles
from tisat.detectors._training import Batches, Optimizers
from tisat.detectors.base import Array
from tisat.detectors.networks import torch
from tisat.detectors.networks.forecaster import SparseTransformer
from tisat.detectors.networks.onnx_session import one_window_session
from tisat.errors import ParameterError
from tisat.utils.parameters import choice, flag, integer, learned, presets, real
from tisat.utils.types import JsonDict, Params

ATTENTIONS = ("auto", "dense", "probsparse", "informer")


class TiSAT(NeuralForecaster[SparseTransformer]):
    """Forecast error of a sparse-attention transformer (Time Series Anomaly Transformer).

    The last ``window`` rows, measured from their anchor in units of the training range, are encoded by two stacks of
    ProbSparse attention; a decoder forecasts the next rows in one pass. The point of a row is the vector
    of forecast errors, each channel in units of its spread on the training rows; the score is the mean of squares. Training
    minimises the squared error in the same units where there is a linear skip, and plainly, as in the paper, where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(600) / 5)[:, None]
    >>> detector = TiSAT(window=20, d_model=8, d_ff=16, epochs=1).fit(wave)
    >>> detector.decision_function(wave).shape
    (600,)

    References
    ----------
    Doshi, Abudalou, Yilmaz: Reward Once, Penalize Once: Rectifying Time Series Anomaly Detection, section IV-B; the
    architecture is that of Zhou et al.: Informer, AAAI 2021. We differ: windows are anchored, residuals are scaled per
    channel, no calendar features, no batch normalisation, zero padding of convolutions (theirs is circular), no shuffling of
    the decoder's heads; a point is the larger of two absolute errors where ``lookahead`` is above 1.
    """

    preset: str = presets(
        compact="a solved linear forecast and a small transformer beside it, ours",
        paper="the paper where it speaks, Informer's program where it is silent",
        released="the authors' program",
    )
    d_model: int = integer(compact=16, paper=512, released=512, at_least=1, doc="Width of the network.")
    n_heads: int = integer(compact=2, paper=8, released=8, at_least=1, doc="Attention heads.")
    d_ff: int = integer(compact=32, paper=2048, released=2048, at_least=1, doc="Width of the feed-forward layers.")
    encoder_layers: int = integer(compact=2, paper=3, released=2, at_least=1, doc="Layers of the deep encoder stack.")
    quarter_stack: bool = flag(
        compact=True,
        paper=True,
        released=False,
        doc="A one-layer encoder stack on the last quarter of the window, beside the deep one.",
    )
    decoder_layers: int = integer(compact=1, paper=2, released=1, at_least=1, doc="Layers of the decoder.")
    dropout: float = real(0.05, at_least=0.0, below=1.0, doc="Share of units left out in training.")
    attention: str = choice(
        compact="auto",
        paper="informer",
        released="informer",
        of=ATTENTIONS,
        doc="'informer': ProbSparse as published, its measure from sampled keys. 'probsparse': the exact measure up to 128 keys. "
        "'auto': fused dense attention where it is quicker, 'probsparse' on long windows.",
    )
    factor: int = integer(5, at_least=1, doc="c of ProbSparse: c ceil(ln L) queries attend to all keys.")
    linear_skip: bool = flag(
        compact=True,
        paper=False,
        released=False,
        doc="Add the solved forecast of one linear map over time per channel; the transformer learns the rest. Not in the paper.",
    )
    earns: float = real(
        0.02,
        at_least=0.0,
        below=1.0,
        doc="Beside a line the transformer is used only where it lowers the line's validation loss by at least this share.",
    )
    lookahead: int = integer(compact=5, paper=1, released=1)
    token: int = integer(50, at_least=1, doc="Last rows of the window that start the decoder.")
    anchor: str = choice(compact="mean", paper="none", released="none")
    units: str = choice(compact="spread", paper="range", released="range")
    scaling: str = choice(compact="range", paper="range", released="standard")
    learning_rate: float = real(compact=1e-3, paper=1e-4, released=1e-4)
    epochs: int = integer(compact=4, paper=4, released=1)
    batch_size: int = integer(compact=64, paper=64, released=128)
    decay: float = real(compact=0.8, paper=0.5, released=0.5)
    max_windows: int | None = integer(compact=4_000, paper=None, released=None, none="all of them")
    gradient_clip: float | None = real(compact=1.0, paper=None, released=None, none="not clipped")

    _session: Callable[[Singles], Singles] | None = learned()  # made when the first row arrives

    def _check_parameters(self) -> None:
        super()._check_parameters()
        caller = type(self).__name__
        if self.d_model % self.n_heads:
            raise ParameterError(
                f"The 'd_model' parameter of {caller} must be a multiple of n_heads ({self.n_heads}). "
                f"Got {self.d_model} instead."
            )

    def _network(self, n_channels: int) -> SparseTransformer:
        return SparseTransformer(
            n_channels,
            window=self.window,
            horizon=len(self._leads()),
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            encoder_layers=self.encoder_layers,
            quarter_stack=self.quarter_stack,
            decoder_layers=self.decoder_layers,
            token=self.token,
            dropout=self.dropout,
            attention=self.attention,
            factor=self.factor,
            linear_skip=self.linear_skip,
        )

    def _fit(self, parts: Sequence[Array], *, checkpoint: Path | None = None, resume: bool = False) -> None:
        self.__dict__.pop("_session", None)
        super()._fit(parts, checkpoint=checkpoint, resume=resume)

    def _live_session(self) -> Callable[[Singles], Singles] | None:
        if "_session" not in vars(self):
            self._session = one_window_session(self.network_, (self.window, self.n_channels_))
        return self._session

    def __getstate__(self) -> JsonDict:
        return {name: value for name, value in vars(self).items() if name != "_session"}  # it belongs to this process

    def _loss(self, network: SparseTransformer, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        window, target = self._anchored(batch)
        error: torch.Tensor = network(window) - target  # (b, leads, C)
        if network.linear_skip is not None:
            # In units of what the line leaves, as the score: else the widest channel is all that counts.
            error = error / network.linear_skip.rest.clamp(min=SPREAD_FLOOR)
        return error.square().mean()

    def _optimizers(self, network: SparseTransformer) -> Optimizers:
        return {"all": torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)}

    def _start_is_a_candidate(self) -> bool:
        return self.linear_skip  # it starts from the linear forecast, which may be the best there is

    def _review_training(self, network: SparseTransformer, progress: Progress) -> None:
        """Beside a line that forecasts as well, the transformer only costs time."""
        if network.linear_skip is not None and progress.best > (1 - self.earns) * progress.start:
            network.used.zero_()

    def _before_training(self, network: SparseTransformer, batches: Batches) -> None:
        if network.linear_skip is not None:
            network.linear_skip.solve(batches(unbroken=True), self._leads())

    @classmethod
    def _test_params(cls) -> Params:
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

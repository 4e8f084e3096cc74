"""The whole network: a window of rows in, the next rows out.

Legend: b batch, L window, H horizon, C channels, D model width. Scaling, anchoring and scores are not known here.

References
----------
Zhou et al.: Informer, AAAI 2021; Doshi, Abudalou, Yilmaz: Reward Once, Penalize Once, section IV-B (TiSAT).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tisat.detectors.networks.decoder import Decoder
from tisat.detectors.networks.embedding import Embedding
from tisat.detectors.networks.encoder import Encoder, LayerSizes
from tisat.detectors.networks.linear_skip import LinearSkip


class SparseTransformer(nn.Module):
    """Encoder and decoder of sparse attention that forecast ``horizon`` rows in one pass.

    Parameters
    ----------
    n_channels, window, horizon : int
        C, L and H.
    d_model, n_heads, d_ff : int
        Width, heads, width of the feed-forward layers.
    encoder_layers, decoder_layers : int
        Layers of the deep encoder stack and of the decoder.
    quarter_stack : bool
        A one-layer encoder stack on the last quarter of the window, beside the deep one.
    token : int
        Last rows of the window given to the decoder as its start.
    dropout : float
    attention : {"auto", "dense", "probsparse", "informer"}
    factor : int
        Of ProbSparse attention.
    linear_skip : bool
        Add a linear forecast, see :mod:`tisat.detectors.networks.linear_skip`.

    Examples
    --------
    >>> import torch
    >>> network = SparseTransformer(3, window=24, horizon=2, d_model=8, n_heads=2, d_ff=16, token=12)
    >>> network(torch.zeros(5, 24, 3)).shape
    torch.Size([5, 2, 3])
    """

    used: Tensor  # ()

    def __init__(
        self,
        n_channels: int,
        *,
        window: int,
        horizon: int = 1,
        d_model: int = 512,
        n_heads: int = 8,
        d_ff: int = 2048,
        encoder_layers: int = 3,
        quarter_stack: bool = True,
        decoder_layers: int = 2,
        token: int = 50,
        dropout: float = 0.05,
        attention: str = "auto",
        factor: int = 5,
        linear_skip: bool = False,
    ) -> None:
        super().__init__()
        self.horizon, self.token = horizon, min(token, window)
        self.encoder_embedding = Embedding(n_channels, d_model, length=window, dropout=dropout)
        self.decoder_embedding = Embedding(n_channels, d_model, length=self.token + horizon, dropout=dropout)
        sizes = LayerSizes(d_model, n_heads, d_ff, dropout, attention, factor)
        self.encoder = Encoder(encoder_layers, sizes, quarter_stack=quarter_stack)
        self.decoder = Decoder(decoder_layers, sizes)
        self.projection = nn.Linear(d_model, n_channels)
        self.linear_skip = LinearSkip(n_channels, window=window, horizon=horizon) if linear_skip else None
        self.register_buffer("used", torch.ones(()))  # 0: the line alone forecasts
        if linear_skip:  # start from the linear forecast
            nn.init.zeros_(self.projection.weight)
            nn.init.zeros_(self.projection.bias)

    def _silent(self) -> bool:
        """Whether the transformer adds nothing, as before its first step."""
        return not bool(self.projection.weight.any()) and not bool(self.projection.bias.any())

    def forward(self, window: Tensor) -> Tensor:
        """The next rows ``(b, H, C)`` of windows ``(b, L, C)``."""
        if self.linear_skip is not None and not self.training and (not bool(self.used) or self._silent()):
            alone: Tensor = self.linear_skip(window)
            return alone
        memory = self.encoder(self.encoder_embedding(window))  # (b, L', D)
        start = nn.functional.pad(window[:, -self.token :], (0, 0, 0, self.horizon))  # (b, token + H, C)
        target = self.decoder(self.decoder_embedding(start), memory, self.horizon)  # (b, H, D)
        forecast: Tensor = self.projection(target)
        if self.linear_skip is None:
            return forecast
        linear: Tensor = self.linear_skip(window)
        return linear + self.linear_skip.rest * forecast

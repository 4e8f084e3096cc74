"""NeuralDetector: a series in, a trained network, points from it.

What every neural detector shares beside the loop (:mod:`~tisat.detectors._training`): scaling by the training rows alone,
scoring in blocks of bounded memory, one network for several entities, weights in the model file without pickle. This
module knows no architecture and no loss. CONTRIBUTING.md says how to write a detector with it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from tisat.detectors._checkpoint import load_network, network_arrays
from tisat.detectors._ranges import channel_ranges
from tisat.detectors._training import INITIAL, SCORING, Network, TrainedDetector, available_device, seeded
from tisat.detectors.base import Array, Traits
from tisat.detectors.fitting import fit_series
from tisat.detectors.networks import torch
from tisat.detectors.networks.threads import threads_for
from tisat.errors import ArtefactError, SeriesError
from tisat.gap_filling import usable_parts
from tisat.series import ManySeries, Series, SeriesLike, as_series
from tisat.utils.parameters import choice, learned
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap
from tisat.utils.validation import check_flag

DEVICES = ("auto", "cpu", "cuda", "mps")
SCALINGS = ("range", "standard")


class NeuralDetector(TrainedDetector[Network]):
    """A detector that is a trained network.

    The parameters here and in :class:`~tisat.detectors._training.TrainedDetector` are those of every neural detector; a
    subclass declares its own, and redeclares defaults.
    """

    scaling: str = choice(
        "range",
        of=SCALINGS,
        doc="Channels are scaled to the range, or to the mean and standard deviation, of the training rows.",
    )
    device: str = choice("auto", of=DEVICES, doc="Where it computes.")

    clip: ClassVar[float] = 10.0  # scaled values are kept within this many training ranges of [0, 1]
    # rounding: float32, and another order of summation for one window than for many
    traits: ClassVar[Traits] = Traits(rounding=1e-3)
    score_batch: ClassVar[int] = 128  # windows scored at a time: memory does not grow with the series

    # Learned by fit
    low_: Array = learned("C")  # (C,) smallest training value, or the mean
    span_: Array = learned("C")  # (C,) training range, or the standard deviation
    _restored_apart: ClassVar[frozenset[str]] = frozenset({"network_"})

    @abstractmethod
    def _window_points(self, network: Network, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Points ``(b, m)`` of the last rows of scaled windows ``(b, rows, C)``."""

    # ------------------------------------------------------------------ what users call

    def fit(
        self,
        series: ManySeries,
        y: object = None,
        *,
        holdout: float | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn what is normal.

        See :meth:`tisat.detectors.base.Detector.fit` for the series.

        Parameters
        ----------
        series, y, holdout
            As for every detector.
        checkpoint : path, optional
            A file that says after every epoch where training stands.
        resume : bool
            Go on from ``checkpoint`` if it exists; the weights are those of a run that was never interrupted. Other
            ``epochs`` or another ``device`` continue it; a checkpoint of other parameters or other data is refused.
        """
        again = check_flag(resume, "resume", f"{type(self).__name__}.fit")
        path = None if checkpoint is None else Path(checkpoint)
        fit_series(self, series, holdout=holdout, learn=partial(self._fit, checkpoint=path, resume=again))
        return self

    def fit_together(
        self, many: Sequence[SeriesLike], *, checkpoint: str | Path | None = None, resume: bool = False
    ) -> Self:
        """One network for several entities: each series in units of its own training rows.

        What comes back is the shared model; :func:`tisat.detectors.adapt` makes a detector of it for one entity.
        ``checkpoint`` and ``resume`` are those of :meth:`fit`.

        Examples
        --------
        >>> from tisat.detectors import LSTM, adapt
        >>> waves = [size * np.sin(np.arange(200.0) / 5) for size in (1.0, 100.0)]
        >>> shared = LSTM(window=10, hidden=4, layers=1, epochs=1).fit_together(waves)
        >>> adapt(shared, waves[1]).decision_function(waves[1]).shape
        (200,)
        """
        whose = f"{type(self).__name__}.fit_together"
        scaled = []
        for one in (as_series(series, whose=whose) for series in many):
            low, span = channel_ranges([one.values])
            scaled.append(Series((one.values - low) / span, channels=one.channels, name=one.name))
        return self.fit(scaled, holdout=0.0, checkpoint=checkpoint, resume=resume)

    def _adapt_to(self, series: Series) -> None:
        """Learn scaling, spread and normal points from one entity's rows.

        The weights stay.
        """
        low, span = channel_ranges([series.values])
        self.low_, self.span_ = low + span * self.low_, span * self.span_
        parts = [values for _, values in usable_parts(series)]
        self._look_at(parts)
        self._adapt(parts)
        self._keep_normal(parts, [], None)

    def _adapt(self, parts: Sequence[Array]) -> None:
        """Learn from an entity's rows what is not the network's."""

    # ------------------------------------------------------------------ from rows to the loop

    def _scaled(self, rows: Array) -> torch.Tensor:
        """Rows ``(..., C)`` min-max scaled by the training rows, clipped far out, on the device of the network."""
        scaled = np.clip((rows - self.low_) / self.span_, -self.clip, 1 + self.clip)
        return torch.from_numpy(scaled.astype(np.float32)).to(self._device)

    def _fit(self, parts: Sequence[Array], *, checkpoint: Path | None = None, resume: bool = False) -> None:
        device = available_device(self.device)
        self.low_, self.span_ = channel_ranges(parts)
        if self.scaling == "standard":
            rows = np.concatenate(list(parts))
            self.low_, self.span_ = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-3 * self.span_)
        with seeded(self._seed(INITIAL), device):
            self.network_ = self._network(self.n_channels_).to(device)
        values = self._scaled(np.concatenate(list(parts)))
        lengths = [len(part) for part in parts]
        if len(self._split(lengths)[0]) == 0:
            raise SeriesError(
                f"The series given to {type(self).__name__}.fit must hold {self._rows()} unbroken rows: one window. "
                f"The longest of {len(parts)} parts has {max(map(len, parts))}."
            )
        with threads_for(self.network_):
            self._train(values, lengths, checkpoint, resume=resume)

    # ------------------------------------------------------------------ scoring

    def _context(self) -> int | None:
        return self._rows() - 1

    def _width(self) -> int:
        """m, the length of a point."""
        return self.n_channels_ if self.traits.points_are_channels else 1

    def _block_points(self, windows: torch.Tensor) -> Array:
        """Points of one block of scaled windows."""
        with torch.no_grad(), threads_for(self.network_):
            generator = torch.Generator(device=self._device).manual_seed(self._seed(SCORING))
            return np.asarray(self._window_points(self.network_, windows, generator).cpu().numpy(), dtype=np.float64)

    def _points(self, part: Array) -> Array:
        rows = self._rows()
        points = np.full((len(part), self._width()), np.nan)
        for first in range(0, len(part) - rows + 1, self.score_batch):
            stop = min(first + self.score_batch, len(part) - rows + 1)
            block = self._scaled(part[first : stop + rows - 1])
            windows = block.unfold(0, rows, 1).transpose(1, 2).contiguous()  # (b, rows, C)
            points[first + rows - 1 : stop + rows - 1] = self._block_points(self._anchored_windows(windows))
        return points

    def _points_of_windows(self, windows: Array) -> Array:
        blocks = [windows[first : first + self.score_batch] for first in range(0, len(windows), self.score_batch)]
        points = [self._block_points(self._anchored_windows(self._scaled(block))) for block in blocks]
        return np.concatenate([np.empty((0, self._width())), *points])

    # ------------------------------------------------------------------ one file

    def _check_weights(self, weights: Mapping[str, AnyArray]) -> None:
        """Refuse weights that are not those of the network the parameters ask for, before room is made for it."""
        with torch.device("meta"):
            wanted = self._network(self.n_channels_).state_dict()
        for name, tensor in wanted.items():
            array = weights.get(f"network.{name}")
            if array is None:
                continue  # what is lacking and what is too much is said when the network is filled
            if array.shape != tuple(tensor.shape) or (array.dtype.kind == "f" and not np.isfinite(array).all()):
                raise ArtefactError(
                    f"The weights {name!r} of {type(self).__name__} must be finite, of shape {tuple(tensor.shape)}. "
                    f"Got shape {array.shape}."
                )

    def _state(self) -> tuple[JsonDict, Arrays]:
        plain, tensors = super()._state()
        del plain["network_"]
        return plain, {**tensors, **network_arrays(self.network_, prefix="network.")}

    def _restore(self, plain: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
        weights = {name: array for name, array in tensors.items() if name.startswith("network.")}
        super()._restore(plain, {name: array for name, array in tensors.items() if name not in weights})
        self._check_weights(weights)
        there = torch.cuda.is_available() if self.device == "cuda" else torch.backends.mps.is_available()
        # A model trained on a device that this machine does not have is opened on one that it has.
        device = available_device(self.device if self.device == "cpu" or there else "auto")
        with seeded(self._seed(INITIAL), device):
            self.network_ = self._network(self.n_channels_)
        load_network(self.network_, weights, prefix="network.", what=f"The model file of {type(self).__name__}")
        self.network_.to(device).eval()

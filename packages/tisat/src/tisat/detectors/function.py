"""FunctionDetector: any function from a series to scores, as a detector, in one line.

    detector = from_function(lambda values: abs(values).max(axis=1)).fit(series)

The function gets values ``(T, C)`` and returns one score a row, or one point a row ``(T, m)``; NaN is warm-up. It must not
look ahead. Where it is said how many earlier rows it needs (``context``) it is called on one window at a time and cannot;
otherwise it is tried on the training data, and one that changes its mind when rows are appended is refused. A function
cannot be saved: write a class and register it for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tisat.detectors._windows import sliding_windows
from tisat.detectors.base import Array, Detector, Stream
from tisat.errors import ArtefactError, InputError, ParameterError
from tisat.utils.parameters import integer, value
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap

PROBE_ROWS = 500  # training rows a function without context is tried on


class FunctionDetector(Detector):
    """A detector that is a function.

    Examples
    --------
    >>> import numpy as np
    >>> detector = FunctionDetector(lambda values: np.abs(values).max(axis=1)).fit([[0.0], [1.0], [-2.0], [1.0]])
    >>> detector.decision_function([[3.0], [-5.0]]).tolist()
    [3.0, 5.0]
    """

    function: Callable[[Array], npt.ArrayLike] = value(doc="Values (T, C) to scores (T,) or points (T, m).")
    context: int | None = integer(
        None,
        at_least=0,
        none="all of them may matter",
        doc="How many earlier rows the value at t depends on; needed for monitoring row by row.",
    )

    def __init__(self, function: Callable[[Array], npt.ArrayLike], *, context: int | None = None) -> None:
        self.function = function
        self.context = context

    def _call(self, part: Array) -> Array:
        points = np.asarray(self.function(part.copy()), dtype=np.float64)
        if points.ndim == 1:
            points = points[:, None]
        if points.ndim != 2 or len(points) != len(part):
            raise InputError(
                f"The function given to from_function must return one score a row ({len(part)}). "
                f"Got shape {points.shape} instead."
            )
        return points

    def _fit(self, parts: Sequence[Array]) -> None:
        if not callable(self.function):
            raise ParameterError(
                f"The 'function' parameter of FunctionDetector must be callable. Got {self.function!r} instead."
            )
        if self.context is not None:
            return
        probe = max(parts, key=len)[:PROBE_ROWS]
        shorter = probe[: max(1, len(probe) // 2)]
        whole, prefix = self._call(probe)[: len(shorter)], self._call(shorter)
        if not np.allclose(whole, prefix, rtol=1e-6, atol=1e-9, equal_nan=True):
            row = int(np.argmax(~np.isclose(whole, prefix, rtol=1e-6, atol=1e-9, equal_nan=True).all(axis=1)))
            raise ParameterError(
                f"The function given to from_function must not look ahead: its score of row {row} changes when later rows "
                f"are appended. Give 'context', and it is called on one window at a time."
            )

    def _points(self, part: Array) -> Array:
        if self.context is None:
            return self._call(part)
        windows = sliding_windows(part, window=self.context + 1)
        if len(windows) == 0:
            return np.full((len(part), getattr(self, "n_points_", 1)), np.nan)
        points = np.stack([self._call(window)[-1] for window in windows])
        return np.concatenate([np.full((self.context, points.shape[1]), np.nan), points])

    def _context(self) -> int | None:
        return self.context

    def _stream(self) -> Stream:
        if self.context is None:
            raise ParameterError(
                "The 'context' parameter of FunctionDetector must be an integer >= 0 for scoring row by row: "
                "how many earlier rows the function needs. Got None instead."
            )
        return super()._stream()

    def _state(self) -> tuple[JsonDict, Arrays]:
        raise ArtefactError(
            "A FunctionDetector cannot be saved: write a detector class and tisat.registry.register it."
        )

    def _restore(self, plain: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
        raise ArtefactError("A FunctionDetector cannot be read from a file.")


def from_function(function: Callable[[Array], npt.ArrayLike], *, context: int | None = None) -> FunctionDetector:
    """A detector from a function of values ``(T, C)`` to scores ``(T,)``.

    See :class:`FunctionDetector`.

    Parameters
    ----------
    function : callable
        Rows in, one score per row out.
    context : int
        Rows before the first score.

    Returns
    -------
    FunctionDetector
        A detector.

    Examples
    --------
    >>> import numpy as np
    >>> from_function(lambda values: values - values.mean()).fit(np.arange(10.0))
    Traceback (most recent call last):
    ...
    tisat.errors.ParameterError: The function given to from_function must not look ahead: its score of row 0 changes when later rows are appended. Give 'context', and it is called on one window at a time.
    """
    return FunctionDetector(function, context=context)

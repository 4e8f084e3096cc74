"""LastValue: nothing changes from one row to the next.

The forecast of a row is the row before it.

It sees jumps and bursts at the row they begin and knows nothing else: no history, no other channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tisat.detectors._forecast import ForecastDetector
from tisat.detectors.base import Array, Traits


class LastValue(ForecastDetector):
    """The last-value ("naive") forecaster: points are first differences in units of their normal spread.

    Examples
    --------
    >>> detector = LastValue().fit([[0.0], [1.0], [0.0], [1.0], [0.0]], holdout=0)
    >>> detector.decision_function([[0.0], [1.0], [5.0]]).tolist()
    [nan, 1.0, 16.0]

    Notes
    -----
    The cheapest detector of the package, and a hard one to beat: compare with it whatever needs training.
    """

    # partial: channels do not see each other
    traits: ClassVar[Traits] = replace(ForecastDetector.traits, partial=True)

    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        return None

    def _forecast(self, part: Array) -> Array:
        forecast = np.full_like(part, np.nan)
        forecast[1:] = part[:-1]
        return forecast

    def _context(self) -> int:
        return 1

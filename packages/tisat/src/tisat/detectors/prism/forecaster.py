"""Another forecaster in the place of the line: any detector of ours whose points are one-step forecast errors.

It is fitted on the scaled rows the views look at, and its errors are given back in their units. It must look at a bounded
number of rows; one that forecasts several rows ahead is asked for the next one only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat import registry
from tisat.detectors._forecast import ForecastDetector
from tisat.detectors.base import Array, Detector
from tisat.errors import ParameterError
from tisat.series import Series
from tisat.utils.types import Integers

LINE = "line"  # the built-in one
KEPT = 50  # normal points it keeps for itself


def make_forecaster(name: object) -> Detector:
    """An unfitted forecaster by its registered name; refuses what is none."""
    wrong = "The 'forecaster' parameter of Prism must be 'line' or the name of a detector that forecasts the next row from a bounded number of rows, such as 'linear-last' or 'tisat'."  # fmt: skip
    if not isinstance(name, str):
        raise ParameterError(f"{wrong} Got {name!r} instead.")
    cls = registry.resolve(name)
    if not (issubclass(cls, ForecastDetector) or (issubclass(cls, Detector) and hasattr(cls, "_forecast_windows"))):
        raise ParameterError(f"{wrong} Got {name!r} instead.")
    known = cls().get_params(deep=False)
    made = cls(**({"lookahead": 1} if "lookahead" in known else {}))
    if made._context() is None:
        raise ParameterError(f"{wrong} Got {name!r}, which looks at all earlier rows.")
    return made


def fit_forecaster(name: str, parts: Sequence[Array], channels: tuple[str, ...]) -> Detector:
    """Fitted on scaled parts."""
    made = make_forecaster(name).fit([Series(part, channels=channels) for part in parts], holdout=0.0)
    made.normal_, made.normal_breaks_ = made.normal_[:KEPT], np.zeros(1, dtype=np.int64)
    return made


def errors_of(forecaster: Detector, rows: Array, at: Integers) -> Array:
    """Row minus forecast ``(n, C)`` at the rows ``at``, in the units of the rows."""
    context = forecaster._context() or 0
    if len(at) == 1:
        points = forecaster._points_of_windows(rows[None, at[0] - context : at[0] + 1])
    else:
        points = forecaster._points(rows)[at]
    return np.ascontiguousarray(points * np.atleast_2d(vars(forecaster)["spread_"])[0])

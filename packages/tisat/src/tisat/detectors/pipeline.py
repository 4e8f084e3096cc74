"""scikit-learn's Pipeline that can also raise alarms: the clock, the names and the labels go along with the rows.

The steps before the last are scikit-learn transformers, the last is a detector. A transformer that looks at rows other than
the one it transforms (a smoother over the whole table) would look into the future: such steps belong into a detector. Pipelines
have no file: transformers of scikit-learn can only be pickled. This module knows no particular detector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import sklearn.pipeline

from tisat.detectors.base import NORMAL_QUANTILE, Array, Detector
from tisat.errors import ParameterError, SeriesError
from tisat.io.columns import are_names
from tisat.series import ManySeries, Series, SeriesLike, as_many, as_series
from tisat.utils.types import AnyFloats
from tisat.watch.shortcuts import AlarmsInOneStep


class Pipeline(AlarmsInOneStep, sklearn.pipeline.Pipeline):
    """Transformers and a detector, in one estimator.

    Parameters
    ----------
    steps : list of (name, estimator)
        As in scikit-learn. The last is a detector of tisat.
    memory, transform_input, verbose : object
        Of scikit-learn; ``memory`` is not used.

    Examples
    --------
    >>> from sklearn.preprocessing import RobustScaler
    >>> from tisat.detectors import Mahalanobis
    >>> rows = np.random.default_rng(0).normal(size=(1500, 2))
    >>> pipeline = Pipeline([("scale", RobustScaler()), ("detector", Mahalanobis(window=1))]).fit(rows)
    >>> rows[700:710] = 30.0
    >>> max(pipeline.alarms(rows, false_alarms="1/500 rows"), key=lambda alarm: alarm.peak).raised
    700
    """

    def fit(self, series: ManySeries, y: object = None, **params: object) -> Self:
        """Fit every step on normal data: a series, an array, a table, a file, or a list of them.

        ``params`` are those of the detector's ``fit``, as scikit-learn writes them: ``detector__holdout=0.1``.
        """
        name, detector = self.steps[-1]
        if not isinstance(detector, Detector):
            raise ParameterError(
                f"The last step of a tisat Pipeline must be a detector of tisat. Got {detector!r} instead."
            )
        prefix = f"{name}__"
        wrong = [key for key in params if not key.startswith(prefix)]
        if wrong:
            raise ParameterError(f"A fit parameter of Pipeline must begin with {prefix!r}. Got {wrong[0]!r} instead.")
        many = as_many(series, whose="Pipeline.fit")
        many = [one.in_order(many[0].channels, whose="Pipeline.fit") for one in many]
        for _, step in self._transformers():
            step.fit(_table(np.concatenate([one.values for one in many]), many[0].channels), None)
            many = [_through(step, one) for one in many]
        fit: Callable[..., object] = detector.fit
        fit(many, **{key.removeprefix(prefix): value for key, value in params.items()})
        return self

    def _transformers(self) -> list[tuple[str, Any]]:
        return [(name, step) for name, step in self.steps[:-1] if step is not None and step != "passthrough"]

    @property
    def detector(self) -> Detector:
        """The last step."""
        last: Detector = self.steps[-1][1]
        return last

    def prepare(self, series: SeriesLike) -> Series:
        """Transform a series by every step but the last; keep clock, names and labels."""
        found = as_series(series, whose="Pipeline")
        for _, step in self._transformers():
            found = _through(step, found)
        return found

    def fit_predict(self, series: SeriesLike, y: object = None, **params: object) -> npt.NDArray[np.int8]:
        """Fit, and :meth:`predict` the same rows."""
        return self.fit(series, y, **params).predict(series)

    def decision_function(self, series: SeriesLike) -> Array:
        """Scores ``(T,)``: higher = more anomalous, NaN in warm-up."""
        return self.detector.decision_function(self.prepare(series))

    def score_samples(self, series: SeriesLike) -> Array:
        """Minus :meth:`decision_function`: scikit-learn's sign."""
        return -self.decision_function(series)

    def predict(self, series: SeriesLike, *, quantile: float = NORMAL_QUANTILE) -> npt.NDArray[np.int8]:
        """1 where the score exceeds this quantile of the normal scores, else 0."""
        return self.detector.predict(self.prepare(series), quantile=quantile)

    def _watched(self, series: SeriesLike) -> tuple[Detector, Series]:
        return self.detector, self.prepare(series)  # reasons speak of the channels as the detector sees them


def _table(values: AnyFloats, channels: Sequence[str]) -> Any:
    """A table with names where pandas is there and the channels have some, else the values."""
    if not are_names(channels):
        return values
    try:
        import pandas as pd
    except ImportError:
        return values
    return pd.DataFrame(values, columns=list(channels))


def _through(step: Any, series: Series) -> Series:
    """A series after one transformer."""
    transformed = step.transform(_table(series.values, series.channels))
    values = np.asarray(transformed.toarray() if hasattr(transformed, "toarray") else transformed)
    if values.ndim != 2 or len(values) != len(series):
        raise SeriesError(
            f"The step {type(step).__name__} of a Pipeline must give a row for each row ({len(series)}). Got shape {values.shape} instead."
        )
    if hasattr(transformed, "columns"):
        names = [str(name) for name in transformed.columns]
    elif hasattr(step, "get_feature_names_out"):
        names = [str(name) for name in step.get_feature_names_out(list(series.channels))]
    else:
        names = list(series.channels) if values.shape[1] == series.n_channels else []
    return replace(series, values=values, channels=tuple(names))

"""ForecasterDetector: any object that forecasts, as a detector, in one line.

    detector = from_forecaster(Ridge(), window=24).fit(series)          # a regressor of scikit-learn: lags in, next row out
    detector = from_forecaster(AutoETS(), window=200).fit(series)       # a model of statsforecast, one for each channel
    detector = from_forecaster(MyModel(), window=512).fit(series)       # fit(parts) and predict(windows) of your own

The model sees the ``window`` rows before a row, never the row itself, and says what it expects. Where it gives one value the point is the
residual, in units of its spread on training rows; where it gives two, a lower and an upper one, the point is how far the row lies beyond them.
Channels are standardised by the training rows first. What the model computes is its own affair.

A model cannot be saved: nothing is known of it but ``fit`` and ``predict``, and this package reads no pickles. Fit it again where it runs, or
write a detector class and register it.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.multioutput import MultiOutputRegressor

from tisat.detectors._forecast import ForecastDetector, StandardisedDetector, residual_spread
from tisat.detectors._windows import blocks_of, parts_longer_than, sliding_windows, training_windows
from tisat.detectors.base import Array, Traits
from tisat.errors import ArtefactError, InputError, ParameterError
from tisat.utils.parameters import integer, learned, value
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap

MAY_BE = "a regressor of scikit-learn, a model of statsforecast with 'forward', or an object with fit(parts) and predict(windows)"
LARGEST = 1e150  # a forecast beyond is as good as infinite, and its square is still a number


class ForecasterDetector(ForecastDetector, StandardisedDetector):
    """A detector whose scores are the errors of any forecaster.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> wave = np.sin(np.arange(600) / 5)
    >>> detector = ForecasterDetector(Ridge(), window=10).fit(wave)
    >>> broken = wave[:100].copy()
    >>> broken[60] += 3.0
    >>> int(np.nanargmax(detector.decision_function(broken)[:61]))
    60

    Notes
    -----
    The mean of squared residuals over channels, as of every forecaster here; exceedances in their place where the model gives an interval.
    """

    traits: ClassVar[Traits] = replace(
        ForecastDetector.traits,
        contract_exemptions={
            "saved_and_loaded_is_the_same": "a model of another package is not known well enough to be saved, and no pickle is read"
        },
    )

    model: Any = value(doc=f"Not fitted: {MAY_BE}.")
    window: int = integer(24, at_least=1, doc="Rows before a row that the model sees.")
    level: int | None = integer(
        None,
        at_least=1,
        at_most=99,
        none="one value: the mean",
        doc="Of a model of statsforecast: the interval in percent that rows are expected in.",
    )

    _fitted: Any = learned()  # the model, or one for each channel

    def __init__(self, model: object, *, window: int = 24, level: int | None = None) -> None:
        self.model = model
        self.window = window
        self.level = level

    # ------------------------------------------------------------------ the three kinds of model

    def _kind(self) -> str:
        if hasattr(self.model, "forward") and hasattr(self.model, "forecast"):
            return "statsforecast"
        if self.level is not None:
            raise ParameterError(
                "The 'level' parameter of ForecasterDetector must be None but for models of statsforecast. "
                "A model of your own gives an interval by predicting two arrays, the lower and the upper."
            )
        of_sklearn = hasattr(self.model, "__sklearn_tags__")
        if (
            hasattr(self.model, "fit")
            and hasattr(self.model, "predict")
            and not (of_sklearn and is_classifier(self.model))
        ):
            return "regressor" if of_sklearn and is_regressor(self.model) else "own"
        raise ParameterError(f"The model of ForecasterDetector must be {MAY_BE}. Got {self.model!r} instead.")

    def _check_model(self) -> None:
        """Refuse a model that can be told to be none, before it is fitted."""
        may_be = f"The model of ForecasterDetector must be {MAY_BE}."
        if isinstance(self.model, type):
            name = self.model.__name__
            raise ParameterError(f"{may_be} Got the class {name} instead; give an object of it, such as {name}().")
        if self._kind() != "own":
            return
        kind = type(self.model).__name__
        if hasattr(self.model, "__sklearn_tags__") and is_outlier_detector(self.model):
            raise ParameterError(
                f"{may_be} Got {self.model!r}, which tells outliers; tisat.detectors.from_sklearn({kind}()) makes a detector of it."
            )
        if type(self.model).__module__.partition(".")[0] == "statsforecast":
            raise ParameterError(f"{may_be} Got {kind}, which has no 'forward'.")
        try:
            takes = inspect.signature(self.model.fit)
        except (TypeError, ValueError):  # compiled
            return
        try:
            takes.bind([])
        except TypeError:
            raise ParameterError(
                f"{may_be} Got {kind}, whose fit takes {takes}; derive it from "
                "sklearn.base.RegressorMixin and BaseEstimator if it is a regressor."
            ) from None

    def _learn(self, parts: Sequence[Array]) -> None:
        self._check_model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks of the model about its numbers
            if self._kind() == "statsforecast":
                longest = max(parts, key=len)  # such a model is fitted on one series without gaps
                self._fitted = [copy.deepcopy(self.model).fit(y=np.ascontiguousarray(column)) for column in longest.T]
                return
            self._fitted = copy.deepcopy(self.model)
            if self._kind() == "own":
                self._fitted.fit([part.copy() for part in parts])
                return
            windows = training_windows(parts, window=self.window + 1)
            wanted = windows[:, -1]
            if wanted.shape[1] == 1:
                wanted = wanted[:, 0]
            elif not self._fitted.__sklearn_tags__().target_tags.multi_output:
                self._fitted = MultiOutputRegressor(self._fitted)  # one regressor for each channel
            self._fitted.fit(windows[:, :-1].reshape(len(windows), -1), wanted)

    def _predicted(self, windows: Array) -> tuple[Array, Array]:
        """Lower and upper forecast ``(n, C)`` of the row after each window ``(n, window, C)``.

        The same where there is one value; NaN where there is none.
        """
        kind = self._kind()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "statsforecast":
                forecast = self._forwarded(windows)
            elif kind == "regressor":
                forecast = self._fitted.predict(windows.reshape(len(windows), -1))
            else:
                forecast = self._fitted.predict(windows.copy())
        pair = forecast if isinstance(forecast, tuple | list) and len(forecast) == 2 else (forecast, forecast)
        shape = (len(windows), windows.shape[2])
        bounds = []
        for one in pair:
            rows = np.asarray(one, dtype=np.float64)
            if rows.size != shape[0] * shape[1]:
                raise InputError(
                    f"The forecasts of {type(self.model).__name__} must have one row for each window and one value for each channel, shape {shape}, "
                    f"or be a pair of such: lower and upper. Got shape {rows.shape} instead."
                )
            bounds.append(np.clip(rows.reshape(shape), -LARGEST, LARGEST))
        return bounds[0], bounds[1]

    def _forwarded(self, windows: Array) -> Any:
        """The next value of each window and channel by models of statsforecast."""
        level = None if self.level is None else [self.level]
        names = ("mean", "mean") if self.level is None else (f"lo-{self.level}", f"hi-{self.level}")
        bounds = np.empty((2, len(windows), windows.shape[2]))
        for c, model in enumerate(self._fitted):
            for n, window in enumerate(windows):
                told = model.forward(y=np.ascontiguousarray(window[:, c]), h=1, level=level)
                bounds[:, n, c] = [np.ravel(told[name])[0] for name in names]
        return bounds[0], bounds[1]

    # ------------------------------------------------------------------ the contract of forecasters

    def _fit(self, parts: Sequence[Array]) -> None:
        self._learn_scale(parts)
        long = parts_longer_than(self.window, parts, whose=type(self).__name__)
        self._learn([self._standardise(part) for part in long])
        bounds = [self._bounds(part) for part in long]
        self._check_bounds(*(np.concatenate(ends) for ends in zip(*bounds, strict=True)))
        residuals = np.concatenate([part - _nearest(part, *ends) for part, ends in zip(long, bounds, strict=True)])
        self.spread_ = residual_spread(residuals[~np.isnan(residuals).any(axis=1)], parts)

    def _check_bounds(self, low: Array, high: Array) -> None:
        """Refuse forecasts of training rows of which none is known, or most have their bounds in the wrong order."""
        known = ~np.isnan(low + high).any(axis=1)
        who = f"The forecasts of {type(self.model).__name__}"
        if not known.any():
            raise InputError(
                f"{who} must be numbers. Got NaN for every training row; return NaN only where there is no forecast."
            )
        crossed = (low > high)[known]
        if crossed.mean() > 0.5:
            raise InputError(
                f"{who} must be a pair (lower, upper). Got a lower one above the upper one in {crossed.mean():.0%} of the training values; "
                "return them in the other order."
            )

    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        self._learn(parts)

    def _forecast(self, part: Array) -> Array:
        """Forecast of each row, or the nearest end of its interval; NaN where the model gives none."""
        return _nearest(part, *self._bounds(part))

    def _bounds(self, part: Array) -> tuple[Array, Array]:
        """Lower and upper forecast of each row, as the model gives them."""
        bounds = np.full((2, *part.shape), np.nan)
        windows = sliding_windows(self._standardise(part), window=self.window)[:-1]
        for rows, block in blocks_of(windows):
            here = slice(rows.start + self.window, rows.stop + self.window)
            for end, one in zip(bounds, self._predicted(block), strict=True):
                end[here] = one * self.scale_ + self.center_
        return bounds[0], bounds[1]

    def _context(self) -> int:
        return self.window

    def _minimum_rows(self) -> int:
        return self.window + 2

    def _state(self) -> tuple[JsonDict, Arrays]:
        raise ArtefactError(
            f"A detector made of {type(self.model).__name__} cannot be saved: nothing is known of it but fit and predict, and no pickle is read. "
            "Fit it again where it runs, or write a detector class and tisat.registry.register it."
        )

    def _restore(self, plain: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
        raise ArtefactError("A ForecasterDetector cannot be read from a file.")


def _nearest(part: Array, low: Array, high: Array) -> Array:
    """The value of an interval that is nearest to each row; bounds that cross, as quantiles may, are put in order."""
    return np.clip(part, np.minimum(low, high), np.maximum(low, high))


def from_forecaster(model: object, *, window: int = 24, level: int | None = None) -> ForecasterDetector:
    """Make a detector from any object that forecasts.

    Parameters
    ----------
    model : object
        Not fitted: a regressor of scikit-learn, a model of statsforecast, or an object with ``fit(parts)``, a list of arrays ``(T, C)``, and
        ``predict(windows)``, from ``(n, window, C)`` to forecasts ``(n, C)`` of the rows after them, or to a pair of them: lower and upper.
        A row whose forecast is NaN has no score.
    window : int
        Rows before a row that the model sees.
    level : int, optional
        Of a model of statsforecast: rows are expected in its interval of so many percent, instead of at its mean.

    Returns
    -------
    ForecasterDetector

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from_forecaster(Ridge(alpha=0.5), window=12)
    ForecasterDetector(model=Ridge(alpha=0.5), window=12)
    """
    detector = ForecasterDetector(model, window=window, level=level)
    detector._check_model()
    return detector

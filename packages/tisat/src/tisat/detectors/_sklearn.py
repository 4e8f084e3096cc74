"""What scikit-learn's own code looks for in an outlier detector, said once for every detector.

Two habits differ and stay different, because the rest of the package rests on them: ``decision_function`` is higher where a row is
more anomalous, and ``predict`` is 1 there and 0 elsewhere (scikit-learn: lower, and -1 and 1). ``score_samples`` is scikit-learn's name
and keeps scikit-learn's sign. scikit-learn itself is imported when its own code asks: it takes longer than most fits. This module
does not know how a score is made.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tisat.errors import NotFittedError
from tisat.series import SeriesLike
from tisat.utils.types import Array

if TYPE_CHECKING:
    from sklearn.utils import Tags


@cache
def not_fitted_error() -> type[NotFittedError]:
    """:class:`tisat.errors.NotFittedError`, for those who catch scikit-learn's, too."""
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError

    class NotFittedHereError(NotFittedError, SklearnNotFittedError):
        """Both."""

    return NotFittedHereError


class SklearnOutlier:
    """The names of scikit-learn, over ``fit``, ``decision_function``, ``predict`` and ``normal_level``."""

    channels_: tuple[str, ...]
    n_channels_: int

    def fit_predict(self: Any, series: SeriesLike, y: object = None) -> npt.NDArray[np.int8]:
        """Fit, and :meth:`predict` the same rows: 1 where a row exceeds ``threshold_``, else 0."""
        found: npt.NDArray[np.int8] = self.fit(series, y).predict(series)
        return found

    def score_samples(self: Any, series: SeriesLike) -> Array:
        """Minus :meth:`decision_function`: scikit-learn's sign, **lower** = more anomalous; NaN in warm-up."""
        return -np.asarray(self.decision_function(series))

    @property
    def threshold_(self: Any) -> float:
        """What :meth:`predict` compares scores with: the 0.99 quantile of the normal ones. Alarms have their own, from a budget."""
        level: float = self.normal_level()
        return level

    @property
    def n_features_in_(self) -> int:
        """The number of channels; scikit-learn's name for ``n_channels_``."""
        self._check_fitted()
        return self.n_channels_

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """The names of the channels, where the training data had names; as in scikit-learn there is no such attribute otherwise."""
        self._check_fitted()
        if self.channels_ == tuple(map(str, range(self.n_channels_))):
            raise AttributeError(f"This {type(self).__name__} was fitted on data without names of channels.")
        return np.array(self.channels_, dtype=object)

    def _check_fitted(self) -> None:
        if not hasattr(self, "normal_"):
            raise not_fitted_error()(f"This {type(self).__name__} must be fitted before it is used. Call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "normal_")

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags

        # A missing value is NaN, and stays missing.
        return Tags("outlier_detector", TargetTags(required=False), input_tags=InputTags(allow_nan=True))

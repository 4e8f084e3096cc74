"""Names and tags that scikit-learn expects of an outlier detector.

Two habits differ and stay different, because the rest of the package rests on them: ``decision_function`` is higher where a row is
more anomalous, and ``predict`` is 1 there and 0 elsewhere (scikit-learn: lower, and -1 and 1). ``score_samples`` is scikit-learn's name
and keeps scikit-learn's sign. scikit-learn itself is imported when its own code asks: it takes longer than most fits. This module
does not know how a score is made.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tisat.errors import NotFittedError

if TYPE_CHECKING:
    from sklearn.utils import Tags


@cache
def not_fitted_error() -> type[NotFittedError]:
    """:class:`tisat.errors.NotFittedError`, for those who catch scikit-learn's, too."""
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError

    class NotFittedHereError(NotFittedError, SklearnNotFittedError):
        """Both."""

    return NotFittedHereError


def channel_names(channels: tuple[str, ...], *, whose: str) -> npt.NDArray[np.object_]:
    """The names of channels as scikit-learn keeps them.

    An ``AttributeError`` where the training data had none.
    """
    if channels == tuple(map(str, range(len(channels)))):
        raise AttributeError(f"This {whose} was fitted on data without names of channels.")
    return np.array(channels, dtype=object)


def outlier_tags() -> Tags:
    """scikit-learn's tags of an outlier detector; missing values are NaN."""
    from sklearn.utils import InputTags, Tags, TargetTags

    return Tags("outlier_detector", TargetTags(required=False), input_tags=InputTags(allow_nan=True))

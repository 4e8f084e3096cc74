"""A watch as scikit-learn's conventions want it, without importing scikit-learn."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from tisat.alarms.alarms import Alarms
from tisat.alarms.ongoing import rows_on
from tisat.alarms.rules import AlarmRule, RuleLike
from tisat.errors import ParameterError
from tisat.io.durations import DurationLike
from tisat.series import SeriesLike
from tisat.utils.near_names import meant
from tisat.utils.types import Array, Params

if TYPE_CHECKING:
    from sklearn.utils import Tags

P = ParamSpec("P")
S = TypeVar("S")


def refuse_unknown(init: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """Refuse a parameter that a watch does not have with those it has.

    One of the detector, with what to type.
    """
    names = [name for name in inspect.signature(init).parameters if name != "self"]

    @functools.wraps(init)
    def checked(self: S, /, *given: P.args, **named: P.kwargs) -> None:
        unknown = next((name for name in named if name not in names), None)
        if unknown is not None:
            detector = repr(given[0]) if given and isinstance(given[0], str) else "'prism'"
            near = meant(unknown, names)
            hint = near or f" A parameter of the detector goes there: Watch(tisat.make({detector}, {unknown}=...))."
            raise TypeError(
                f"Watch must be given parameters it has: {', '.join(names)}. Got {unknown!r} instead.{hint}"
            )
        init(self, *given, **named)

    return checked


def at_pace(rule: AlarmRule, given: RuleLike, period: float | None) -> AlarmRule:
    """Return the rule with the lengths that its class has for rows so far apart.

    Lengths that were ``given`` stay.

    Examples
    --------
    >>> from tisat.alarms.rules import ExcessRule
    >>> [at_pace(ExcessRule(), "excess", seconds).params()["hold"] for seconds in (60.0, 300.0, 3600.0)]
    [30, 6, 3]
    """
    paces = () if isinstance(given, AlarmRule) else getattr(rule, "paces", ())
    names = given if isinstance(given, Mapping) else ()
    own = {name: rule.options()[name] for _, lengths in paces for name in lengths if name not in names}
    slow: Params = next((lengths for seconds, lengths in paces if period is not None and period >= seconds), {})
    free = {name: slow.get(name, value) for name, value in own.items()}
    kept = rule.params()
    return rule if {**kept, **free} == kept else type(rule)(**{**kept, **free})


class WatchParameters(ABC):
    """``get_params``, ``set_params``, ``decision_function`` and ``predict`` of a watch.

    ``sklearn.base.clone`` copies it, not fitted; it can be the last step of a pipeline.
    """

    given_period: DurationLike | None
    given_counters: Sequence[str] | None
    given_rule: RuleLike
    rule: AlarmRule
    detector: Any

    @property
    def left_out_rows(self) -> int:
        """Training rows left out as anomalous; 0 unless ``contaminated``."""
        return int(getattr(self.detector, "trained_on_", {}).get("left_out_rows", 0))

    @abstractmethod
    def score(self, series: SeriesLike) -> Array:
        """Scores of a series."""

    @abstractmethod
    def alarms(self, series: SeriesLike) -> Alarms:
        """The alarms of a series."""

    def decision_function(self, series: SeriesLike) -> Array:
        """Scores ``(T,)``: the statistic that alarms are raised on; higher = more anomalous, NaN where there is none."""
        return self.score(series)

    def predict(self, series: SeriesLike) -> npt.NDArray[np.int8]:
        """1 in rows with an alarm on, else 0, as detectors of this package and of PyOD do; scikit-learn's have -1 and 1."""
        return rows_on(self.alarms(series)).astype(np.int8)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.detector, "normal_")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = self.detector.__sklearn_tags__()
        return tags

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 - scikit-learn's signature
        """Return the parameters by name.

        With ``deep`` also those of the detector and the rule, as ``detector__window``.
        """
        names = ("period", "counters", "rule")
        given: dict[str, Any] = {name: getattr(self, f"given_{name}") for name in names}
        said = {name: given[name] if name in given else getattr(self, name) for name in self._get_param_names()}
        made = {**said, "rule": self.rule}
        nested = {name: inner for name, inner in made.items() if deep and hasattr(inner, "get_params")}
        parts = {f"{name}__{key}": part for name, inner in nested.items() for key, part in inner.get_params().items()}
        return {**said, **parts}

    def set_params(self, **params: Any) -> Self:
        """Change parameters and drop the threshold found with the old ones.

        An unknown name changes nothing.
        """
        names = self._get_param_names()
        for name in params:
            outer = name.partition("__")[0]
            if outer not in names:
                must = f"The parameters of {type(self).__name__} must be among {', '.join(names)}."
                raise ParameterError(f"{must} Got {name!r} instead.{meant(outer, names)}")
        own = {name: value for name, value in params.items() if "__" not in name}
        kept: dict[str, Any] = {name: vars(self)[name] for name in ("reading", "patterns") if name in vars(self)}
        vars(self).update({**vars(type(self)(**{**self.get_params(deep=False), **own})), **kept})
        for name, value in params.items():
            outer, nested, inner = name.partition("__")
            if nested:
                getattr(self, outer).set_params(**{inner: value})
                self.given_rule = self.rule if outer == "rule" else self.given_rule
        return self

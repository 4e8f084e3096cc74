"""PresetDetector: numbers that a user leaves out come from a named preset, the paper's or one for CPUs.

A parameter listed in ``presets`` is given as None in the constructor and means "what the preset says". ``get_params``
and ``repr`` give what the user said; the attribute gives the number in use::

    >>> from tisat.detectors import DeepSVDD
    >>> detector = DeepSVDD(preset="paper", epochs=5)
    >>> detector
    DeepSVDD(epochs=5, preset='paper')
    >>> detector.epochs, detector.filters
    (5, (32, 64, 128))

This module knows no numbers: each detector brings its own two columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tisat._validation import check_choice
from tisat.detectors._neural import NeuralDetector


class FromPreset:
    """An attribute that is the user's value, or the preset's where the user gave None."""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        value = vars(instance).get(self.name)
        return instance._preset()[self.name] if value is None else value

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = value


class PresetDetector(NeuralDetector):
    """A neural detector with ``preset="paper"`` and ``preset="compact"``: the same architecture in two sizes."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # preset -> parameter -> value; the same parameters in each
    preset: str = "compact"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in cls.presets.get("compact", {}):
            attribute = FromPreset()
            attribute.__set_name__(cls, name)
            setattr(cls, name, attribute)

    def _preset(self) -> Mapping[str, Any]:
        return self.presets[check_choice(self.preset, "preset", type(self).__name__, choices=self.presets)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 - scikit-learn's signature
        """What the user said: None where the preset decides."""
        return {name: vars(self)[name] for name in self._get_param_names()}

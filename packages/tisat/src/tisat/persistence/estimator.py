"""A fitted detector in one file: its parameters, and what it learned as it declares it; nothing in a file is believed unchecked.

This module does not know what a detector does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tisat import registry
from tisat.errors import ArtefactError
from tisat.persistence.model_file import read_artefact, write_artefact
from tisat.utils.fitted_state import MOST_CHANNELS, MOST_NUMBERS, Learned, check_arrays, check_sizes, check_values
from tisat.utils.parameters import FROM_PRESET, Parametrized, rebuild
from tisat.utils.types import AnyArray, Arrays

LONGEST_PERIOD = 1e10  # seconds between two rows: 300 years
MOST_ROWS = 2**53  # of training data


class OneFile(Parametrized):
    """What can be written to one file and read back: parameters that are declared, attributes that are declared as learned."""

    _restored_apart: ClassVar[frozenset[str]] = frozenset()  # learned attributes that a subclass keeps in its own way
    n_channels_: int

    if TYPE_CHECKING:  # what a detector brings

        def _check_fitted(self) -> None: ...
        def _context(self) -> int | None: ...

    def document(self) -> tuple[dict[str, Any], Arrays]:
        """What is kept on disk, as plain values and arrays."""
        self._check_fitted()
        plain, tensors = self._state()
        given = self.get_params(deep=False)
        return {
            "kind": "detector",
            "detector": registry.name_of(type(self)),
            "params": {k: v for k, v in given.items() if v is not FROM_PRESET},
            "presets": {k: getattr(self, k) for k, v in given.items() if v is FROM_PRESET},
            "state": plain,
        }, tensors

    @classmethod
    def from_document(cls, document: Mapping[str, Any], tensors: Mapping[str, AnyArray], *, path: object) -> Self:
        """The fitted detector whose file holds these."""
        try:
            said, presets = _from_json(document["params"]), _from_json(document.get("presets", {}))
            check_sizes({**said, **presets}, whose=cls.__name__)
            detector: Self = rebuild(cls, said, presets)
            detector._restore(_from_json(document["state"]), tensors)
        except Exception as error:  # whatever an untrusted file makes of our code, one sentence comes out of it
            said_so = str(error)[:300] or type(error).__name__
            raise ArtefactError(
                f"The model file {str(path)!r} must fit {cls.__name__}. It does not: {said_so} "
                "If tisat 0.1 wrote it, fit the model again."
            ) from None
        return detector

    def save(self, path: str | Path) -> None:
        """Write the fitted detector to one file, atomically; refused where :meth:`load` would refuse it."""
        document, tensors = self.document()
        registry.from_document(document, tensors, path=path)
        write_artefact(path, document, tensors)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a fitted detector back, also from the file of a watch; on a subclass, refuse a file of another one."""
        document, tensors = read_artefact(path)
        if document.get("kind") not in ("detector", "watch"):
            raise ArtefactError(
                f"The model file {str(path)!r} must hold a detector. Got {document.get('kind')!r} instead."
            )
        found = registry.from_document(document, tensors, path=path)
        if not isinstance(found, cls):
            raise ArtefactError(
                f"The model file {str(path)!r} must hold a {cls.__name__}. Got {type(found).__name__} instead."
            )
        return found

    def _state(self) -> tuple[dict[str, Any], Arrays]:
        """Learned attributes (their names end in one underscore), split into plain values and arrays."""
        plain: dict[str, Any] = {}
        tensors: Arrays = {}
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_"):
                if isinstance(value, np.ndarray):
                    tensors[name] = value
                else:
                    plain[name] = value.item() if isinstance(value, np.generic) else value
        return plain, tensors

    def _restore(self, plain: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> None:
        """Set what :meth:`_state` returned, after it was checked against what the class declares to learn."""
        whose, table = type(self).__name__, dict(type(self).learns)
        if self._declares_nothing():
            table |= {name: Learned(", ".join("abcdefgh"[: a.ndim]), a.dtype.kind) for name, a in tensors.items() if name not in table}  # fmt: skip
            table |= {name: Learned() for name in plain if name not in table}
        table = {name: one for name, one in table.items() if name.endswith("_") and name not in self._restored_apart}
        hints = {name: str(kind) for cls in reversed(type(self).__mro__) for name, kind in vars(cls).get("__annotations__", {}).items()}  # fmt: skip
        check_values(table, hints, plain, whose=whose)
        sizes = {"C": _channels_of(plain, whose), "m": plain["n_points_"]}
        sizes |= {name: value for name, value in self.settings().items() if type(value) is int}
        check_arrays(table, tensors, sizes, whose=whose)
        for name, value in {**plain, **tensors}.items():
            setattr(self, name, value)
        context = self._context() or 0
        if (context + 1) * self.n_channels_ > MOST_NUMBERS:
            raise ArtefactError(f"The windows of {whose} must be at most {MOST_NUMBERS} numbers large.")
        self._check_learned()

    @classmethod
    def _declares_nothing(cls) -> bool:
        """Whether a class leaves open what it learns: one of a user's own, or one that declares nothing beyond its bases."""
        if not cls.__module__.startswith("tisat."):
            return True
        root = next(base for base in cls.__mro__ if base.__module__ == "tisat.detectors.base")
        return not cls._restored_apart and cls.learns == vars(root)["learns"]

    def _check_learned(self) -> None:
        """Refuse what was read from a file and fits its declared shape but not its meaning: indices, orders."""


def _channels_of(plain: Mapping[str, Any], whose: str) -> int:
    """The number of channels a file speaks of, once its names were looked at."""
    names, count, points = plain["channels_"], plain["n_channels_"], plain["n_points_"]
    good = isinstance(names, tuple) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    if not good or not 1 <= count == len(names) <= MOST_CHANNELS or not 1 <= points <= MOST_NUMBERS:
        raise ArtefactError(f"The channels of {whose} must be distinct names, and as many as it says.")
    _check_training(plain["trained_on_"], names, whose)
    return int(count)


def _check_training(trained: Any, channels: Sequence[str], whose: str) -> None:
    """Refuse what a file says of its training data where it is not as :meth:`fit` writes it."""
    good = (
        isinstance(trained, dict)
        and all(_is_text(trained.get(name)) for name in ("start", "stop", "fitted_at", "tisat", "python"))
        and all(_is_number(trained.get(name)) and trained[name] == int(trained[name]) for name in ("rows", "rows_used", "missing_values"))
        and all(isinstance(names := trained.get(name, ()), tuple) and all(isinstance(one, str) for one in names) for name in ("series", "shared_by", "counters"))
        and set(trained.get("counters", ())) <= set(channels)
        and isinstance(steps := trained.get("moves_every", ()), tuple)
        and (not steps or len(steps) == len(channels))
        and all(map(_is_number, steps))
    )  # fmt: skip
    if not good:
        raise ArtefactError(f"What {whose} says of its training data must be as fit writes it. It is not.")
    period = trained.get("period_seconds")
    if period is not None and not (_is_number(period) and 0 < period <= LONGEST_PERIOD):
        raise ArtefactError(f"The sampling period of {whose} must be a number of seconds, or none.")


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < MOST_ROWS


def _from_json(value: object) -> Any:
    """JSON has lists where Python had tuples; the package uses only tuples."""
    if isinstance(value, list):
        return tuple(_from_json(item) for item in value)
    if isinstance(value, dict):
        return {key: _from_json(item) for key, item in value.items()}
    return value

"""A fitted detector in one file: its parameters, and what it learned as it declares it; nothing in a file is believed unchecked.

This module does not know what a detector does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tisat import registry
from tisat.errors import ArtefactError
from tisat.persistence.model_file import read_artefact, write_artefact
from tisat.utils.fitted_state import MOST_CHANNELS, MOST_NUMBERS, Learned, check_arrays, check_sizes, check_values
from tisat.utils.parameters import FROM_PRESET, rebuild
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap

if TYPE_CHECKING:
    from tisat.detectors.base import Detector

LONGEST_PERIOD = 1e10  # seconds between two rows: 300 years
MOST_ROWS = 2**53  # of training data


D = TypeVar("D", bound="Detector")


def document_of(detector: Detector) -> tuple[JsonDict, Arrays]:
    """A fitted detector as plain values and arrays, for a file."""
    detector._check_fitted()
    plain, tensors = detector._state()
    params = detector.get_params(deep=False)
    return {
        "kind": "detector",
        "detector": registry.name_of(type(detector)),
        "params": {k: v for k, v in params.items() if v is not FROM_PRESET},
        "presets": {k: getattr(detector, k) for k, v in params.items() if v is FROM_PRESET},
        "state": plain,
    }, tensors


def detector_from(cls: type[D], document: JsonMap, tensors: Mapping[str, AnyArray], *, path: object) -> D:
    """The fitted detector of this class whose file holds these."""
    try:
        said, presets = _from_json(document["params"]), _from_json(document.get("presets", {}))
        check_sizes({**said, **presets}, whose=cls.__name__)
        said = {name: value for name, value in said.items() if (name, value) not in cls.traits.retired.items()}
        detector = rebuild(cls, said, presets)
        detector._restore(_from_json(document["state"]), tensors)
    except Exception as error:  # whatever an untrusted file makes of our code, one sentence comes out of it
        said_so = str(error)[:300] or type(error).__name__
        raise ArtefactError(
            f"The model file {str(path)!r} must fit {cls.__name__}. It does not: {said_so} "
            "If tisat 0.1 wrote it, fit the model again."
        ) from None
    return detector


def save(detector: Detector, path: str | Path) -> None:
    """Write a fitted detector to one file, atomically.

    Refused where :func:`load` would refuse it.
    """
    document, tensors = document_of(detector)
    registered(document, tensors, path=path)
    write_artefact(path, document, tensors)


def load(path: str | Path) -> Detector:
    """Read a fitted detector back, also from the file of a watch."""
    document, tensors = read_artefact(path)
    if document.get("kind") not in ("detector", "watch"):
        raise ArtefactError(f"The model file {str(path)!r} must hold a detector. Got {document.get('kind')!r} instead.")
    return registered(document, tensors, path=path)


def registered(document: JsonMap, tensors: Mapping[str, AnyArray], *, path: object) -> Detector:
    """The fitted detector whose file holds these; only registered classes are made."""
    return detector_from(registry.named_in(document, path=path), document, tensors, path=path)


def state_of(detector: object) -> tuple[JsonDict, Arrays]:
    """Learned attributes (their names end in one underscore), split into plain values and arrays."""
    plain: JsonDict = {}
    tensors: Arrays = {}
    for name, value in vars(detector).items():
        if name.endswith("_") and not name.startswith("_"):
            if isinstance(value, np.ndarray):
                tensors[name] = value
            else:
                plain[name] = value.item() if isinstance(value, np.generic) else value
    return plain, tensors


def restore(detector: Detector, plain: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
    """Set what :func:`state_of` returned, after it was checked against what the class declares to learn."""
    cls = type(detector)
    caller, table = cls.__name__, dict(cls._learns)
    if _declares_nothing(cls):
        table |= {name: Learned(", ".join("abcdefgh"[: a.ndim]), a.dtype.kind) for name, a in tensors.items() if name not in table}  # fmt: skip
        table |= {name: Learned() for name in plain if name not in table}
    table = {name: one for name, one in table.items() if name.endswith("_") and name not in cls._restored_apart}
    hints = {name: str(kind) for base in reversed(cls.__mro__) for name, kind in vars(base).get("__annotations__", {}).items()}  # fmt: skip
    check_values(table, hints, plain, whose=caller)
    sizes = {"C": _channels_of(plain, caller), "m": plain["n_points_"]}
    sizes |= {name: value for name, value in detector._settings().items() if type(value) is int}
    check_arrays(table, tensors, sizes, whose=caller)
    for name, value in {**plain, **tensors}.items():
        setattr(detector, name, value)
    context = detector._context() or 0
    if (context + 1) * detector.n_channels_ > MOST_NUMBERS:
        raise ArtefactError(f"The windows of {caller} must be at most {MOST_NUMBERS} numbers large.")
    detector._check_learned()


def _declares_nothing(cls: type[Detector]) -> bool:
    """Whether a class leaves open what it learns: one of a user's own, or one that declares nothing beyond its bases."""
    if not cls.__module__.startswith("tisat."):
        return True
    root = next(base for base in cls.__mro__ if base.__module__ == "tisat.detectors.base")
    return not cls._restored_apart and cls._learns == vars(root)["_learns"]


def _channels_of(plain: JsonMap, whose: str) -> int:
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
        and all(_is_text(trained.get(name)) for name in ("start", "stop", "zone", "fitted_at", "tisat", "python"))
        and all(_is_number(trained.get(name)) and trained[name] == int(trained[name]) for name in ("rows", "rows_used", "missing_values"))
        and _is_number(trained.get("labelled", 0))
        and all(isinstance(names := trained.get(name, ()), tuple) and all(isinstance(one, str) for one in names) for name in ("series", "shared_by", "counters"))
        and set(trained.get("counters", ())) <= set(channels)
        and all(isinstance(each := trained.get(name, ()), tuple) and len(each) in (0, len(channels)) and all(map(_is_number, each)) for name in ("moves_every", "stood"))
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

"""Checks of plain values from an untrusted file against the annotations of the class they are for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tisat.errors import ArtefactError

LARGEST = 1e300  # of a number: sums of a few stay finite
LONGEST = 10_000  # characters of a text
MOST_COUNTED = 2**62
MOST_STATED = 1_000_000  # of a size among the options of a rule: rows it may keep


def _fits(value: object, kind: str) -> bool:
    if kind == "None":
        return value is None
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return isinstance(value, str) and len(value) <= LONGEST
    if isinstance(value, bool):
        return False
    if kind == "int":
        return isinstance(value, int) and abs(value) <= MOST_COUNTED
    if kind == "float":
        return isinstance(value, int | float) and math.isfinite(_float(value)) and abs(value) <= LARGEST
    if kind in ("tuple[str, ...]", "Sequence[str]"):
        return isinstance(value, list | tuple) and all(_fits(item, "str") for item in value)
    if kind == "tuple[float, float]":
        return isinstance(value, list | tuple) and len(value) == 2 and all(_fits(item, "float") for item in value)
    if kind == "Mapping[str, str]":
        return isinstance(value, Mapping) and all(_fits(item, "str") for pair in value.items() for item in pair)
    return kind not in KINDS


KINDS = (
    "None",
    "bool",
    "str",
    "int",
    "float",
    "tuple[str, ...]",
    "Sequence[str]",
    "tuple[float, float]",
    "Mapping[str, str]",
)


def _float(value: float | int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_fields(cls: type, values: Mapping[str, Any], *, whose: str) -> None:
    """Refuse values that are not of the kind their field is declared with; kinds that are not plain are left alone.

    Examples
    --------
    >>> from tisat.alarms.explanation import Reason
    >>> check_fields(Reason, {"channel": "flow", "share": 0.5, "seen": None}, whose="an alarm")
    >>> check_fields(Reason, {"channel": "flow", "share": "x"}, whose="an alarm")
    Traceback (most recent call last):
    ...
    tisat.errors.ArtefactError: The 'share' of an alarm must be float. Got 'x' instead.
    """
    hints = {
        name: str(kind)
        for base in reversed(cls.__mro__)
        for name, kind in vars(base).get("__annotations__", {}).items()
    }
    for name, value in values.items():
        declared = hints.get(name)
        kinds = [] if declared is None else [kind.strip() for kind in declared.split("|")]
        if kinds and all(kind in KINDS for kind in kinds) and not any(_fits(value, kind) for kind in kinds):
            raise ArtefactError(f"The {name!r} of {whose} must be {declared}. Got {str(value)[:40]!r} instead.")


def check_options(options: object, *, whose: str) -> None:
    """Refuse options of a rule that ask for more than a machine can give."""
    if not isinstance(options, Mapping):
        raise ArtefactError(f"The options of {whose} must be names and values. Got {str(options)[:40]!r} instead.")
    for name, value in options.items():
        plain = isinstance(value, str | bool | None) or _fits(value, "float")
        if not plain or (isinstance(value, int) and name != "random_state" and abs(value) > MOST_STATED):
            raise ArtefactError(
                f"The {str(name)[:40]!r} of {whose} must be a text or a number up to {MOST_STATED}. Got {str(value)[:40]!r} instead."
            )

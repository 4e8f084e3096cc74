"""Declare what ``fit`` learns and check it when a file is read.

A class says ``weights_: Array = learned("window, C")``. When a file is read, every array must be there, of its kind, finite,
of a shape that follows from the parameters and the number of channels, and within its range; nothing else may be in the file.
A shape is written in sizes: whole numbers, ``C`` (channels), ``m`` (points), names of parameters, products and sums of these, and
capital letters for sizes that only have to agree with one another. This module knows no detector.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tisat.errors import ArtefactError
from tisat.utils.types import AnyArray, JsonMap, Options

MOST_CHANNELS = 100_000
MOST_NUMBERS = 100_000_000  # what one window, or one parameter of a file, may ask for
MOST_LAYERS = 1000  # of anything a network has one after the other
STACKED = ("layers", "blocks", "n_flows", "heads")  # how such parameters end
LONGEST = 10_000  # characters of a text in a file
MOST_COUNTED = 2**62
MOST_STATED = 1_000_000  # of a size among the options of a rule: rows it may keep
LARGEST = 1e300  # of a number in a state: sums of a few stay finite
KINDS = {"f": "real numbers", "i": "whole numbers", "b": "truth values"}


@dataclass(frozen=True)
class Learned:
    """The declaration of one learned attribute."""

    shape: str | None = None  # of an array; None: a plain value
    kind: str = "f"  # of an array: f, i or b
    low: float | None = None  # least value allowed
    high: str | None = None  # values must be below this size


def learned(
    shape: str | None = None,
    *,
    kind: str = "f",
    low: float | None = None,
    high: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """An attribute that ``fit`` sets: no parameter, without a value before.

    Parameters
    ----------
    shape : str, optional
        Of an array, in sizes: ``"window, C"``. A plain value (by its annotation) where there is none.
    kind : str
        ``f`` real, ``i`` whole, ``b`` truth values.
    low : float, optional
        Least value allowed.
    high : str, optional
        A size that values must be below: for indices.
    """
    return Learned(shape, kind, low, high)


def _size(expression: str, sizes: Mapping[str, int]) -> int | None:
    """The value of a size, or None where it is a free letter that nothing has fixed yet."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add | ast.Sub):
            left, right = value(node.left), value(node.right)
            if isinstance(node.op, ast.Mult):
                return left * right
            return left + right if isinstance(node.op, ast.Add) else left - right
        raise TypeError(f"a size must be made of numbers, names, +, - and *, not {expression!r}")

    try:
        return value(ast.parse(expression.strip(), mode="eval").body)
    except KeyError:
        return None


def check_arrays(
    table: Mapping[str, Learned], arrays: Mapping[str, AnyArray], sizes: dict[str, int], *, whose: str
) -> None:
    """Refuse arrays that are not as declared.

    ``sizes`` learns the free letters on the way.

    Examples
    --------
    >>> check_arrays({"w_": Learned("window, C")}, {"w_": np.zeros((3, 2))}, {"window": 3, "C": 2}, whose="Linear")
    >>> check_arrays({"w_": Learned("window, C")}, {"w_": np.zeros((4, 2))}, {"window": 3, "C": 2}, whose="Linear")
    Traceback (most recent call last):
    ...
    tisat.errors.ArtefactError: The 'w_' of Linear must have shape (window, C) = (3, 2). Got (4, 2) instead.
    """
    shaped = {name: one for name, one in table.items() if one.shape is not None}
    _check_names(arrays, shaped, whose)
    for name, one in shaped.items():
        _check_shape(name, one, arrays[name], sizes, whose)
    for name, one in shaped.items():  # when every size is known
        _check_range(name, one, arrays[name], sizes, whose)


def _check_names(found: Collection[str], wanted: Collection[str], whose: str) -> None:
    for name in found:
        if name not in wanted:
            raise ArtefactError(f"The state of {whose} must hold what it learns. Got {str(name)[:40]!r} besides.")
    for name in wanted:
        if name not in found:
            raise ArtefactError(f"The state of {whose} must hold {name!r}. There is none.")


def _check_shape(name: str, one: Learned, array: AnyArray, sizes: dict[str, int], whose: str) -> None:
    if array.dtype.kind not in {"f": "f", "i": "iu", "b": "b"}[one.kind]:
        raise ArtefactError(f"The {name!r} of {whose} must hold {KINDS[one.kind]}. Got {array.dtype} instead.")
    assert one.shape is not None
    parts = [part.strip() for part in one.shape.split(",")] if one.shape.strip() else []
    expected = [_size(part, sizes) for part in parts]
    fits = len(expected) == array.ndim and all(
        size is None or size == got for size, got in zip(expected, array.shape, strict=False)
    )
    if not fits:
        said = ", ".join("any" if size is None else str(size) for size in expected)
        raise ArtefactError(
            f"The {name!r} of {whose} must have shape ({one.shape}) = ({said}). Got {array.shape} instead."
        )
    for part, got in zip(parts, array.shape, strict=True):
        if part.isidentifier():
            sizes.setdefault(part, int(got))


def _check_range(name: str, one: Learned, array: AnyArray, sizes: dict[str, int], whose: str) -> None:
    if array.size == 0:
        return
    if one.kind == "f" and not np.isfinite(array).all():
        raise ArtefactError(f"The {name!r} of {whose} must hold finite numbers. Got others too.")
    below = None if one.high is None else _size(one.high, sizes)
    if (one.low is not None and array.min() < one.low) or (below is not None and array.max() >= below):
        raise ArtefactError(
            f"The {name!r} of {whose} must lie between {one.low} and {below}. Got {array.min()} to {array.max()} instead."
        )


def check_values(table: Mapping[str, Learned], hints: Mapping[str, str], plain: JsonMap, *, whose: str) -> None:
    """Refuse plain values that are not as declared, by their annotations."""
    wanted = [name for name, one in table.items() if one.shape is None]
    _check_names(plain, wanted, whose)
    for name in wanted:
        kind = hints.get(name, "")
        if kind in PLAIN and not _fits(plain[name], kind):
            raise ArtefactError(
                f"The {name!r} of {whose} must be of type {kind}. Got {str(plain[name])[:40]!r} instead."
            )


def check_sizes(params: Options, *, whose: str) -> None:
    """Refuse parameters of a file that ask for more than a machine can give."""

    def check_each(name: str, value: object) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                check_each(str(key), item)
        elif isinstance(value, list | tuple):
            for item in value:
                check_each(name, item)
        elif (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and not name.endswith("random_state")
            and not abs(value) <= (most := MOST_LAYERS if name.endswith(STACKED) else MOST_NUMBERS // 10)
        ):
            raise ArtefactError(f"The {name!r} of {whose} must be at most {most}. Got {str(value)[:40]} instead.")

    check_each("parameter", params)


def check_layout(found: Mapping[str, AnyArray], expected: Mapping[str, AnyArray], *, whose: str) -> None:
    """Refuse a state whose arrays are not those a fresh one has: names, kinds, shapes, and counters that count.

    Examples
    --------
    >>> check_layout({"seen": np.array(-7)}, {"seen": np.array(0)}, whose="the stream")
    Traceback (most recent call last):
    ...
    tisat.errors.ArtefactError: The counters 'seen' of the stream must be at least -1. Got -7 instead.
    """
    if set(found) != set(expected):
        raise ArtefactError(
            f"The state of {whose} must hold {', '.join(sorted(expected))}. Got {', '.join(sorted(map(str, found)))[:200]} instead."
        )
    for name, array in found.items():
        wanted = expected[name]
        if array.shape != wanted.shape or array.dtype.kind != wanted.dtype.kind:
            raise ArtefactError(
                f"The {name!r} of {whose} must be {wanted.dtype} of shape {wanted.shape}. "
                f"Got {array.dtype} of shape {array.shape} instead."
            )
        if array.dtype.kind == "f" and (np.abs(array) > LARGEST).any():
            raise ArtefactError(f"The {name!r} of {whose} must hold numbers up to {LARGEST:g}, or nothing. Got others.")
        if array.dtype.kind in "iu" and array.size and (array.min() < -1 or array.max() > 2**62):
            raise ArtefactError(
                f"The counters {name!r} of {whose} must be at least -1. Got {array.min() if array.min() < -1 else array.max()} instead."
            )


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
    return kind not in PLAIN


PLAIN = (
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


def check_fields(cls: type, values: JsonMap, *, whose: str) -> None:
    """Refuse values that are not of the kind their field is declared with.

    Kinds that are not plain are left alone.

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
        if kinds and all(kind in PLAIN for kind in kinds) and not any(_fits(value, kind) for kind in kinds):
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

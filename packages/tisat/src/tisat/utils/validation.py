"""One place that refuses bad arguments, in one sentence: what, whose, must be, got.

It knows numbers, arrays and names; it does not know series, detectors or files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized

import numpy as np

from tisat.errors import InputError, ParameterError
from tisat.utils.near_names import meant
from tisat.utils.types import Array, Flags


def _refuse(name: str, whose: str, must: str, got: object) -> ParameterError:
    return ParameterError.about(name, f"must be {must}. Got {got!r} instead.", whose=whose)


def check_integer(
    value: object, name: str, whose: str, *, minimum: int | None = None, maximum: int | None = None, also: str = ""
) -> int:
    """``value`` as an int within its bounds.

    ``also`` is said after them (`` or None``).

    Examples
    --------
    >>> check_integer(0, "k", "KNNEvidence", minimum=1)
    Traceback (most recent call last):
    ...
    tisat.errors.ParameterError: The 'k' parameter of KNNEvidence must be an integer >= 1. Got 0 instead.
    """
    must = "an integer"
    if minimum is not None and maximum is not None:
        must += f" from {minimum} to {maximum}"
    elif minimum is not None:
        must += f" >= {minimum}"
    elif maximum is not None:
        must += f" <= {maximum}"
    must += also
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise _refuse(name, whose, must, value)
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        raise _refuse(name, whose, must, value)
    return int(value)


def check_real(
    value: object,
    name: str,
    whose: str,
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    also: str = "",
) -> float:
    """``value`` as a finite float within its bounds (``above``/``below`` exclude the bound).

    Examples
    --------
    >>> check_real(2.0, "alpha", "KNNEvidence", above=0, below=1)
    Traceback (most recent call last):
    ...
    tisat.errors.ParameterError: The 'alpha' parameter of KNNEvidence must be a number > 0 and < 1. Got 2.0 instead.
    """
    bounds = ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
    limits = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
    must = f"a number {limits}".strip() + also
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise _refuse(name, whose, must, value)
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond every float
        number = math.inf
    good = (
        math.isfinite(number)
        and (above is None or number > above)
        and (below is None or number < below)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
    )
    if not good:
        raise _refuse(name, whose, must, value)
    return number


def check_choice(value: object, name: str, whose: str, *, choices: Iterable[str], also: str = "") -> str:
    """``value`` if it is one of ``choices``.

    Examples
    --------
    >>> check_choice("evnt", "counting", "spd_score", choices=("event", "instance"))
    Traceback (most recent call last):
    ...
    tisat.errors.ParameterError: The 'counting' parameter of spd_score must be one of 'event', 'instance'. Got 'evnt' instead. Did you mean 'event'?
    """
    allowed = tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        must = "one of " + ", ".join(repr(choice) for choice in allowed) + also
        raise ParameterError.about(name, f"must be {must}. Got {value!r} instead.{meant(value, allowed)}", whose=whose)
    return value


def check_flag(value: object, name: str, whose: str) -> bool:
    """``value`` if it is True or False; 0, 1 and "no" are refused."""
    if not isinstance(value, bool | np.bool_):
        raise _refuse(name, whose, "True or False", value)
    return bool(value)


def check_vector(value: object, name: str, whose: str) -> Array:
    """``value`` as a one-dimensional float64 array; NaN is allowed, infinity is not.

    Examples
    --------
    >>> check_vector([[1.0], [2.0]], "y_score", "spd_score")
    Traceback (most recent call last):
    ...
    tisat.errors.InputError: The 'y_score' argument of spd_score must be one-dimensional. Got shape (2, 1) instead.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"The {name!r} argument of {whose} must be an array of numbers. Got {type(value).__name__} instead."
        ) from None
    if array.ndim != 1:
        raise InputError(f"The {name!r} argument of {whose} must be one-dimensional. Got shape {array.shape} instead.")
    infinite = np.isinf(array)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            f"The {name!r} argument of {whose} must be finite or NaN. Got {array[row]} at row {row} instead."
        )
    return array


def check_labels(value: object, name: str, whose: str) -> Flags:
    """``value`` as a one-dimensional bool array.

    Only 0, 1, False and True are accepted.

    Examples
    --------
    >>> check_labels([0, 1, 2], "y_true", "spd_score")
    Traceback (most recent call last):
    ...
    tisat.errors.InputError: The 'y_true' argument of spd_score must hold only 0 and 1. Got 2 at row 2 instead.
    """
    try:
        array = np.asarray(value)
        if array.dtype != np.bool_:
            array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"The {name!r} argument of {whose} must hold only 0 and 1. Got {type(value).__name__} instead."
        ) from None
    if array.ndim != 1:
        raise InputError(f"The {name!r} argument of {whose} must be one-dimensional. Got shape {array.shape} instead.")
    if array.dtype == np.bool_:
        return array
    labels: Flags = np.asarray(array == 1)
    wrong = ~(labels | (array == 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"The {name!r} argument of {whose} must hold only 0 and 1. Got {array[row]:g} at row {row} instead."
        )
    return labels


def check_same_length(first: Sized, second: Sized, names: tuple[str, str], whose: str) -> None:
    """Refuse two arrays or lists of different length."""
    if len(first) != len(second):
        raise InputError(
            f"The {names[0]!r} and {names[1]!r} arguments of {whose} must have the same length. "
            f"Got {len(first)} and {len(second)} instead."
        )

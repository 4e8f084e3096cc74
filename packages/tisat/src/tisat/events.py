"""Labels and events: the only place that turns one into the other.

An event is a maximal run of ones in the labels, written as a half-open interval ``[start, stop)``. Many events are one
integer array of shape ``(n, 2)``, sorted, disjoint and not touching. This module does not know scores or alarms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from tisat.errors import InputError
from tisat.utils.types import Flags, Integers
from tisat.utils.validation import check_integer, check_labels

Events: TypeAlias = Integers  # (n, 2), half-open [start, stop)


def events_from_labels(labels: object) -> Events:
    """The maximal runs of ones.

    Parameters
    ----------
    labels : array of 0 and 1, shape (T,)

    Returns
    -------
    events : array of shape (n, 2), rows ``[start, stop)``

    Examples
    --------
    >>> events_from_labels([1, 1, 0, 0, 1]).tolist()
    [[0, 2], [4, 5]]
    """
    y = check_labels(labels, "labels", "events_from_labels")
    edges = np.flatnonzero(np.diff(y.view(np.int8), prepend=np.int8(0), append=np.int8(0)))
    return edges.reshape(-1, 2).astype(np.int64, copy=False)


def labels_from_events(events: object, *, length: int) -> Flags:
    """The labels of ``length`` rows whose ones are covered by the events (which may overlap or be unsorted).

    Examples
    --------
    >>> labels_from_events([[0, 2], [4, 5]], length=6).astype(int).tolist()
    [1, 1, 0, 0, 1, 0]
    """
    n = check_integer(length, "length", "labels_from_events", minimum=0)
    intervals = check_events(events, whose="labels_from_events", length=n)
    steps = np.zeros(n + 1, dtype=np.int64)
    np.add.at(steps, intervals[:, 0], 1)
    np.add.at(steps, intervals[:, 1], -1)
    return np.cumsum(steps[:-1]) > 0


def check_events(events: object, *, whose: str, length: int | None = None) -> Events:
    """Events as an ``(n, 2)`` int64 array, each ``0 <= start < stop`` and, where ``length`` is given, ``stop <= length``."""
    if isinstance(events, Iterable) and not isinstance(events, np.ndarray):
        events = list(events)
    try:
        array = np.asarray(events)
    except ValueError:
        raise InputError(f"The events of {whose} must be pairs [start, stop). Got rows of different length.") from None
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.number):
        raise InputError(f"The events of {whose} must be integer pairs [start, stop). Got shape {array.shape} instead.")
    pairs = array.astype(np.int64)
    if not np.array_equal(pairs, array):
        raise InputError(f"The events of {whose} must be integer pairs [start, stop). Got fractions instead.")
    wrong = (pairs[:, 0] < 0) | (pairs[:, 0] >= pairs[:, 1])
    if length is not None:
        wrong |= pairs[:, 1] > length
    if wrong.any():
        row = int(np.argmax(wrong))
        limit = "" if length is None else f" <= {length}"
        raise InputError(
            f"The events of {whose} must satisfy 0 <= start < stop{limit}. "
            f"Got [{pairs[row, 0]}, {pairs[row, 1]}) at row {row} instead."
        )
    return pairs

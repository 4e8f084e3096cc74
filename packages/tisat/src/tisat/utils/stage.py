"""Stage: the contract of every step between a row and an alarm.

Clock, gap filling, growth of counters, detector stream, evidence, accumulator, rule, episode record, alarm tracking, suppression and
liveness are stages. Each has four methods, and two invariants hold for all of them (``tests/watch/test_stages.py``):

* ``run(batch)`` equals ``step(row)`` called for each row in order, and both continue from where the last call ended;
* a fresh stage that is given ``state()`` by ``restore(state)`` continues as the first one would have.

A state is a dictionary of arrays, plain values and states of parts. :func:`split_state` and :func:`join_state` convert it to and from the
two parts of a model file: a JSON document, and arrays named by their path (``run.evidence.past``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from tisat.utils.types import AnyArray, Arrays

State: TypeAlias = dict[str, Any]  # arrays, plain values and states of parts, by name

BatchIn = TypeVar("BatchIn", contravariant=True)
BatchOut = TypeVar("BatchOut", covariant=True)
RowIn = TypeVar("RowIn", contravariant=True)
RowOut = TypeVar("RowOut", covariant=True)


class Stage(Protocol[BatchIn, RowIn, BatchOut, RowOut]):
    """One step between a row and an alarm; see the module."""

    def run(self, batch: BatchIn, /) -> BatchOut:
        """Process many rows in order."""

    def step(self, row: RowIn, /) -> RowOut:
        """Process one row."""

    def state(self) -> State:
        """Return everything that continues after a restart."""

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""


class Folded(Generic[RowIn, RowOut]):
    """Base of stages whose :meth:`run` calls :meth:`step` for each row."""

    def step(self, row: RowIn, /) -> RowOut:
        """Process one row."""
        raise NotImplementedError

    def run(self, batch: Iterable[RowIn], /) -> list[RowOut]:
        """Process many rows in order; the results of each."""
        return [self.step(row) for row in batch]


class Stateless:
    """Base of stages that remember nothing from row to row."""

    def state(self) -> State:
        """Return nothing: there is no state."""
        return {}

    def restore(self, state: State, /) -> None:
        """Do nothing."""


class Stateful:
    """Base of stages whose whole state is arrays and integers, named in ``_kept``."""

    _kept: ClassVar[tuple[str, ...]]  # the attributes have an underscore before these names

    def state(self) -> State:
        """Return everything that continues after a restart, as arrays."""
        return {name: np.array(getattr(self, f"_{name}")) for name in self._kept}

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        for name in self._kept:
            value = getattr(self, f"_{name}")
            if isinstance(value, int):
                setattr(self, f"_{name}", int(state[name]))
            else:
                value[...] = state[name]


def split_state(state: State) -> tuple[State, Arrays]:
    """Split a state into a document of plain values and its arrays by path.

    Examples
    --------
    >>> split_state({"rows": 3, "carry": {"since": {}, "age": np.zeros(2)}})
    ({'rows': 3, 'carry': {'since': {}}}, {'carry.age': array([0., 0.])})
    """
    document: State = {}
    arrays: Arrays = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray | np.generic):
            arrays[name] = np.asarray(value)
        elif isinstance(value, dict):
            plain, inner = split_state(value)
            arrays |= {f"{name}.{path}": array for path, array in inner.items()}
            if plain or not inner:
                document[name] = plain
        else:
            document[name] = value
    return document, arrays


def join_state(document: State, arrays: Mapping[str, AnyArray]) -> State:
    """Join a document and arrays named by path to a state: the inverse of :func:`split_state`.

    Examples
    --------
    >>> join_state({"rows": 3}, {"carry.age": np.zeros(2)})
    {'rows': 3, 'carry': {'age': array([0., 0.])}}
    """
    state = dict(document)
    for path, array in arrays.items():
        *parts, name = path.split(".")
        place = state
        for part in parts:
            place[part] = dict(place.get(part, {}))
            place = place[part]
        place[name] = array
    return state

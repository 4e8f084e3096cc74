"""Dataset and Entity: what ``load`` gives back.

An entity is one machine, channel or plant, with a training and a test series that are read from disk when they are
first asked for. Neither class knows where the files lie or how they are laid out; that is in the functions they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from tisat.errors import ParameterError
from tisat.series import Series
from tisat_bench.datasets.cards import Card


class Attribution(NamedTuple):
    """Channels that an expert named as the cause of an event.

    Parameters
    ----------
    event : tuple of int
        Rows [start, stop).
    channels : tuple of int
        Indices, from 0.

    Examples
    --------
    >>> Attribution((10, 20), (0, 3)).channels
    (0, 3)
    """

    event: tuple[int, int]  # [start, stop)
    channels: tuple[int, ...]  # indices, from 0


def no_attribution() -> tuple[Attribution, ...]:
    """No attribution: what every data set but SMD publishes."""
    return ()


@dataclass(frozen=True, eq=False)
class Entity:
    """One machine, channel or plant.

    ``train`` and ``test`` are :class:`tisat.Series`, read when first asked for and kept; the labels are in ``test``.

    Examples
    --------
    >>> from tisat_bench.datasets import load
    >>> load("smd").entities[0].test.n_channels  # doctest: +SKIP
    38
    """

    name: str  # machine, channel or plant
    period: float | None  # sampling period in seconds, as the card has it; None where nobody says
    read_train: Callable[[], Series]  # reads the training series
    read_test: Callable[[], Series]  # reads the test series
    read_interpretation: Callable[[], tuple[Attribution, ...]] = no_attribution  # reads which channels an expert named

    @cached_property
    def train(self) -> Series:
        """The training series, without labels."""
        return self.read_train()

    @cached_property
    def test(self) -> Series:
        """The test series, with labels."""
        return self.read_test()

    @cached_property
    def interpretation(self) -> tuple[Attribution, ...]:
        """For SMD: (event [start, stop), channel indices) as the publisher blames them; empty for the others."""
        return self.read_interpretation()

    def __repr__(self) -> str:
        return f"Entity({self.name!r})"


def entities_of(card: Card, names: Iterable[str], read: Callable[[str, str], Series]) -> tuple[Entity, ...]:
    """The entities of some names; ``read(name, split)`` reads them."""
    return tuple(Entity(name, card.period, partial(read, name, "train"), partial(read, name, "test")) for name in names)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The entities of a data set, and its card.

    ``dataset.entities`` keeps what was read; a loop over the dataset itself gives fresh entities, so that
    ``for entity in dataset`` holds one entity in memory at a time.

    Examples
    --------
    >>> from tisat_bench.datasets import load
    >>> len(load("smd").entities)  # doctest: +SKIP
    28
    """

    card: Card  # what is known without opening it
    entities: tuple[Entity, ...]  # in the order of names
    missing: tuple[str, ...] = ()  # entities of the card (or of the labels) whose values are not in the folder

    @property
    def name(self) -> str:
        """The data set's name."""
        return self.card.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entities."""
        return tuple(entity.name for entity in self.entities)

    def __len__(self) -> int:
        return len(self.entities)

    def __iter__(self) -> Iterator[Entity]:
        return (replace(entity) for entity in self.entities)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Entity:
        for entity in self.entities:
            if entity.name == name:
                return entity
        where = "its values are not in the folder" if name in self.missing else f"it has {', '.join(self.names)}"
        raise ParameterError(f"The data set {self.card.name!r} has no entity {name!r} loaded; {where}.")

    def __repr__(self) -> str:
        absent = f", {len(self.missing)} without values" if self.missing else ""
        return f"Dataset({self.card.name!r}, {len(self)} entit{'y' if len(self) == 1 else 'ies'}{absent})"

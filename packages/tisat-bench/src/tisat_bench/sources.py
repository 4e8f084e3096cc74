"""Sources of a benchmark's series: published data sets and generated plants.

A source is small and can be sent to another process: it holds a name and a folder, never values. It does not know detectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tisat.datasets.synthetic import make_plant
from tisat.errors import ParameterError
from tisat.series import Series
from tisat_bench.datasets import NAMES, Dataset, load
from tisat_bench.datasets.own_files import read_dataset

PLANTS = "plants"  # generated: plant-0, plant-1, ...
PLANT_ROWS = (2000, 6000)  # train and test; enough for every detector's window, and quick
SOURCES = (*NAMES, PLANTS)
KEPT = 32  # entities a process keeps in memory: 0.5 GB of SMD


def _plant_number(entity: str) -> int:
    prefix, _, number = entity.partition("-")
    if prefix != "plant" or not number.isdecimal():
        raise ParameterError(f"An entity of {PLANTS!r} must be called plant-0, plant-1, ... Got {entity!r} instead.")
    return int(number)


@dataclass(frozen=True)
class Source:
    """A data set by name, in a folder, or files of your own under a name you give them."""

    dataset: str  # one of SOURCES, or any name where there is a path
    data: str | None = None  # the folder; None: TISAT_DATA
    telemetry_only: bool | None = None  # for MSL and SMAP
    path: str | None = None  # files of your own: a file, a folder or a pattern
    train: float | int | None = None  # of those, the share or number of rows for training where names do not tell
    label: str | None = None  # of those, the label column

    def names(self, chosen: Iterable[str] | None = None) -> tuple[str, ...]:
        """The entities whose values are there, or the chosen ones, which must be."""
        if self.dataset == PLANTS:
            names = ("plant-0", "plant-1", "plant-2") if chosen is None else tuple(chosen)
            for name in names:
                _plant_number(name)
            return names
        if self.path is not None:
            there = _own(self).names
            names = there if chosen is None else tuple(chosen)
            missing = next((name for name in names if name not in there), None)
            if missing is not None:
                raise ParameterError(
                    f"The entities of {self.dataset!r} must be among {', '.join(there[:8])}. Got {missing!r} instead."
                )
            return names
        if self.dataset not in SOURCES:
            raise ParameterError(f"A data set must be one of {', '.join(SOURCES)}. Got {self.dataset!r} instead.")
        return load(self.dataset, self.data, chosen, self.telemetry_only).names

    def training(self, entities: Iterable[str]) -> list[Series]:
        """The training series of several entities."""
        return [_pair(self, entity)[0] for entity in entities]

    def pair(self, entity: str) -> tuple[Series, Series]:
        """The training and the labelled test series of one entity; the last few are kept."""
        return _pair(self, entity)


@lru_cache(maxsize=4)
def _own(source: Source) -> Dataset:
    """A data set of one's own, read whole; its test series must be labelled."""
    assert source.path is not None
    how = {} if source.label is None else {"label": source.label}
    dataset = read_dataset(source.path, train=source.train, **how)
    bare = next((entity.name for entity in dataset if entity.test.labels is None), None)
    if bare is not None:
        raise ParameterError(
            f"The data set {source.dataset!r} must have labels in every test series. {bare!r} has none; label = '...' names their column."
        )
    return dataset


@lru_cache(maxsize=KEPT)
def _pair(source: Source, entity: str) -> tuple[Series, Series]:
    if source.dataset == PLANTS:
        train, test = PLANT_ROWS
        plant: Any = make_plant(n_train=train, n_test=test, n_channels=4, random_state=_plant_number(entity))
        return plant.train, plant.test
    if source.path is not None:
        mine = next(one for one in _own(source) if one.name == entity)
        return mine.train, mine.test
    found = next(iter(load(source.dataset, source.data, [entity], source.telemetry_only)))
    return found.train, found.test

"""Where a benchmark's series come from: the published data sets, and generated plants for trying things out.

A source is small and can be sent to another process: it holds a name and a folder, never values. It does not know detectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tisat.datasets import NAMES, load
from tisat.datasets.synthetic import make_plant
from tisat.errors import ParameterError
from tisat.series import Series

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
    """A data set by name, in a folder."""

    dataset: str  # one of SOURCES
    data: str | None = None  # the folder; None: TISAT_DATA
    telemetry_only: bool | None = None  # for MSL and SMAP

    def names(self, chosen: Iterable[str] | None = None) -> tuple[str, ...]:
        """The entities whose values are there, or the chosen ones, which must be."""
        if self.dataset == PLANTS:
            wanted = ("plant-0", "plant-1", "plant-2") if chosen is None else tuple(chosen)
            for name in wanted:
                _plant_number(name)
            return wanted
        if self.dataset not in SOURCES:
            raise ParameterError(f"A data set must be one of {', '.join(SOURCES)}. Got {self.dataset!r} instead.")
        return load(self.dataset, self.data, chosen, self.telemetry_only).names

    def training(self, entities: Iterable[str]) -> list[Series]:
        """The training series of several entities."""
        return [_pair(self, entity)[0] for entity in entities]

    def pair(self, entity: str) -> tuple[Series, Series]:
        """The training and the labelled test series of one entity; the last few are kept."""
        return _pair(self, entity)


@lru_cache(maxsize=KEPT)
def _pair(source: Source, entity: str) -> tuple[Series, Series]:
    if source.dataset == PLANTS:
        train, test = PLANT_ROWS
        plant: Any = make_plant(n_train=train, n_test=test, n_channels=4, random_state=_plant_number(entity))
        return plant.train, plant.test
    found = next(iter(load(source.dataset, source.data, [entity], source.telemetry_only)))
    return found.train, found.test

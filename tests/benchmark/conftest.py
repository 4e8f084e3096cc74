from __future__ import annotations

import pytest

from tisat.benchmark.sources import Source
from tisat.benchmark.task import Task, fingerprint, make_task


@pytest.fixture(scope="session")
def plants() -> dict[str, Source]:
    return {"plants": Source("plants")}


@pytest.fixture(scope="session")
def task_of(plants):
    def make(detector: str = "last-value", entity: str = "plant-0", *, seed: int = 0, **params: object) -> Task:
        train, test = plants["plants"].pair(entity)
        return make_task(
            dataset="plants", entity=entity, detector=detector, params=params, seed=seed, fingerprint=fingerprint(train, test)
        )

    return make

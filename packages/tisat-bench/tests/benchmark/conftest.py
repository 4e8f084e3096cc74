from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tisat.batch.engines import Inline
from tisat_bench.driver import drive
from tisat_bench.evaluation import Results
from tisat_bench.experiment import read_experiment
from tisat_bench.frozen import Frozen, gather
from tisat_bench.sources import Source
from tisat_bench.store import Store
from tisat_bench.task import Task, fingerprint, make_task

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def plants() -> dict[str, Source]:
    return {"plants": Source("plants")}


@pytest.fixture(scope="session")
def task_of(plants: dict[str, Source]) -> Callable[..., Task]:
    def make(detector: str = "last-value", entity: str = "plant-0", *, seed: int = 0, **params: object) -> Task:
        train, test = plants["plants"].pair(entity)
        return make_task(
            dataset="plants",
            entity=entity,
            detector=detector,
            params=params,
            seed=seed,
            fingerprint=fingerprint(train, test),
        )

    return make


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tuple[Frozen, Results]:
    folder = tmp_path_factory.mktemp("smoke")
    plan = read_experiment(ROOT / "experiments" / "smoke.toml")
    store = Store(folder)
    progress = drive(list(plan.tasks()), plan.sources, store, Inline())
    assert not progress.failed
    evaluation = Results(plan, store)
    return gather(evaluation), evaluation

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tisat.benchmark.drive import drive
from tisat.benchmark.evaluation import Results
from tisat.benchmark.experiment import read_experiment
from tisat.benchmark.frozen import Frozen, gather
from tisat.benchmark.sources import Source
from tisat.benchmark.store import Store
from tisat.benchmark.task import Task, fingerprint, make_task
from tisat.engines import Inline

ROOT = Path(__file__).parents[2]


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

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tisat import registry
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


@pytest.fixture
def own_detector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a detector of one's own, registered as "mine"."""
    file = tmp_path / "mine_of_a_test.py"
    file.write_text(
        "import numpy as np\n"
        "from tisat import Detector\n\nSIGN = 1.0\n\n\n"
        "class Mine(Detector):\n"
        "    def _fit(self, parts):\n        self.mean_ = parts[0].mean(axis=0)\n\n"
        "    def _points(self, part):\n        return SIGN * np.abs(part - self.mean_)[:, :1]\n\n"
        "    def _context(self):\n        return 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.DETECTORS, "mine", "mine_of_a_test:Mine")
    yield file
    sys.modules.pop("mine_of_a_test", None)

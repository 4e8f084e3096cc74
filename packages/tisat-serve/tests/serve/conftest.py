"""A small plant for the service: one model, made once."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="pip install 'tisat[serve]'")
pytest.importorskip("starlette", reason="pip install 'tisat[serve]'")

from tisat.utils.types import Array
from tisat.watch import Watch
from tisat_serve.engine.engine import Engine, Limits
from tisat_serve.engine.group import Group
from tisat_serve.engine.row_encoding import ACCEPTED, STATUSES
from tisat_serve.folder.archive import rows_of
from tisat_serve.service import Service
from tisat_serve.store import Store
from tisat_serve.structs import Row

START = 1_770_000_000  # seconds since 1970 of the first row
CHANNELS = ("temp", "flow", "power")


def plant_rows(count: int, *, seed: int = 0, fault: int | None = None) -> Array:
    """Rows ``(count, 3)`` that follow each other; from row ``fault`` on, temp is 8 too high for 30 rows."""
    rng = np.random.default_rng(seed)
    t = np.arange(count)[:, None]
    rows: Array = np.sin(t / 9.0 + np.arange(3)) + 0.1 * rng.normal(size=(count, 3)) + [60.0, 5.0, 1.0]
    if fault is not None:
        rows[fault : fault + 30, 0] += 8.0
    return rows


def local_client(app: Any, **options: Any) -> Any:
    """A client on this machine: its peer address is 127.0.0.1 and so is its Host."""
    from starlette.testclient import TestClient

    return TestClient(app, **{"base_url": "http://127.0.0.1:8765", "client": ("127.0.0.1", 50000), **options})


def limit(store: Store, pages: int) -> None:
    """Let the file of a store grow to so many pages at most, of 4 kB: a disk that is full."""
    store._writer.execute(f"PRAGMA max_page_count={pages}")


def result_lines(engine: Engine) -> list[bytes]:
    """The results on the rows that were taken in, one line each, by entity and row: the same to the bit after any restart.

    Rows that were left out (sent twice, say, by a client that got no answer) change nothing and are not in it.
    """
    lines = []
    for name in sorted(engine.cells):
        brief, body = rows_of(engine.entities, name)
        for k in np.flatnonzero(brief.status < ACCEPTED):
            numbers = (body.score[k], body.evidence[k], brief.statistic[k])
            said = " ".join(float(number).hex() for number in numbers)
            text = (
                f"{name} {brief.times[k]} {STATUSES[brief.status[k]]} {int(body.row[k])} {int(brief.active[k])} {said}"
            )
            lines.append(text.encode())
    return lines


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a model with a period of one minute."""
    from tisat.detectors import LinearLast
    from tisat.series import Series

    times = np.datetime64(START - 5000 * 60, "s") + 60 * np.arange(5000).astype("timedelta64[s]")
    series = Series(plant_rows(5000, seed=9), timestamps=times, channels=CHANNELS)
    watch = Watch(LinearLast(window=10), budget="1/1000 rows").fit(series)
    path = tmp_path_factory.mktemp("model") / "plant.tisat"
    watch.save(path)
    return path


@pytest.fixture
def watch(model: Path) -> Watch:
    return Watch.load(model)


def requests_of(
    entities: int = 4, count: int = 200, *, faulty: Sequence[str] = ("e1",), size: int = 100
) -> list[list[Row]]:
    """Requests with rows of several entities in order of time."""
    made = {f"e{i}": plant_rows(count, seed=i, fault=120 if f"e{i}" in faulty else None) for i in range(entities)}
    rows = [Row(entity=name, values=made[name][k].tolist(), time=START + 60 * k) for k in range(count) for name in made]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


@pytest.fixture
def engine_in(watch: Watch) -> Iterator[Callable[..., Engine]]:
    """Makes engines on a folder; the clock stands still unless told otherwise."""
    made: list[Engine] = []

    def make(
        folder: Path, *, save_rows: int = 16, clock: Callable[[], float] = lambda: float(START), **options: Any
    ) -> Engine:
        group = {
            name: options.pop(name) for name in ("lateness", "silent_after", "match", "ignore_extra") if name in options
        }
        engine = Engine(
            Store(folder), [Group("main", watch, **group)], limits=Limits(save_rows=save_rows), clock=clock, **options
        )
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.store.close()


@pytest.fixture
def service(engine_in: Callable[..., Engine], tmp_path: Path) -> Iterator[Service]:
    """A service that runs, in this process, without a door."""
    running = Service(engine_in(tmp_path)).start()
    yield running
    running.stop()

"""A machine that is still different is not calm: its alarm stays open in the book until it is back or accepted, after a restart too."""

from __future__ import annotations

import numpy as np
import pytest

from serve.conftest import START
from tisat.watch import Watch
from tisat_serve.engine.engine import Engine, Limits
from tisat_serve.engine.group import Group
from tisat_serve.store import Store
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView

BEGIN, UNDONE, COUNT = 300, 1000, 1700


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    load = np.sin(np.arange(rows) / 40.0)
    return np.outer(load, [1.0, 1.5, 0.7]) + 0.1 * rng.standard_normal((rows, 3))


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch(budget="1/1000 rows", period="1 min", control=False).fit(plant(5000, 1))


def test_an_ongoing_alarm_is_open_until_it_is_back(watch, tmp_path):
    values = plant(COUNT, 2)
    values[BEGIN:UNDONE, 1] += 2.0
    rows = [Row(entity="pump", values=one.tolist(), time=START + 60 * k) for k, one in enumerate(values)]
    monitor = watch.monitor(name="pump")
    monitor.extend(values[:900], [START + 60 * k for k in range(900)])
    assert [one.state for one in monitor.ongoing] == ["ongoing"]
    states = []
    for first, last in ((0, 900), (900, 901), (901, COUNT)):
        engine = Engine(
            Store(tmp_path), [Group("main", watch)], limits=Limits(save_rows=16), clock=lambda: float(START)
        )
        engine.ingest(rows[first:last])
        engine.settle()
        entity = FleetView(engine).entity("pump")
        still = engine.store.read(
            "SELECT count(*) FROM alarms WHERE cleared IS NULL AND raised < ?", ((START + 60 * (BEGIN + 60)) * 10**9,)
        )
        states.append((entity.status, entity.alarm is not None, still[0][0]) if first < UNDONE - 99 else still[0][0])
        engine.store.close()
    assert states == [("alarm", True, 1), ("alarm", True, 1), 0]


@pytest.mark.parametrize("joined", [False, True])
def test_what_is_still_broken_calls_once(watch, tmp_path, joined):
    values = plant(COUNT, 2)
    values[BEGIN:, 1] += 2.0
    for again in (900, 1300):
        values[again : again + 3, 1] += 5.0
    if joined:
        values[1304:1400, 0] += 8.0
    rows = [Row(entity="pump", values=one.tolist(), time=START + 60 * k) for k, one in enumerate(values)]
    engine = Engine(Store(tmp_path), [Group("main", watch)], limits=Limits(save_rows=16), clock=lambda: float(START))
    engine.saver.routes = ("hook",)
    on = []
    for first in range(0, COUNT, 10):
        engine.ingest(rows[first : first + 10])
        engine.settle()
        on += [one for one in FleetView(engine).alarms(active=True) if one.state == "merged"]
    view = FleetView(engine)
    sent = engine.store.read("SELECT event, alarm FROM outbox ORDER BY id")
    alarms = [one for one in reversed(view.alarms(sort="statistic")) if one.raised >= START + 60 * BEGIN]
    broken, *later = alarms
    calls = [event for event, number in sent if number in {one.id for one in later}]
    assert broken.state == "ongoing"
    assert on, "it is marked while it is on"
    assert len(later) >= 2
    assert {one.incident for one in later} == {broken.incident}
    if joined:
        assert calls == ["raised"]
        assert next(one for one in later if not one.suppressed).state == "ongoing"
    else:
        assert calls == []
        assert {(one.state, one.suppressed) for one in later} == {("merged", "merged into an alarm that is ongoing")}
        assert "merged into an alarm that is ongoing" in " ".join(view.alarm(later[0].id).sentences)
    assert view.entity("pump").alarm in {broken.id, *(one.id for one in later if not one.suppressed)}
    engine.store.close()

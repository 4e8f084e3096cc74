"""A service that is killed at any moment goes on as if nothing had happened: the same verdicts to the bit, the same alarms."""

import random
import threading
import time
import urllib.error

import pytest

from serve.conftest import requests_of
from serve.processes import Process
from tisat.serve.archive import verdict_lines


def as_json(rows):
    return [{"entity": row.entity, "time": row.time, "values": row.values} for row in rows]


def book(engine):
    return engine.store.read(
        "SELECT id, entity, sort, raised, onset, cleared, ratio, document FROM alarms WHERE sort != 'silence' ORDER BY id"
    )


def run_with_kills(model, folder, requests, kills, seed=0):
    """Send every request until it is answered; kill the service while it works."""
    rng = random.Random(seed)
    place = 0
    options = ("--model", model, "--data", folder, "--silent-after", "1 day")
    service = Process(*options)
    for _ in range(kills):
        timer = threading.Timer(rng.uniform(0.02, 0.6), service.process.kill)
        timer.start()
        try:
            while place < len(requests):
                service.post("/api/v1/rows", as_json(requests[place]))
                place += 1
                time.sleep(rng.uniform(0, 0.03))
        except (urllib.error.URLError, ConnectionError, OSError):
            pass
        timer.join()
        service.kill()
        service = Process(*options)
    with service:
        for rows in requests[place:]:
            service.post("/api/v1/rows", as_json(rows))
        assert service.end() == 0


def check(model, engine_in, tmp_path, requests, kills):
    undisturbed = engine_in(tmp_path / "whole")
    for rows in requests:
        undisturbed.ingest(rows)
    run_with_kills(model, tmp_path / "killed", requests, kills)
    killed = engine_in(tmp_path / "killed")
    assert verdict_lines(killed) == verdict_lines(undisturbed)
    assert book(killed) == book(undisturbed) != []


def test_killed_once_the_verdicts_are_the_same(model, engine_in, tmp_path):
    check(model, engine_in, tmp_path, requests_of(count=160, size=20), 1)


@pytest.mark.slow
def test_killed_a_hundred_times_the_verdicts_are_the_same(model, engine_in, tmp_path):
    check(model, engine_in, tmp_path, requests_of(entities=8, count=2500, size=20, faulty=("e1", "e5")), 100)

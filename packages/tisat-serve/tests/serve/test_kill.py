"""A service that is killed at any moment goes on as if nothing had happened: the same results to the bit, the same alarms."""

import http.client
import os
import random
import signal
import threading
import time
import urllib.error

import pytest

from serve.conftest import requests_of, result_lines
from serve.processes import Forked, Process


def as_json(rows):
    return [{"entity": row.entity, "time": row.time, "values": row.values} for row in rows]


def book(engine):
    return engine.store.read(
        "SELECT id, entity, sort, raised, onset, cleared, ratio, document FROM alarms WHERE sort != 'silence' ORDER BY id"
    )


def run_with_kills(start, requests, kills, seed=0):
    """Send every request until it is answered; kill the service while it works."""
    rng = random.Random(seed)
    place = 0
    service = start()
    for _ in range(kills):
        timer = threading.Timer(rng.uniform(0.02, 0.6), os.kill, (service.process.pid, signal.SIGKILL))
        timer.start()
        try:
            while place < len(requests):
                service.post("/api/v1/rows", as_json(requests[place]))
                place += 1
                time.sleep(
                    rng.uniform(0, 0.06)
                )  # slow enough that a quick machine is still at work when the last kill comes
        except (
            urllib.error.URLError,
            ConnectionError,
            OSError,
            http.client.HTTPException,
        ):  # also in the middle of an answer
            pass
        timer.join()
        service.kill()
        service = start()
    with service:
        for rows in requests[place:]:
            service.post("/api/v1/rows", as_json(rows))
        assert service.end() == 0
    return place


def check(start, engine_in, tmp_path, requests, kills):
    undisturbed = engine_in(tmp_path / "whole")
    for rows in requests:
        undisturbed.ingest(rows)
    place = run_with_kills(start, requests, kills)
    assert place < len(requests), "every kill must find the service at work"
    killed = engine_in(tmp_path / "killed")
    assert result_lines(killed) == result_lines(undisturbed)
    assert book(killed) == book(undisturbed) != []


def test_killed_once_the_verdicts_are_the_same(model, engine_in, tmp_path):
    options = ("--model", model, "--data", tmp_path / "killed", "--silent-after", "1 day")
    check(lambda: Process(*options), engine_in, tmp_path, requests_of(count=400, size=20), 1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_a_hundred_times_the_verdicts_are_the_same(model, engine_in, tmp_path):
    requests = requests_of(entities=8, count=3_000, size=20, faulty=("e1", "e5"))
    check(lambda: Forked(model, tmp_path / "killed"), engine_in, tmp_path, requests[:1200], 100)

"""How far one row goes: ``python docs/trace.py``, functions and modules entered by ``Monitor.update`` and over HTTP.

Counted with ``sys.setprofile`` in every thread, for a monitor of prism that has warmed up, at the next row of the same waves, which raises
no alarm: functions of tisat and tisat_serve, without comprehensions and without what runs when a module is imported.
"""

import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from tisat import Watch

PACKAGES = ("tisat", "tisat_serve")
HISTORY = 4000  # rows of training
PAST = 300  # rows before the one that is counted
SETTLED = 0.5  # seconds in which the service saves what a request has left to save


class Count:
    """Count what is entered while it is on; made before the threads that it follows are started."""

    def __init__(self):
        self.on, self.entered, self.calls = False, set(), 0
        threading.setprofile(self.see)
        sys.setprofile(self.see)

    def see(self, frame, event, _):
        """Note a call of ours."""
        module = frame.f_globals.get("__name__", "")
        if self.on and event == "call" and module.split(".")[0] in PACKAGES and "<" not in frame.f_code.co_name:
            self.entered.add((module, frame.f_code.co_qualname))
            self.calls += 1

    def of(self, action):
        """Functions, modules and calls of an action."""
        self.on, self.entered, self.calls = True, set(), 0
        action()
        self.on = False
        return len(self.entered), len({module for module, _ in self.entered}), self.calls


def rows(count, seed):
    """Three waves with noise."""
    waves = [np.sin(2 * np.pi * np.arange(count) / length) for length in (50, 144, 333)]
    return np.stack(waves, axis=1) + 0.2 * np.random.default_rng(seed).normal(size=(count, 3))


def over_http(watch, count):
    """One row that is posted to a service in this process: the request, its answer, and what is written after it."""
    from starlette.testclient import TestClient

    from tisat_serve import service as serving
    from tisat_serve.api.app import make_app
    from tisat_serve.engine.engine import Engine
    from tisat_serve.engine.group import Group
    from tisat_serve.security import Tokens
    from tisat_serve.store import Store

    serving.TEND = 3600.0  # the rounds of the service, which come by the clock and not with a row, are left out
    with tempfile.TemporaryDirectory() as folder:
        service = serving.Service(Engine(Store(Path(folder)), [Group("main", watch)])).start()
        start = time.time() - 60.0 * (PAST + 1)

        def post(first, many):
            body = [
                {"entity": "pump", "time": start + 60.0 * (first + k), "values": row.tolist()}
                for k, row in enumerate(many)
            ]
            client.post("/api/v1/rows", json=body).raise_for_status()

        app = make_app(service, Tokens(service.engine.store))
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50000)) as client:
            whole = rows(PAST + 1, 2)
            post(0, whole[:PAST])
            time.sleep(SETTLED)
            found = count.of(lambda: (post(PAST, whole[PAST:]), time.sleep(SETTLED)))
        service.stop()
        return found


def main():
    """Print a Markdown table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch("prism", budget="1/1000 rows", period=60.0).fit(rows(HISTORY, 0))
    count = Count()
    monitor = watch.monitor()
    whole = rows(PAST + 1, 1)
    for row in whole[:PAST]:
        monitor.update(row)
    found = {"`Monitor.update`": count.of(lambda: monitor.update(whole[PAST])), "HTTP": over_http(watch, count)}
    sys.setprofile(None)
    sys.stdout.write("| way | functions | modules | calls |\n|---|--:|--:|--:|\n")
    for way, cells in found.items():
        sys.stdout.write(f"| {way} | {' | '.join(map(str, cells))} |\n")


if __name__ == "__main__":
    main()

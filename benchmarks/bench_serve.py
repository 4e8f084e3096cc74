"""The targets of the service beside what was measured: 1,000 entities x 38 channels, linear-last, on this machine.

    python benchmarks/bench_serve.py [--entities 1000] [--quick]

The service runs in a process of its own; this process sends, and shares the cores with it. Absolute figures depend on the machine and on
what else runs; the last column says whether the target was met here.
"""

import argparse
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

CHANNELS = 38
START = 1_770_000_000
PERIOD = 60


def plant(count, seed=0):
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(count)[:, None] / 40.0 + np.arange(CHANNELS)) + 0.2 * rng.normal(size=(count, CHANNELS))


def make_model(path):
    from tisat.detectors import LinearLast
    from tisat.series import Series
    from tisat.watch import Watch

    times = np.datetime64(START - 6000 * PERIOD, "s") + PERIOD * np.arange(6000).astype("timedelta64[s]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Watch(LinearLast(), budget="1/day").fit(Series(plant(6000, 1), timestamps=times)).save(path)


def watching(folder, model):
    """What to say for a service with one model and a folder of its own."""
    return "--model", model, "--data", folder, "--silent-after", "1 day"


class Served:
    def __init__(self, *told):
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "tisat", "serve", "--port", "0", *map(str, told)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"listening on http://([\d.]+):(\d+)", line)
            if found:
                self.address = (found[1], int(found[2]))
                break
        else:
            raise SystemExit("the service did not start")
        self.started = time.perf_counter() - self.began
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.connection = http.client.HTTPConnection(*self.address, timeout=120)

    def get(self, path):
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body[:300]
        return body

    def memory(self):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024

    def memory_until(self, end, said):
        """Megabytes every five seconds; a line a minute with what ``said`` returns."""
        begun, found = time.monotonic(), []
        while time.monotonic() < end:
            time.sleep(5.0)
            found.append(self.memory())
            if len(found) % 12 == 0:
                print(f"{(time.monotonic() - begun) / 60:5.1f} min  {found[-1]:6.1f} MB  {said()}", flush=True)
        return found

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bodies(entities, first, steps, size):
    """Requests as bytes, made before the clock starts: ``steps`` rows of each entity, ``size`` rows each."""
    made = []
    for k in range(first, first + steps):
        row = np.round(plant(1, k)[0] + np.sin(k / 40.0 + np.arange(CHANNELS)), 4).tolist()
        rows = [{"entity": f"machine-{i:04d}", "time": START + PERIOD * k, "values": row} for i in range(entities)]
        made += [json.dumps(rows[a : a + size]).encode() for a in range(0, entities, size)]
    return made


def post(connection, body):
    connection.request("POST", "/api/v1/rows", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content[:300]
    return content


def send_all(address, work, workers=2):
    """All requests over a few connections, in order of time for each entity; seconds."""
    begin = time.perf_counter()
    lanes = [work[k::workers] for k in range(workers)]

    def lane(mine):
        connection = http.client.HTTPConnection(*address, timeout=300)
        for body in mine:
            post(connection, body)
        connection.close()

    threads = [threading.Thread(target=lane, args=(mine,)) for mine in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


class Alertmanager:
    """Says when the first alert came."""

    def __init__(self):
        self.first = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if b"TisatAlarm" in body:
                    outer.at = time.perf_counter()
                    outer.first.set()
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def promql_answer(entities, at):
    values = [[at, "0.5312"]]
    result = [{"metric": {"instance": f"machine-{i:04d}"}, "values": values} for i in range(entities)]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def promql_cycle(entities, folder, model):
    """One live cycle of 38 queries x all entities, fetched over HTTP, judged and written."""
    from tisat.watch import Watch
    from tisat_serve.engine.engine import Engine
    from tisat_serve.engine.group import Group
    from tisat_serve.service import Service
    from tisat_serve.sources.promql import PromQL
    from tisat_serve.store import Store

    now = [float(START)]
    content = {"at": b""}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", str(len(content["at"])))
            self.end_headers()
            self.wfile.write(content["at"])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    watch = Watch.load(model)
    source = PromQL(
        "prom",
        f"http://127.0.0.1:{server.server_address[1]}",
        {name: name for name in watch.channels},
        step=float(PERIOD),
    )
    import tisat_serve.sources.promql as module

    real, module.clocks.time = module.clocks.time, lambda: now[0]
    times = []
    try:
        with Store(folder) as store:
            service = Service(Engine(store, [Group("main", watch)])).start()
            for _ in range(4):
                content["at"] = promql_answer(entities, source.grid(now[0]))
                source.cycle(service)
                times.append(source.took)
                now[0] += PERIOD
            service.stop()
    finally:
        module.clocks.time = real
        server.shutdown()
    return statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entities", type=int, default=1000)
    parser.add_argument("--quick", action="store_true")
    told = parser.parse_args()
    entities, steps = (200 if told.quick else told.entities), 130
    results = []

    def line(name, target, value, unit, *, least=False):
        met = value >= target if least else value <= target
        results.append(
            (name, f"{'>=' if least else '<='} {target:g} {unit}", f"{value:.4g} {unit}", "yes" if met else "NO")
        )
        print(
            f"{name:52s} target {results[-1][1]:>14s}   measured {results[-1][2]:>16s}   {results[-1][3]}", flush=True
        )

    with tempfile.TemporaryDirectory() as place:
        folder, model = Path(place) / "watch", Path(place) / "plant.tisat"
        make_model(model)
        print(
            f"# {entities} entities x {CHANNELS} channels, linear-last; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
            flush=True,
        )
        alertmanager = Alertmanager()
        served = Served(*watching(folder, model), "--alertmanager", alertmanager.url)
        send_all(served.address, bodies(entities, 0, 2, 500))  # enrol and compile
        work = bodies(entities, 2, steps, 500)
        used = served.cpu()
        took = send_all(served.address, work)
        used = served.cpu() - used
        line("durable rows a second, sent in 500s", 5000, entities * steps / took, "rows/s", least=True)
        print(
            f"{'  rows for each second of processor time it used':52s} {entities * steps / used:.0f} rows/s", flush=True
        )
        line("resident memory", 400, served.memory(), "MB")

        # 1,000 rows a second in requests of 100
        paced = bodies(entities, 2 + steps, 10, 100)
        connection = http.client.HTTPConnection(*served.address, timeout=60)
        waits, begin = [], time.perf_counter()
        for k, body in enumerate(paced):
            while time.perf_counter() < begin + k * 0.1:
                time.sleep(0.0005)
            at = time.perf_counter()
            post(connection, body)
            waits.append(time.perf_counter() - at)
        line("request to result, p99 at 1,000 rows/s", 100, 1000 * float(np.quantile(waits, 0.99)), "ms")

        # a fault, until Alertmanager has it
        last = 12 + steps
        alertmanager.first.clear()
        bad = [
            {"entity": "machine-0007", "time": START + PERIOD * (last + k), "values": [50.0 + 9 * k] * CHANNELS}
            for k in range(5)
        ]
        at = time.perf_counter()
        post(connection, json.dumps(bad).encode())
        alertmanager.first.wait(30)
        line(
            "row to Alertmanager",
            2,
            (alertmanager.at if alertmanager.first.is_set() else time.perf_counter()) - at,
            "s",
        )

        time.sleep(5)
        before, at = served.cpu(), time.perf_counter()
        time.sleep(10)
        line("idle processor time", 2, 100 * (served.cpu() - before) / (time.perf_counter() - at), "% of a core")

        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
        begin = time.perf_counter()
        served = Served(*watching(folder, model))
        served.get("/readyz")
        line("kill -9 to ready", 10, time.perf_counter() - begin, "s")

        month = 43_200 if not told.quick else 8_000
        rows = np.round(plant(month, 5), 3)
        long = []
        for a in range(0, month, 2000):
            part = [
                {"entity": "long", "time": START + PERIOD * (a + k), "values": rows[a + k].tolist()}
                for k in range(min(2000, month - a))
            ]
            long.append(json.dumps(part).encode())
        send_all(served.address, long, workers=1)
        served.connection.close()  # on a slow machine the service has closed it meanwhile: the next request opens it again
        waits = []
        for threshold in (3.0, 4.5, 6.0, 8.0, 10.0):
            at = time.perf_counter()
            served.get(f"/api/v1/whatif?entity=long&threshold={threshold}")
            waits.append(time.perf_counter() - at)
        line(f"what-if over {month // 1440} days of one entity", 200, 1000 * statistics.median(waits), "ms")
        at = time.perf_counter()
        size = len(served.get(f"/api/v1/heatmap?start={START}&stop={START + 86400}&steps=96"))
        line(
            f"heat map {entities} x 96 (no target; {size / 1e6:.2f} MB)", 1000, 1000 * (time.perf_counter() - at), "ms"
        )
        served.process.send_signal(signal.SIGTERM)
        served.process.wait()
        line("PromQL cycle, 38 queries", 1.5, promql_cycle(entities, Path(place) / "prom", model), "s")


if __name__ == "__main__":
    main()

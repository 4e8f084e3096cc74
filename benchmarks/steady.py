"""A steady fleet for minutes: memory, rows per CPU second, waiting times, and the time to be ready after kill -9.

    python benchmarks/steady.py [--minutes 10] [--entities 1000] [--channels 20] [--rate 1000]

The service runs in a process of its own; eight connections offer ``rate`` rows a second in requests of 100. CPU time is that of the
service's process. At the end it is killed and started again on its folder. Exit code 1 where a row was refused or memory grew by
more than 5 % after the first fifth.
"""

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bench_serve
from bench_serve import PERIOD, START, Served, make_model, plant, watching

ROWS = 100  # in a request


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--entities", type=int, default=1000)
    parser.add_argument("--channels", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1000.0)
    told = parser.parse_args()
    bench_serve.CHANNELS = told.channels
    place = tempfile.TemporaryDirectory()
    folder, model = Path(place.name) / "watch", Path(place.name) / "plant.tisat"
    make_model(model)
    served = Served(*watching(folder, model))
    body = [",".join(f"{value:.4g}" for value in row) for row in plant(50, 3)]
    step, lock = [0], threading.Lock()
    waits, refused, taken = [], [0], [0]
    begun = time.monotonic()
    end = begun + 60 * told.minutes

    def client():
        connection = http.client.HTTPConnection(*served.address, timeout=120)
        while time.monotonic() < end:
            with lock:
                first, step[0] = step[0], step[0] + ROWS
            ahead = first / told.rate - (time.monotonic() - begun)
            if ahead > 0:
                time.sleep(ahead)
            rows = ",".join(
                f'{{"entity":"m{k % told.entities:04d}","time":{START + PERIOD * (k // told.entities)},"values":[{body[k % 50]}]}}'
                for k in range(first, first + ROWS)
            )
            at = time.monotonic()
            connection.request("POST", "/api/v1/rows", f"[{rows}]".encode(), {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
            with lock:
                waits.append(time.monotonic() - at)
                taken[0] += answer["taken"]
                refused[0] += answer["refused"]

    before = served.cpu()
    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    memory = served.memory_until(end, lambda: f"{taken[0]} rows")
    for thread in threads:
        thread.join()
    used = served.cpu() - before
    cuts = statistics.quantiles(waits, n=100)
    fifth = max(memory[: max(1, len(memory) // 5)])
    print(
        f"# {told.entities} x {told.channels}, {told.rate:g} rows/s offered, {told.minutes:g} min, load {os.getloadavg()[0]:.1f}"
    )
    print(f"{taken[0]} rows taken, {refused[0]} refused; {taken[0] / used:.0f} rows per CPU second ({used:.0f} CPU s)")
    print(f"request to answer: p50 {1000 * cuts[49]:.0f} ms, p99 {1000 * cuts[98]:.0f} ms")
    print(f"memory {fifth:.0f} MB at most in the first fifth, {max(memory):.0f} MB at most in all")
    served.process.kill()
    served.process.wait()
    again = Served(*watching(folder, model))
    print(f"kill -9 to ready: {time.perf_counter() - again.began:.1f} s, {again.cpu():.1f} CPU s")
    again.process.kill()
    sys.exit(bool(refused[0] or max(memory) > 1.05 * fifth))


if __name__ == "__main__":
    main()

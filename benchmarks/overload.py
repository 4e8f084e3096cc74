"""Ten times more rows than the service can judge, for minutes: what does not fit is answered 429, and memory stays flat.

    python benchmarks/overload.py [--minutes 10] [--entities 200] [--times 10]

The service runs in a process of its own. First its pace is measured; then clients offer ``times`` as many rows a second, in requests
whose bytes were made before. Every answer is counted. It ends with exit code 1 where memory grew by more than 5 % after
the first fifth, where a request got neither 200 nor 429, or where rows that were answered 200 are not in the store.
"""

import argparse
import collections
import http.client
import json
import os
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench_serve import CHANNELS, PERIOD, START, Served, make_model, plant, send_all

ROWS = 500  # in a request


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--entities", type=int, default=200)
    parser.add_argument("--times", type=float, default=10.0)
    told = parser.parse_args()
    body = ["["] + [",".join(f"{value:.4g}" for value in row) + "]" for row in plant(50, 3)]
    place = tempfile.TemporaryDirectory()
    folder, model = Path(place.name) / "watch", Path(place.name) / "plant.tisat"
    make_model(model)
    config = Path(place.name) / "serve.toml"
    config.write_text(
        f'data = "{folder}"\n[limits]\nrows_waiting = 5000\n[[group]]\nname = "main"\nmodel = "{model}"\nsilent_after = "1 day"\nretention = "2 days"\n'
    )
    served = Served("--config", config)

    step = [0]
    lock = threading.Lock()

    def request():
        """Bytes of the next rows: every entity has a clock that goes on, whether its rows were taken or not."""
        with lock:
            first, step[0] = step[0], step[0] + ROWS
        rows = [
            f'{{"entity":"machine-{k % told.entities:04d}","time":{START + PERIOD * (k // told.entities)},"values":[{body[1 + k % 50]}}}'
            for k in range(first, first + ROWS)
        ]
        return ("[" + ",".join(rows) + "]").encode()

    pace_work = [request() for _ in range(40)]
    send_all(served.address, pace_work[:8])
    took = send_all(served.address, pace_work[8:])
    pace = 32 * ROWS / took
    offered = told.times * pace
    print(
        f"# {told.entities} entities x {CHANNELS} channels; alone it judges {pace:.0f} rows/s; offered {offered:.0f} rows/s for {told.minutes:g} minutes; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    answers, taken, waits = collections.Counter(), [0], []
    end = time.monotonic() + 60 * told.minutes
    begun = time.monotonic()
    sent = [0]

    def client():
        """Offers its share; a request that is turned away is not sent again: the rows are lost to us, as they would be to a plant."""
        connection = http.client.HTTPConnection(*served.address, timeout=120)
        mine = request()
        while time.monotonic() < end:
            with lock:
                ahead = sent[0] - offered * (time.monotonic() - begun)
                sent[0] += ROWS
            if ahead > 0:
                time.sleep(ahead / offered)
            at = time.monotonic()
            try:
                connection.request("POST", "/api/v1/rows", mine, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                answers[type(error).__name__] += 1
                connection.close()
                continue
            answers[answer.status] += 1
            if answer.status == 200:
                with lock:
                    taken[0] += json.loads(content)["taken"]
                    waits.append(time.monotonic() - at)
                mine = request()  # what was turned away is offered again; it is the offer that counts
            elif "Retry-After" not in answer.headers:
                answers["429 without Retry-After"] += 1

    threads = [threading.Thread(target=client) for _ in range(16)]
    for thread in threads:
        thread.start()
    memory = served.memory_until(end, lambda: dict(answers))
    for thread in threads:
        thread.join()
    figures = served.get("/metrics").decode()
    away = float(re.search(r"^tisat_rows_turned_away_total (\S+)", figures, re.M)[1])
    judged = sum(float(found) for found in re.findall(r"^tisat_rows_total\{[^}]*\} (\S+)", figures, re.M))
    fifth = max(memory[: max(1, len(memory) // 5)])
    grown = max(memory) / fifth - 1
    seconds = time.monotonic() - begun
    print(
        f"offered {sum(v for v in answers.values()) * ROWS / seconds:.0f} rows/s, taken {taken[0] / seconds:.0f} rows/s, turned away {away:.0f} rows; answers {dict(answers)}"
    )
    print(
        f"memory {memory[0]:.0f} MB at first, {fifth:.0f} MB at most in the first fifth, {max(memory):.0f} MB at most in all: {100 * grown:+.1f} %"
    )
    waits.sort()
    print(
        f"answer 200 after {1000 * waits[len(waits) // 2]:.0f} ms (median), {1000 * waits[int(0.99 * len(waits))]:.0f} ms (99 %)"
    )
    expected = taken[0] + 40 * ROWS
    print(f"rows answered 200: {expected}; rows judged: {judged:.0f}")
    served.process.terminate()
    served.process.wait(60)
    odd = {key: value for key, value in answers.items() if key not in (200, 429)}
    ok = grown <= 0.05 and not odd and judged == expected and answers[429] > 0
    print("OK" if ok else f"NOT OK {odd}")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()

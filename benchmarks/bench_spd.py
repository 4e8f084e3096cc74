"""SPD side by side with what else there is, in one run: ratios, not seconds.

    python benchmarks/bench_spd.py                     # against scikit-learn's average precision and np.argsort
    python benchmarks/bench_spd.py --vus PYTHON        # and against VUS-PR of dtaianomaly and aeon, installed for that interpreter

1,000,000 rows, 1000 events of 40, delta_max 100. Each candidate runs in turn and the best of the repeats counts, so that
whatever else the machine does hits all of them alike. Memory is the rise of the peak resident set of a fresh process over what it held with the arrays made
and every kernel called once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np
from rounds import best_of

LENGTH, EVENTS, EVENT_LENGTH, DELTA_MAX = 1_000_000, 1000, 40, 100
TARGETS = {"average_precision_score": 0.5, "np.argsort": 4.0}


def labels(length: int, n_events: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    y = np.zeros(length, dtype=np.int64)
    slots = length // (length // (2 * n_events))
    for start in rng.choice(slots, n_events, replace=False) * (length // (2 * n_events)):
        y[start : start + EVENT_LENGTH] = 1
    return y


def scores(kind: str, length: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    if kind == "independent":
        return rng.random(length)
    if kind == "random walk":
        return np.cumsum(rng.normal(size=length))
    return rng.integers(0, 20, length).astype(np.float64)  # heavily tied


KINDS = ("independent", "random walk", "heavily tied")


def speed(repeats: int) -> None:
    from sklearn.metrics import average_precision_score

    from tisat.metrics import spd_score

    y = labels(LENGTH, EVENTS)
    print(f"{LENGTH:,} rows, {EVENTS} events, delta_max {DELTA_MAX}, best of {repeats} interleaved")
    print(f"{'scores':14}{'SPD / average_precision_score':>31}{'SPD / np.argsort':>19}{'bytes a row':>19}")
    for kind in KINDS:
        s = scores(kind, LENGTH)
        best = best_of(
            {
                "spd": lambda s=s: spd_score(y, s, delta_max=DELTA_MAX),
                "average_precision_score": lambda s=s: average_precision_score(y, s),
                "np.argsort": lambda s=s: np.argsort(s),
            },
            rounds=repeats,
        )
        ratios = {name: best["spd"] / best[name] for name in TARGETS}
        marks = {
            name: f"{ratio:.2f} ({'ok' if ratio <= TARGETS[name] else 'MISSED'}, <= {TARGETS[name]:g})"
            for name, ratio in ratios.items()
        }
        print(f"{kind:14}{marks['average_precision_score']:>31}{marks['np.argsort']:>19}{memory(kind):>19.1f}")


PEAK = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import bench_spd as bench
from tisat.metrics import spd_score

def resident():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) * 1024

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024

y, s = bench.labels(bench.LENGTH, bench.EVENTS), bench.scores({kind!r}, bench.LENGTH)
spd_score(y[:1000], s[:1000], delta_max=10)
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew from here
before = resident()
spd_score(y, s, delta_max=bench.DELTA_MAX)
print((peak() - before) / bench.LENGTH)
"""


def memory(kind: str) -> float:
    from pathlib import Path

    program = PEAK.format(folder=str(Path(__file__).parent), kind=kind)
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(found.stdout)


FIRST = "import time; {prepare}; start = time.perf_counter(); {run}; print(time.perf_counter() - start)"


def first_call() -> None:
    """The first call of a process, kernels found in the cache, against importing scikit-learn's metrics."""
    prepare = "import numpy as np; y = np.zeros(1000, int); y[10:20] = 1; s = np.random.default_rng(0).random(1000)"
    programs = {
        "spd": FIRST.format(prepare=prepare, run="from tisat.metrics import spd_score; spd_score(y, s, delta_max=10)"),
        "sklearn": FIRST.format(
            prepare=prepare, run="from sklearn.metrics import average_precision_score; average_precision_score(y, s)"
        ),
    }
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(4):
        for name, program in programs.items():
            found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            best[name] = min(best[name], float(found.stdout))
    print(
        f"first call of a process, import included: {best['spd'] / best['sklearn']:.2f} of average_precision_score's ({best['spd']:.2f} s here)"
    )


OTHERS = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import numpy as np
y, s, buffer = np.load(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
found = {}
for name in sys.argv[4:]:
    if name == "dtaianomaly":
        from dtaianomaly.evaluation import VolumeUnderPR
        run = lambda y, s: VolumeUnderPR(max_buffer_size=buffer).compute(y, s)
    else:
        from aeon.benchmarking.metrics.anomaly_detection import range_pr_vus_score
        run = lambda y, s: range_pr_vus_score(y, s, max_buffer_size=buffer)
    run(y[:2000], s[:2000])  # compile
    start = time.perf_counter()
    value = float(run(y, s))
    found[name] = (time.perf_counter() - start, value)
print(json.dumps(found))
"""


def against_vus(python: str, packages: list[str]) -> None:
    import tempfile
    from pathlib import Path

    from tisat.metrics import spd_score, vus_pr

    y, s = labels(100_000, 100), scores("independent", 100_000)
    best = best_of(
        {
            "spd": lambda: spd_score(y, s, delta_max=DELTA_MAX),
            "vus": lambda: vus_pr(y, s, max_buffer=DELTA_MAX, version="2022"),
        },
        rounds=5,
    )
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "y.npy", y)
        np.save(Path(folder) / "s.npy", s)
        command = [python, "-c", OTHERS, f"{folder}/y.npy", f"{folder}/s.npy", str(DELTA_MAX), *packages]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    again = best_of(
        {
            "spd": lambda: spd_score(y, s, delta_max=DELTA_MAX),
            "vus": lambda: vus_pr(y, s, max_buffer=DELTA_MAX, version="2022"),
        },
        rounds=5,
    )
    best = {name: max(best[name], again[name]) for name in best}  # the slower of before and after: the others ran once
    print(f"\n100,000 rows, 100 events, buffer {DELTA_MAX}; compiled code warmed up")
    for name, (seconds, value) in found.items():
        print(
            f"VUS-PR of {name}: {seconds / best['spd']:,.0f} times the time of spd_score, "
            f"{seconds / best['vus']:,.0f} times that of tisat's exact vus_pr (values {value:.4f} and {float(vus_pr(y, s, max_buffer=DELTA_MAX, version='2022')):.4f})"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--vus", metavar="PYTHON", help="an interpreter with dtaianomaly and/or aeon installed")
    parser.add_argument("--packages", nargs="*", default=["dtaianomaly", "aeon"])
    arguments = parser.parse_args()
    speed(arguments.repeats)
    first_call()
    if arguments.vus:
        against_vus(arguments.vus, arguments.packages)

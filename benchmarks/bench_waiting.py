"""Where people wait: the first minute, wide and long data, one row, many machines, metrics and files.

    python benchmarks/bench_waiting.py [first|wide|long|blocks|row|fleet|jobs|metrics|files ...] [--large]

Every figure is processor time of one thread, best of a few rounds, beside something everybody knows, measured in the same run; the ratio is
what to compare. ``--large`` adds 10k x 1,000, 1M x 5, and 5M x 5 in blocks. Rows are waves with common factors and noise.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

# Before numpy is imported: one thread each.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np  # noqa: E402
from rounds import best_of  # noqa: E402

FIRST = """
import numpy, tisat, warnings
warnings.simplefilter("ignore")
rows = numpy.random.default_rng(0).normal(size=(4000, 3)).cumsum(axis=0)
print(len(tisat.Watch(budget="1/1000 rows").fit(rows[:3000]).alarms(rows[3000:])))
"""


def waves(rows: int, channels: int, seed: int = 0) -> np.ndarray:
    """Three sines and a walk, mixed into channels, with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    factors = [np.sin(2 * np.pi * t / period) for period in (50, 144, 333)] + [0.02 * np.cumsum(rng.normal(size=rows))]
    return np.stack(factors, axis=1) @ rng.normal(size=(4, channels)) + 0.3 * rng.normal(size=(rows, channels))


def shifts(rows: int, channels: int) -> np.ndarray:
    """A machine with operating modes, a row a minute: a switch, and channels with a level for each half hour of the day."""
    rng = np.random.default_rng(0)
    half_hour = np.arange(rows) // 30 % 48
    values = rng.normal(size=(48, channels))[half_hour] + 0.1 * rng.normal(size=(rows, channels))
    values[:, 0] = half_hour // 12 % 2
    return values


def say(what: str, seconds: float, beside: str, other: float) -> None:
    """One line: seconds, what they are beside, and the ratio."""
    print(f"{what:<44}{seconds:>10.4g} s   {beside:<34}{other:>10.4g} s   ratio {seconds / other:.3g}", flush=True)


def child(command: list[str], **environment: str) -> float:
    """Processor seconds of another process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def quickest(command: list[str], **environment: str) -> float:
    """Processor seconds of another process, the least of three."""
    return min(child(command, **environment) for _ in range(3))


def first(_: argparse.Namespace) -> None:
    """A new user's first fit, and the same again; the bytecode is there, as pip leaves it."""
    import tisat as package

    child([sys.executable, "-m", "compileall", "-q", str(Path(package.__file__).parent)])
    peer, sklearn = "import sklearn.ensemble", quickest([sys.executable, "-c", "import sklearn.ensemble"])
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-c", FIRST]
        cold = min(child(run, NUMBA_CACHE_DIR=f"{folder}/{number}") for number in range(2))
        say("first fit and alarms, 4,000 x 3", cold, peer, sklearn)
        say("the same again", quickest(run, NUMBA_CACHE_DIR=f"{folder}/0"), peer, sklearn)
        tisat = [sys.executable, "-m", "tisat"]
        demo = [*tisat, "demo", "--out", f"{folder}/demo"]
        say("first tisat demo, four weeks", child(demo, NUMBA_CACHE_DIR=f"{folder}/2"), peer, sklearn)
        for name, rows in (("train", waves(3000, 5)), ("test", waves(3000, 5))):
            np.savetxt(f"{folder}/{name}.csv", rows, delimiter=",", header="a,b,c,d,e", comments="")
        fit = [*tisat, "fit", f"{folder}/train.csv", "--budget", "1/1000 rows", "--out", f"{folder}/m.tisat"]
        child(fit, NUMBA_CACHE_DIR=f"{folder}/0")
        alarm = [*tisat, "alarm", "--model", f"{folder}/m.tisat", f"{folder}/test.csv"]
        child(alarm, NUMBA_CACHE_DIR=f"{folder}/0")
        say("tisat alarm, 3,000 x 5, warm", quickest(alarm, NUMBA_CACHE_DIR=f"{folder}/0"), peer, sklearn)


def fitted(rows: int, channels: int) -> tuple[float, float, float]:
    """Seconds to fit and to raise alarms, and megabytes beyond what was there."""
    from tisat import Watch

    data, before = waves(rows, channels), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    watch = Watch(budget="1/1000 rows").fit(data)
    middle = time.process_time()
    watch.alarms(data)
    end = time.process_time()
    return middle - start, end - middle, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def forest(rows: int, channels: int) -> float:
    """Seconds of scikit-learn's isolation forest, which has no time, no calibration and no alarms."""
    from sklearn.ensemble import IsolationForest

    data, start = waves(rows, channels), time.process_time()
    IsolationForest(random_state=0).fit(data).score_samples(data)
    return time.process_time() - start


def _sizes(sizes: list[tuple[int, int]]) -> None:
    fitted(400, 3)
    for rows, channels in sizes:
        fit, alarms, megabytes = fitted(rows, channels)
        known = forest(rows, channels)
        say(f"fit {rows:,} x {channels:,} (+{megabytes:.0f} MB)", fit, "isolation forest, fit and score", known)
        say(f"alarms {rows:,} x {channels:,}", alarms, "isolation forest, fit and score", known)


def wide(options: argparse.Namespace) -> None:
    """Many channels."""
    _sizes([(10_000, 50), (10_000, 100), (10_000, 200), *([(10_000, 1000)] if options.large else [])])


def long(options: argparse.Namespace) -> None:
    """Many rows."""
    _sizes([(28_000, 38), (100_000, 5), *([(1_000_000, 5)] if options.large else [])])


def resident() -> float:
    """Megabytes the process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def blocks(options: argparse.Namespace) -> None:
    """A monitor that is given blocks of 10,000 rows, beside the alarms of a series; lines of text as they come from a file."""
    from tisat import Watch
    from tisat.watch.text_stream import BoundedLines, LineReader, watch_lines

    for name, channels, count in (
        ("prism", 5, 5_000_000 if options.large else 200_000), ("prism", 38, 50_000), ("mahalanobis", 200, 20_000),
    ):  # fmt: skip
        watch = Watch(name, budget="1/1000 rows").fit(waves(10_000, channels))
        monitor, took, most, before = watch.monitor(), 0.0, 0.0, 0.0
        for number in range(count // 10_000):
            rows = waves(10_000, channels, 1 + number % 20)
            start = time.process_time()
            monitor.extend(rows)
            took += time.process_time() - start
            if number == 1:
                before = resident()
            most = max(most, resident())
        start = time.process_time()
        watch.alarms(np.concatenate([waves(10_000, channels, 1 + number) for number in range(2)]))
        alarms = (time.process_time() - start) / 20_000
        say(f"a row of {name} in blocks, {channels} channels", took / count, "a row of Watch.alarms", alarms)
        print(f"{'':<4}{count:,} rows, {count / took:,.0f} a second, {most - before:+.0f} MB after the second block")
        if name == "prism" and channels == 5:
            text = b"\n".join(",".join(f"{one:.6g}" for one in row).encode() for row in waves(20_000, 5, 1)) + b"\n"
            lines, out = BoundedLines(io.BytesIO(text)), io.BytesIO()
            start = time.process_time()
            watch_lines(watch.monitor(), lines, out, reader=LineReader(watch.channels), ahead=lines.at_hand)
            say(
                "a line of tisat watch, 5 channels",
                (time.process_time() - start) / 20_000,
                "a row of Watch.alarms",
                alarms,
            )


def row(_: argparse.Namespace) -> None:
    """One row online, beside one product of a 38 x 38 matrix with a vector in numpy; with a time where there are modes."""
    from tisat import Series, Watch
    from tisat.detectors import Prism

    matrix, vector = np.eye(38), np.ones(38)
    product = best_of({"": lambda: [matrix @ vector for _ in range(1000)]}, rounds=5)[""] / 1000
    minutes = np.datetime64("2026-01-05T00:00", "ns") + np.arange(6000) * np.timedelta64(60, "s")
    plain, single, gone = waves(6000, 38), waves(6000, 1), waves(6000, 38)
    gone[4000:, 3] = np.nan
    for name, detector, rows in (
        ("prism", "prism", plain), ("prism with modes", "prism", shifts(6000, 38)), ("prism, 1 silent", "prism", gone),
        ("prism of linear-last", Prism(forecaster="linear-last"), plain), ("prism", "prism", single),
        ("linear-last", "linear-last", plain), ("mahalanobis", "mahalanobis", plain), ("mahalanobis", "mahalanobis", waves(6000, 200)),
    ):  # fmt: skip
        times = minutes if name == "prism with modes" else None
        watch = Watch(detector, budget="1/1000 rows").fit(
            Series(rows[:4000], timestamps=minutes[:4000] if times is not None else None)
        )
        assert getattr(watch.detector, "knows_modes", False) == (times is not None), (
            "modes must be taken where they are"
        )
        monitor, took = watch.monitor(), []
        for number in range(4000, 6000):
            start = time.thread_time()
            monitor.update(rows[number], None if times is None else times[number])
            took.append(time.thread_time() - start)
        say(
            f"a row of {name}, {rows.shape[1]} channels (median)",
            float(np.median(took[500:])),
            "numpy, 38 x 38 times a vector",
            product,
        )


def fleet(_: argparse.Namespace) -> None:
    """300 machines that share a model, beside 300 monitors."""
    from tisat import Watch

    rows = waves(4300, 8)
    for detector in ("prism", "linear-last", "mahalanobis"):
        watch = Watch(detector, budget="1/1000 rows").fit(rows[:4000])
        together, single = watch.fleet([f"m{i}" for i in range(300)]), watch.monitor()
        for values in rows[4000:4130]:
            together.update(dict.fromkeys(together.monitors, values))
            single.update(values)
        start = time.process_time()
        for values in rows[4130:4150]:
            together.update(dict.fromkeys(together.monitors, values))
        each = (time.process_time() - start) / 6000
        start = time.process_time()
        for values in rows[4130:4300]:
            single.update(values)
        say(f"a row in a fleet of 300, {detector}", each, "a row of one monitor", (time.process_time() - start) / 170)
        print(f"{'':<4}{1 / each:,.0f} rows a second; state of a machine {len(single.to_bytes()) / 1000:.0f} kB")


def jobs(_: argparse.Namespace) -> None:
    """Two workers beside one process: wall time and processor time, 200 machines of 1,500 x 4."""
    with tempfile.TemporaryDirectory() as folder:
        for machine in range(200):
            Path(folder, "in").mkdir(exist_ok=True)
            np.savetxt(
                f"{folder}/in/{machine}.csv",
                waves(1500, 4, machine),
                delimiter=",",
                header="a,b,c,d",
                comments="",
            )
        wall, cpu = {}, {}
        for count in (1, 2):
            command = [sys.executable, "-m", "tisat", "fit", f"{folder}/in", "--each", "--budget", "1/1000 rows"]
            start = time.perf_counter()
            cpu[count] = child([*command, "--jobs", str(count), "--out", f"{folder}/out{count}"])
            wall[count] = time.perf_counter() - start
        say("fit --each of 200 machines, --jobs 2 (wall)", wall[2], "--jobs 1 (wall)", wall[1])
        say("the same, processor time", cpu[2], "--jobs 1, processor time", cpu[1])


def metrics(_: argparse.Namespace) -> None:
    """Areas beside scikit-learn's, SPD beside average precision."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    from tisat.metrics import auc_pr, auc_roc, spd_score

    rng = np.random.default_rng(0)
    for rows in (10_000, 1_000_000):
        scores, labels = rng.normal(size=rows), (np.arange(rows) % 1000 < 20).astype(int)
        pairs = {
            "pr": partial(auc_pr, labels, scores), "roc": partial(auc_roc, labels, scores),
            "spd": partial(spd_score, labels, scores, delta_max=20),
            "AP": partial(average_precision_score, labels, scores), "ROC": partial(roc_auc_score, labels, scores),
        }  # fmt: skip
        best = best_of(pairs, rounds=4)
        say(f"auc_pr, {rows:,} rows", best["pr"], "scikit-learn", best["AP"])
        say(f"auc_roc, {rows:,} rows", best["roc"], "scikit-learn", best["ROC"])
        say(f"spd_score, {rows:,} rows", best["spd"], "scikit-learn, average precision", best["AP"])


def files(_: argparse.Namespace) -> None:
    """Reading csv and parquet beside polars, each into an array whose rows lie together, as detectors need them."""
    import polars as pl

    from tisat import Series

    with tempfile.TemporaryDirectory() as folder:
        table = pl.DataFrame({f"c{i}": column for i, column in enumerate(waves(1_000_000, 10).T)})
        table.write_csv(f"{folder}/t.csv")
        table.write_parquet(f"{folder}/t.parquet")
        best = best_of(
            {
                "csv": lambda: Series.read(f"{folder}/t.csv"), "polars csv": lambda: pl.read_csv(f"{folder}/t.csv").to_numpy(order="c"),
                "parquet": lambda: Series.read(f"{folder}/t.parquet"),
                "polars parquet": lambda: pl.read_parquet(f"{folder}/t.parquet").to_numpy(order="c"),
            }, rounds=7,
        )  # fmt: skip
        say("csv, 1M x 10, as an array", best["csv"], "polars, as an array", best["polars csv"])
        say("parquet, 1M x 10, as an array", best["parquet"], "polars, as an array", best["polars parquet"])


PARTS = {part.__name__: part for part in (first, wide, long, blocks, row, fleet, jobs, metrics, files)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ["POLARS_MAX_THREADS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    for name in given.parts or PARTS:
        PARTS[name](given)

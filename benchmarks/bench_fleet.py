"""Fit a fleet, one model each, with one worker and with two; and what the driver's memory does as machines are added.

    python benchmarks/bench_fleet.py speed --machines 200 --rows 10000 --channels 8 [--engine ray]
    python benchmarks/bench_fleet.py memory --machines 10000 --rows 200 --channels 2

``speed`` writes a partitioned Parquet data set, fits it twice into fresh folders and prints the ratio of wall times: run it on idle
cores. ``memory`` prints the driver's resident memory after each tenth of the machines.
"""

import argparse
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def make_fleet(folder, machines, rows, channels):
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = (np.datetime64("2026-01-01") + np.arange(rows) * np.timedelta64(60, "s")).astype("datetime64[us]")
    for number in range(machines):
        rng = np.random.default_rng(number)
        values = np.sin(np.arange(rows)[:, None] / (20.0 + np.arange(channels))) + 0.1 * rng.standard_normal(
            (rows, channels)
        )
        part = folder / f"id=machine-{number:05d}"
        part.mkdir(parents=True)
        table = pa.table({"time": times, **{f"c{c}": values[:, c] for c in range(channels)}})
        pq.write_table(table, part / "0.parquet", compression="none")


def fit(folder, out, options, jobs):
    from tisat.batch import FitEach, find_machines
    from tisat.batch.engines import make_engine

    out.mkdir()
    job = FitEach(options.detector, str(out), watch={"budget": "1/1000 rows"})
    machines = find_machines([folder])
    engine = make_engine(options.engine, jobs=jobs) if options.engine != "local" or jobs > 1 else None
    if engine is None:
        from tisat.batch.process_engine import Local

        engine = Local(jobs=1)
    begin, sizes = time.perf_counter(), []
    for count, row in enumerate(engine.each(job, machines, started=lambda _: None), start=1):
        assert not row["trouble"], row
        job.keep(row)
        if count % max(len(machines) // 10, 1) == 0:
            sizes.append(resident())
    return time.perf_counter() - begin, sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "memory"])
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--detector", default="linear-last")
    parser.add_argument("--engine", default="local")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp(prefix="tisat-fleet-"))
    try:
        make_fleet(folder / "data", options.machines, options.rows, options.channels)
        shape = f"{options.machines} machines x {options.rows} rows x {options.channels} channels, {options.detector}, {options.engine}"
        if options.what == "memory":
            seconds, sizes = fit(folder / "data", folder / "models", options, 2)
            print(
                f"{shape}: {seconds:.1f} s; the driver's memory after each tenth, MB: "
                + " ".join(f"{one:.0f}" for one in sizes)
            )
            return
        alone, _ = fit(folder / "data", folder / "one", options, 1)
        together, _ = fit(folder / "data", folder / "two", options, 2)
        print(
            f"{shape}: one worker {alone:.1f} s, two {together:.1f} s: {alone / together:.2f} times; load {os.getloadavg()[0]:.1f}"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

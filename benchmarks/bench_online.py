"""What one row costs online, as ratios measured side by side: a whole TiSAT update, a fleet.

    python benchmarks/bench_online.py tisat     a TiSAT monitor's update, beside the plain inference_mode forward pass
    python benchmarks/bench_online.py fleet     256 entities in one fleet, beside 256 single monitors

Every figure is processor time, the best of several rounds, the contestants taking turns, on one thread. Only the ratios
mean something.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings

import numpy as np
from rounds import best_of

from tisat.detectors import make
from tisat.errors import CalibrationWarning
from tisat.watch import Watch

CHANNELS = 38
ENTITIES = 256


def fitted_tisat():
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    values = np.sin(np.arange(1200)[:, None] / 9.0 + np.arange(CHANNELS)) + 0.1 * rng.standard_normal((1200, CHANNELS))
    return make("tisat", epochs=1, stride=20, random_state=0).fit(values), values


def tisat(options):
    import torch

    detector, values = fitted_tisat()
    network = detector.network_.eval()
    window = torch.from_numpy(values[None, : detector.window].astype(np.float32))
    monitor = detector.monitor(false_alarms="1/50 rows")
    for row in values[: detector.window + 5]:
        monitor.update(row)

    def forward():
        with torch.inference_mode():
            for _ in range(20):
                network(window)

    def update():
        for row in values[:20]:
            monitor.update(row)

    best = best_of({"forward": forward, "update": update}, rounds=options.rounds)
    print(f"{detector!r}, {CHANNELS} channels, one thread\n")
    print(f"| plain inference_mode forward pass | {1e3 * best['forward'] / 20:.3f} ms |\n|---|---|")
    print(f"| one Monitor.update, everything | {1e3 * best['update'] / 20:.3f} ms |")
    print(f"| update / forward | {best['update'] / best['forward']:.2f} |")


def fleet(options):
    detector, values = fitted_tisat()
    watch = Watch(detector, budget="1/50 rows").calibrate()
    names = [f"entity {number}" for number in range(ENTITIES)]
    together = watch.fleet(names)
    apart = {name: watch.monitor(name=name) for name in names}
    rng = np.random.default_rng(1)
    for row in values[: detector.window + 1]:
        rows = {name: row + 0.01 * rng.standard_normal(CHANNELS) for name in names}
        for name in names:  # warm both up without the network
            for monitor in (together.monitors[name], apart[name]):
                monitor.stream.window(monitor._intake._carry.step(rows[name]).values)
    rows = {name: values[500] + 0.01 * rng.standard_normal(CHANNELS) for name in names}
    best = best_of(
        {
            "fleet": lambda: together.update(rows),
            "single monitors": lambda: [apart[name].update(row) for name, row in rows.items()],
        },
        rounds=options.rounds,
    )
    print(f"{ENTITIES} entities, {detector!r}, {CHANNELS} channels, one thread\n\n| | rows/s |\n|---|---|")
    for name, seconds in best.items():
        print(f"| {name} | {ENTITIES / seconds:.0f} |")
    print(f"| ratio | {best['single monitors'] / best['fleet']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tisat", "fleet"])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        {"tisat": tisat, "fleet": fleet}[options.what](options)


if __name__ == "__main__":
    main()

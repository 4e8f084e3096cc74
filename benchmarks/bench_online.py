"""What one row costs online, as ratios measured side by side: the alarm layer, a whole TiSAT update, a fleet.

    python benchmarks/bench_online.py layer     everything but the network, beside River's HalfSpaceTrees (38 channels)
    python benchmarks/bench_online.py tisat     a TiSAT monitor's update, beside the plain inference_mode forward pass
    python benchmarks/bench_online.py fleet     256 entities in one fleet, beside 256 single monitors
    python benchmarks/bench_online.py linear --reference CHECKOUT   1,000 x 8 through a fleet of linear-last

Every figure is processor time, the best of several rounds, the contestants taking turns, on one thread. Only the ratios
mean something.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings

import numpy as np
from rounds import best_of

from tisat.alarms.rules import Scored
from tisat.detectors import Traits, make
from tisat.errors import CalibrationWarning
from tisat.watch import Watch

CHANNELS = 38
ENTITIES = 256


def residuals(length, seed):
    """Points like SMD residuals: a few shared factors, heavy tails, scaled per channel."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_t(3, size=(length, 4)) @ rng.normal(size=(4, CHANNELS))
    return 0.3 * factors + 0.3 * rng.standard_t(4, size=(length, CHANNELS))


class Recorded:
    """Stands for a detector whose network has already answered: the stream hands out recorded points."""

    def __init__(self, normal, points, *, scalar):
        self.normal_, self._recorded = normal, points
        self.traits = Traits(points_are_channels=not scalar)
        self.n_channels_, self.bounds_ = CHANNELS, np.repeat([[-np.inf], [np.inf]], CHANNELS, axis=1)
        self.channels_ = tuple(map(str, range(CHANNELS)))
        self.trained_on_ = {"period_seconds": 60.0}

    def aggregate(self, points):
        return np.mean(points**2, axis=1)

    def score_points(self, points):
        return Scored.of(points, self.aggregate(points))

    def _amounts(self, points):
        return None

    def stream(self):
        recorded = self._recorded

        class Stream:
            def __init__(self):
                self.row = 0

            def step(self, row):
                self.row = (self.row + 1) % len(recorded)
                return recorded[self.row]

        return Stream()


def layer(options):
    from river import anomaly

    normal, points = residuals(options.normal, 0), residuals(1000, 1)
    rows = residuals(500, 2)
    named = [{str(c): float(v) for c, v in enumerate(row)} for row in rows]
    trees = anomaly.HalfSpaceTrees(seed=1)
    for row in named:
        trees.learn_one(row)

    def half_space_trees():
        for row in named:
            trees.score_one(row)
            trees.learn_one(row)

    contestants = {"HalfSpaceTrees": half_space_trees}
    for name, settings in (
        ("threshold", {"rule": "threshold"}),
        ("excess", {"rule": "excess"}),
        ("paper, power", {"rule": "paper"}),
        ("paper, 1 score", {"rule": "paper", "scalar": True}),
    ):
        scalar = settings.pop("scalar", False)
        detector = Recorded(*((a[:, :1] if scalar else a) for a in (normal, points)), scalar=scalar)
        monitor = Watch(detector, budget="1/500 rows", method="bootstrap", **settings).monitor()

        def update(monitor=monitor):
            for row in rows:
                monitor.update(row, time=60.0 * (monitor.rows + 1))

        update()
        contestants[name] = update
    best = best_of(contestants, rounds=options.rounds)
    base = best["HalfSpaceTrees"]
    print(f"38 channels, {len(normal)} normal points; one row, everything but the network\n")
    print("| | us | of HalfSpaceTrees |\n|---|---|---|")
    for name, seconds in best.items():
        print(f"| {name} | {1e6 * seconds / len(rows):.1f} | {seconds / base:.2f} |")


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


# Both versions in processes of their own: rows of 1,000 entities x 8 channels through a fleet of linear-last.
LINEAR_FLEET = """
import time, warnings, numpy as np
warnings.simplefilter("ignore")
from tisat.alarms.rules import Scored
from tisat.detectors import Traits, make
rng = np.random.default_rng(0)
detector = make("linear-last").fit(rng.standard_normal((3000, 8)).cumsum(axis=0))
names = [str(n) for n in range(1000)]
try:
    from tisat.watch import Watch
    fleet = Watch(detector, budget="1/500 rows").fleet(names)
except ImportError:
    from tisat.online.fleet import Fleet
    fleet = Fleet(detector, entities=names, false_alarms="1/500 rows")
rows = rng.standard_normal((130, 1000, 8)).cumsum(axis=0)
for row in rows[:105]:
    fleet.update(dict(zip(names, row)))
best = 1e9
for row in rows[105:]:
    start = time.process_time()
    fleet.update(dict(zip(names, row)))
    best = min(best, time.process_time() - start)
print(best)
"""


def linear(options):
    import subprocess
    import sys
    from pathlib import Path

    trees = {"this tree": Path(__file__).parents[1]} | ({"reference": options.reference} if options.reference else {})
    best = dict.fromkeys(trees, float("inf"))
    for _ in range(3):
        for name, tree in trees.items():
            environment = {**os.environ, "PYTHONPATH": str(Path(tree) / "src")}
            told = subprocess.run(
                [sys.executable, "-c", LINEAR_FLEET], env=environment, capture_output=True, check=True
            )
            best[name] = min(best[name], float(told.stdout))
    print("1,000 entities x 8 channels, linear-last, one thread\n\n| | rows per processor second |\n|---|---|")
    for name, seconds in best.items():
        print(f"| {name} | {1000 / seconds:.0f} |")
    if "reference" in best:
        print(f"| ratio | {best['reference'] / best['this tree']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["layer", "tisat", "fleet", "linear"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--normal", type=int, default=5000)
    parser.add_argument("--reference", help="for linear: a checkout of an older version, measured side by side")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        {"layer": layer, "tisat": tisat, "fleet": fleet, "linear": linear}[options.what](options)


if __name__ == "__main__":
    main()

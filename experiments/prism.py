"""The default detector, measured: six real sets, generated plants, what each view adds, what it costs.

    TISAT_DATA=... python experiments/prism.py score --out /tmp/prism        scores of every entity, kept (20 minutes on one core)
    TISAT_DATA=... python experiments/prism.py table --out /tmp/prism        pooled / mean SPD of each set under the excess rule
    TISAT_DATA=... python experiments/prism.py views --out /tmp/prism        the same without each view, with paired intervals
    TISAT_DATA=... python experiments/prism.py rule --out /tmp/prism         the same with other options of the rule
    python experiments/prism.py plants --seeds 9200:9212                     faults found at 1/day, calibrated from training alone
    python experiments/prism.py cost                                         CPU seconds of 28,000 x 38, milliseconds a streamed row

SPD at delta_max 100. SMD is the 12 machines of ``data/``, MSL and SMAP are the telemetry value, ASD, JumpStarter2 and NAB are
folders of npz files (``train``, ``test``, ``labels``).
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from tisat import Watch, datasets
from tisat.benchmark.curves import NEVER, EntityCounts, counts_of_scores
from tisat.benchmark.statistics import interval_of, resampled_means, resampling_weights
from tisat.datasets.synthetic import DAY, KINDS, make_plant
from tisat.detectors import make
from tisat.detectors.views import VIEWS
from tisat.metrics.windows import windows_of
from tisat.sequential.cusum import CompressedSum
from tisat.sequential.rules import Scored, make_rule

SETS = ("smd", "msl", "smap", "ASD", "JumpStarter2", "NAB")
DELTA_MAX = 100
GRACE = 120  # instants after a fault in which an alarm is not counted as false


def entities(which: str) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Name, training values, test values and labels of every entity of a set."""
    if which in ("smd", "msl", "smap"):
        for one in datasets.load(which, telemetry_only=None if which == "smd" else True):
            yield one.name, one.train.values, one.test.values, one.test.labels
        return
    for file in sorted((Path(os.environ["TISAT_DATA"]) / which).glob("*.npz")):
        with np.load(file) as arrays:
            yield (
                file.stem,
                arrays["train"].astype(float),
                arrays["test"].astype(float),
                arrays["labels"].astype(bool),
            )


def score(out: Path, sets: list[str]) -> None:
    """Fit prism on every entity and keep its views of nominal rows and of the test."""
    out.mkdir(parents=True, exist_ok=True)
    for which in sets:
        start = time.process_time()
        for name, train, test, labels in entities(which):
            file = out / f"{which}__{name}.npz"
            if file.exists():
                continue
            detector = make("prism").fit(train)
            points = detector.points(test)
            np.savez(
                file,
                nominal=detector.views(detector.nominal_),
                nominal_scores=detector.aggregate(detector.nominal_),
                views=detector.views(points),
                scores=detector.aggregate(points),
                labels=labels,
            )
        print(f"{which}: {time.process_time() - start:.0f} s of CPU", flush=True)


@cache
def evidence(file: Path, options: tuple[tuple[str, float], ...]) -> np.ndarray:
    """The evidence ``(T, V)`` of one entity: each view has its own reference, so views can be left out afterwards."""
    rule = make_rule("excess", **dict(options))
    with np.load(file) as arrays:
        nominal = Scored.of(arrays["nominal_scores"], views=arrays["nominal"])
        test = Scored.of(arrays["scores"], views=arrays["views"])
    return rule.fit(nominal).evidence(test)


def counts(out: Path, which: str, columns: list[int], **options: float) -> EntityCounts:
    """The counts of a set under the excess rule, from some of the views."""
    files = sorted(out.glob(f"{which}__*.npz"))
    labels = [np.load(file)["labels"].astype(bool) for file in files]
    rule = make_rule("excess", **options)
    statistics = []
    for file in files:
        total = CompressedSum(threshold=NEVER, length=rule.length, hold=rule.hold, unit=rule.unit, views=len(columns))
        some = evidence(file, tuple(options.items()))[:, columns]
        statistics.append(total.run(some[:, 0] if len(columns) == 1 else some).statistic)
    return counts_of_scores(statistics, [windows_of(one, DELTA_MAX) for one in labels])


def row(label: str, found: dict[str, EntityCounts]) -> None:
    cells = [f"{one.pooled()[0]:.3f}/{np.nanmean(one.each()):.3f}" for one in found.values()]
    average = np.mean([[one.pooled()[0], np.nanmean(one.each())] for one in found.values()])
    print(f"| {label} | " + " | ".join(cells) + f" | {average:.4f} |", flush=True)


def header(sets: list[str]) -> None:
    print("| | " + " | ".join(sets) + " | mean |\n|---" + "|---" * (len(sets) + 1) + "|")


def table(out: Path, sets: list[str]) -> dict[str, EntityCounts]:
    """Pooled / mean SPD of all views together."""
    header(sets)
    every = {which: counts(out, which, list(range(len(VIEWS)))) for which in sets}
    row("prism, excess", every)
    return every


def views(out: Path, sets: list[str]) -> None:
    """What is lost without each view, and what each has alone; differences with 95 % intervals over entities."""
    every = table(out, sets)
    names = list(VIEWS)
    differences = []
    for v, name in enumerate(names):
        rest = [i for i in range(len(names)) if i != v]
        without = {which: counts(out, which, rest) for which in sets}
        row(f"without {name}", without)
        for which in sets:
            weights = resampling_weights(len(every[which].n_events))
            pooled = every[which].pooled()[0] - without[which].pooled()[0]
            mean = np.nanmean(every[which].each()) - np.nanmean(without[which].each())
            a = interval_of(pooled, every[which].pooled(weights) - without[which].pooled(weights))
            b = interval_of(
                float(mean),
                resampled_means(every[which].each(), weights) - resampled_means(without[which].each(), weights),
            )
            differences.append((name, which, a, b))
    for v, name in enumerate(names):
        row(f"{name} alone", {which: counts(out, which, [v]) for which in sets})
    print("\n| what a view adds | set | pooled | mean |\n|---|---|---|---|")
    for name, which, a, b in differences:
        print(f"| {name} | {which} | {a} | {b} |")


def rule(out: Path, sets: list[str]) -> None:
    """Other options of the excess rule."""
    header(sets)
    everything = list(range(len(VIEWS)))
    for options in ({}, {"enter": 10, "lasting": 200}, {"enter": 30, "lasting": 200}, {"enter": 100, "lasting": 200}):
        row(str(options or "default"), {which: counts(out, which, everything, **options) for which in sets})


def plants(seeds: range, detector: str, **options: float) -> None:
    """Faults found in generated plants at one false alarm a day; the threshold comes from training alone."""
    found: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    false = rows = 0
    for seed in seeds:
        plant = make_plant(random_state=seed)
        alarms = (
            Watch(detector, budget="1/day", rule=make_rule("excess", **options)).fit(plant.train).alarms(plant.test)
        )
        near = np.zeros(len(plant.test), dtype=bool)
        for fault in plant.faults:
            found[fault.kind].append(bool(alarms.active[fault.start : fault.stop + 20].any()))
            near[fault.start : fault.stop + GRACE] = True
        false += sum(not near[alarm.raised] for alarm in alarms)
        rows += int((~near).sum())
    print(f"{detector}: " + ", ".join(f"{kind} {sum(hits)} of {len(hits)}" for kind, hits in found.items()))
    print(f"false alarms a day: {false / (rows / DAY):.2f} ({false} in {rows} rows; budget 1)")


def cost() -> None:
    """CPU of fitting and scoring 28,000 x 38 on one core, and of one streamed row."""
    rng = np.random.default_rng(0)
    values = 0.01 * np.cumsum(rng.standard_normal((56_000, 38)), axis=0) + rng.standard_normal((56_000, 38))
    make("prism").fit(values[:1000]).decision_function(values[:1000])  # compiled before the clock starts
    for label, holdout in (("cross-fitted", None), ("without cross-fitting", 0.2)):
        start = time.process_time()
        detector = make("prism").fit(values[:28_000], holdout=holdout)
        middle = time.process_time()
        detector.decision_function(values[28_000:])
        print(f"{label}: fit {middle - start:.1f} s, score {time.process_time() - middle:.1f} s")
    stream = detector._stream()
    for one in values[:200]:
        stream.push(one)
    start = time.process_time()
    for one in values[200:1200]:
        stream.push(one)
    print(f"a streamed row: {time.process_time() - start:.2f} ms")  # 1000 rows: seconds are milliseconds a row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("score", "table", "views", "rule", "plants", "cost"))
    parser.add_argument("--out", type=Path, default=Path("prism-scores"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", default="9200:9212")
    parser.add_argument("--detector", default="prism")
    parser.add_argument("--set", action="append", default=[], help="plants: an option of the excess rule, as enter=30.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = given.sets.split(",")
    if given.what == "plants":
        first, last = map(int, given.seeds.split(":"))
        options = {name: int(value) for name, _, value in (one.partition("=") for one in given.set)}
        plants(range(first, last), given.detector, **options)
    elif given.what == "cost":
        cost()
    else:
        {"score": score, "table": table, "views": views, "rule": rule}[given.what](given.out, sets)


if __name__ == "__main__":
    main()

"""Is the budget kept, is it used, and what is found? Real sets with their test labels, and plants nobody has seen.

    python experiments/budgets.py run --data DIR --out budgets.jsonl [--sets ASD,smd] [--detectors linear-last,mahalanobis]
    python experiments/budgets.py plants --out budgets.jsonl [--weeks 2,16]
    python experiments/budgets.py table budgets.jsonl

Each line of the file is one entity and one detector; what is there is not run again. Per budget: the threshold, the alarms
raised outside events and their windows (100 instants), the instants there, the events found within their window, and what an
oracle finds: the best threshold for this entity's own test labels that stays within the same allowance. No calibration can
promise the oracle's; the distance to it is what is left to gain.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tisat.datasets import load
from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat.errors import CalibrationWarning, SeriesError
from tisat.events import events_from_labels
from tisat.sequential.calibration import NominalEvidence
from tisat.sequential.rules import Scored, make_rule
from tisat.series import Series

ARRAYS = ("ASD", "JumpStarter2", "NAB")  # folders of npz files with train, test, labels
SETS = ("smd", "msl", "smap", *ARRAYS)
DETECTORS = ("linear-last", "mahalanobis")
PERIODS = (1000, 10_000)
PLANT_PERIODS = {"1/day": 1440, "1/week": 10_080}
WINDOW = 100
WEEK = 10_080


def entities(name: str, data: Path) -> Iterator[tuple[str, Series, Series]]:
    if name in ARRAYS:
        for file in sorted((data / name).glob("*.npz")):
            arrays = np.load(file)
            yield file.stem, Series(arrays["train"]), Series(arrays["test"], labels=arrays["labels"].astype(int))
        return
    for entity in load(name, data):
        yield entity.name, entity.train, entity.test


def raises(statistic: np.ndarray, threshold: float) -> np.ndarray:
    active = np.nan_to_num(statistic, nan=-np.inf) >= threshold
    return active & ~np.append(False, active[:-1])


def counts(statistic: np.ndarray, events: Any, outside: np.ndarray, threshold: float) -> tuple[int, int]:
    """False alarms and events found within their window."""
    active = np.nan_to_num(statistic, nan=-np.inf) >= threshold
    found = sum(bool(active[a : a + WINDOW].any()) for a, _ in events)
    return int((raises(statistic, threshold) & outside).sum()), found


def oracle(statistic: np.ndarray, events: Any, outside: np.ndarray, allowed: float) -> int:
    levels = np.unique(statistic[~np.isnan(statistic)])[::-1]
    best = 0
    for level in levels[:: max(1, len(levels) // 500)]:
        if level <= 0:
            break
        false, found = counts(statistic, events, outside, float(level))
        if false <= allowed:
            best = max(best, found)
    return best


def fitted(name: str, train: Series, rule: str) -> tuple[Any, Any, NominalEvidence]:
    detector = make(name).fit(train)
    made = make_rule(rule)
    nominal = Scored(detector.nominal_, detector.aggregate(detector.nominal_), detector.views(detector.nominal_))
    return detector, made, NominalEvidence(made, nominal, breaks=detector.nominal_breaks_)


def statistic_of(detector: Any, rule: Any, series: Series) -> np.ndarray:
    points = detector.points(series)
    scored = Scored(points, detector.aggregate(points), detector.views(points))
    return np.asarray(rule.accumulate(rule.evidence(scored), threshold=1e300).statistic)


def one_entity(detector_name: str, rule: str, train: Series, test: Series) -> dict[str, Any]:
    detector, made, known = fitted(detector_name, train, rule)
    statistic = statistic_of(detector, made, test)
    events = events_from_labels(np.asarray(test.labels))
    outside = ~np.isnan(statistic)
    for start, stop in events:
        outside[start : max(stop, start + WINDOW)] = False
    row: dict[str, Any] = {"nominal": known.length, "outside": int(outside.sum()), "events": len(events)}
    for period in PERIODS:
        best = oracle(statistic, events, outside, row["outside"] / period)
        for strict in (False, True):
            threshold = known.calibrate(1 / period, strict=strict).threshold
            false, found = counts(statistic, events, outside, threshold)
            row[f"{period}{'s' * strict}"] = {"h": threshold, "false": false, "found": found, "oracle": best}
    return row


def one_plant(detector_name: str, rule: str, weeks: int, seed: int) -> dict[str, Any]:
    plant = make_plant(n_train=weeks * WEEK, n_test=4 * WEEK, n_faults=0, random_state=1000 + seed)
    detector, made, known = fitted(detector_name, plant.train, rule)
    statistic = statistic_of(detector, made, plant.test)
    row: dict[str, Any] = {"nominal": known.length, "outside": int((~np.isnan(statistic)).sum())}
    for name, period in PLANT_PERIODS.items():
        for strict in (False, True):
            threshold = known.calibrate(1 / period, strict=strict).threshold
            row[name + "s" * strict] = {"h": threshold, "false": int(raises(statistic, threshold).sum())}
    return row


def append(out: Path, key: dict[str, Any], work: Any) -> None:
    done = {line.split('"nominal"')[0] for line in out.read_text().splitlines()} if out.exists() else set()
    text = json.dumps(key)[:-1] + ", "
    if text in done:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        try:
            row = work()
        except SeriesError as error:
            row = {"nominal": 0, "skipped": str(error)}
    with out.open("a") as opened:
        opened.write(json.dumps({**key, **row}) + "\n")
    print(key, flush=True)


def interval(values: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """95 % of a ratio of sums, resampling entities."""
    places = rng.integers(0, len(values), (1000, len(values)))
    ratio = values[places].sum(axis=1) / np.maximum(weights[places].sum(axis=1), 1e-12)
    low, high = np.quantile(ratio, [0.025, 0.975])
    return float(low), float(high)


def table(rows: list[dict[str, Any]]) -> None:
    from scipy.stats import poisson

    rng = np.random.default_rng(0)
    rows = [row for row in rows if "skipped" not in row]
    print(
        "| set | detector | rule | budget | entities | false / allowed | within 3x | found | oracle | found / oracle [95 %] |\n|"
        + "---|" * 10
    )
    groups = sorted({(r["set"], r["detector"], r["rule"]) for r in rows if r["set"] != "plants"})
    for group in groups:
        mine = [r for r in rows if (r["set"], r["detector"], r["rule"]) == group]
        for period in PERIODS:
            for key in (str(period), f"{period}s"):
                cells = [r[key] for r in mine]
                allowed = np.array([r["outside"] / period for r in mine])
                false = np.array([c["false"] for c in cells])
                found, best = (np.array([c[k] for c in cells]) for k in ("found", "oracle"))
                events = sum(r["events"] for r in mine)
                low, high = interval(found, best, rng)
                print(
                    f"| {' | '.join(group)} | 1/{period}{' strict' * key.endswith('s')} | {len(mine)} | {false.sum() / allowed.sum():.2f} | "
                    f"{np.mean(false <= 3 * allowed):.0%} | {found.sum() / events:.2f} | {best.sum() / events:.2f} | "
                    f"{found.sum() / max(best.sum(), 1):.2f} [{low:.2f}, {high:.2f}] |"
                )
    print(
        "\n| plants never seen | detector | rule | budget | plants | realised / promised | kept | significantly over |\n|"
        + "---|" * 8
    )
    for group in sorted({(r["weeks"], r["detector"], r["rule"]) for r in rows if r["set"] == "plants"}):
        mine = [r for r in rows if r["set"] == "plants" and (r["weeks"], r["detector"], r["rule"]) == group]
        for name, period in PLANT_PERIODS.items():
            for key in (name, name + "s"):
                false = np.array([r[key]["false"] for r in mine])
                allowed = np.array([r["outside"] / period for r in mine])
                over = int((poisson.sf(false - 1, allowed) < 0.025).sum())
                print(
                    f"| {group[0]} weeks | {group[1]} | {group[2]} | {name}{' strict' * key.endswith('s')} | {len(mine)} | "
                    f"{false.sum() / allowed.sum():.2f} | {int((false <= allowed).sum())} | {over} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "plants", "table"])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("budgets.jsonl"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--detectors", default=",".join(DETECTORS))
    parser.add_argument("--rule", default="excess")
    parser.add_argument("--weeks", default="2,16")
    parser.add_argument("--plants", type=int, default=10)
    options = parser.parse_args()
    if options.what == "table":
        table([json.loads(line) for line in (options.file or options.out).read_text().splitlines()])
        return
    for detector in options.detectors.split(","):
        key = {"detector": detector, "rule": options.rule}
        if options.what == "plants":
            for weeks in map(int, options.weeks.split(",")):
                for seed in range(options.plants):
                    where = {"set": "plants", "weeks": weeks, "entity": seed, **key}
                    append(options.out, where, lambda w=weeks, s=seed, d=detector: one_plant(d, options.rule, w, s))
            continue
        for name in options.sets.split(","):
            for entity, train, test in entities(name, options.data):
                where = {"set": name, "entity": entity, **key}
                append(options.out, where, lambda a=train, b=test, d=detector: one_entity(d, options.rule, a, b))


if __name__ == "__main__":
    main()

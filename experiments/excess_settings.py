"""The excess rule's settings, one changed at a time: SPD on real sets with intervals, and masking on plants.

    TISAT_DATA=... python experiments/kept.py --out kept --detectors linear-last,mahalanobis,prism
    python experiments/excess_settings.py --kept kept [--sets ASD,NAB,msl,smap,JumpStarter2,smd] [--detectors linear-last]

Each line is the difference to the defaults: per-entity SPD (delta_max 100) averaged over sets with its 95 % interval (entities
resampled within sets), pooled SPD averaged over sets, and, on 12 plants with 6 kinds of fault, the share of faults found alone
at the third and sixth place in two days that are still found after two and five copies of themselves, at 1 false alarm a day.
Test labels are used to measure. ``enter=10**9,lasting=10**6`` is the reference of 0.1, into which every score entered.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from kept import kept as kept_scores

from tisat.alarms.episodes import episode_levels
from tisat.alarms.rules import Scored, make_rule
from tisat.datasets.synthetic import KINDS, make_plant
from tisat.detectors import make
from tisat.metrics import spd_score

CHANGES: tuple[dict[str, Any], ...] = (
    {}, {"enter": 10**9, "lasting": 10**6}, {"enter": 1}, {"enter": 10}, {"lasting": 150}, {"lasting": 300}, {"lasting": 500}, {"hold": 20}, {"hold": 50},
    {"length": 10}, {"length": 40}, {"clip": 3.0}, {"quantile": 0.99}, {"quantile": 0.97}, {"unit": 0.05}, {"unit": 1.0},
)  # fmt: skip
FAULTS = ("level shift", "stuck sensor", "changed frequency", "contextual", "broken correlation", "spike")
DAYS, DAY = 2880, 1440


def scored(detector: Any, rows: Any) -> Scored:
    points = detector.points(rows)
    return detector.score_points(points)


def normal(detector: Any) -> Scored:
    points = detector.normal_
    return detector.score_points(points)


def statistic(change: dict[str, Any], known: Scored, rows: Scored) -> np.ndarray:
    rule = make_rule("excess", **change).fit(known)
    return np.asarray(rule.accumulate(rule.evidence(rows), threshold=1e300).statistic)


def masked(name: str) -> list[tuple[Scored, Scored, list[Scored], list[int], int]]:
    """For each plant and kind: normal, clean rows, a fault alone at place 3, at place 6, and all six; where they start."""
    made = []
    for seed in range(80, 92):
        plant = make_plant(n_train=6000, n_test=20_000, n_channels=6, n_faults=0, random_state=seed)
        detector = make(name).fit(plant.train)
        values = np.array(plant.test.values)
        step = np.diff(plant.train.values, axis=0).std(axis=0)
        clean = scored(detector, values[6000:])
        for number, kind in enumerate(FAULTS):
            rng = np.random.default_rng(seed * 100 + number)
            maker, (short, long) = KINDS[kind]
            span = min(int(rng.integers(short, long + 1)), 120)
            hit = rng.choice(6, size=int(rng.integers(1, 3)), replace=False)
            starts = [1700 + k * (span + 120) for k in range(6)]
            runs = []
            for copies in ((2,), (5,), range(6)):
                rows = values[2000 : 3000 + DAYS].copy()
                for k in copies:
                    same = np.random.default_rng(seed)  # every copy alike
                    for c in hit:
                        here = slice(starts[k], starts[k] + span)
                        size = 8 * step[c] * (4 if kind == "spike" else 1)
                        rows[here, c] = maker(rows[here, c], values[:, c], 2000 + starts[k], size, same)
                runs.append(scored(detector, rows))
            made.append((normal(detector), clean, runs, starts, max(span, 30)))
    return made


def kept(change: dict[str, Any], made: list[Any]) -> tuple[float, float]:
    alone, still = np.zeros(2), np.zeros(2)
    for known, clean, runs, starts, span in made:
        quiet = statistic(change, known, clean)
        levels = episode_levels(quiet, most=len(quiet) // DAY + 1)
        threshold = np.nextafter(levels[len(quiet) // DAY], np.inf) if len(levels) > len(quiet) // DAY else 1e-9
        seen = [statistic(change, known, run) >= threshold for run in runs]
        for i, place in enumerate((2, 5)):
            here = slice(starts[place], starts[place] + span)
            if seen[i][here].any():
                alone[i] += 1
                still[i] += bool(seen[2][here].any())
    return tuple(still / np.maximum(alone, 1))


def main() -> None:
    """Print one table a detector."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=Path, default=Path("kept"))
    parser.add_argument("--sets", default="ASD,NAB,msl,smap,JumpStarter2,smd")
    parser.add_argument("--detectors", default="linear-last")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for name in options.detectors.split(","):
        data: dict[str, list[Any]] = {}
        for each in options.sets.split(","):
            data[each] = [
                (one.normal, one.test, one.labels.astype(int)) for one in kept_scores(options.kept, name, each)
            ]
        plants = masked(name)
        base: dict[str, Any] = {}
        print(
            f"\n{name}, {', '.join(data)}\n\n| change | mean SPD [95 %] | pooled SPD | kept after 2 / 5 |\n|---|---|---|---|",
            flush=True,
        )
        for change in CHANGES:
            means, draws, pooled = [], [], []
            for each, rows in data.items():
                score = spd_score([y for *_, y in rows], [statistic(change, a, b) for a, b, _ in rows], delta_max=100)
                single = np.array(score.per_series)
                base.setdefault(each, (float(score), single))
                difference = single - base[each][1] if change else single
                difference = difference[~np.isnan(difference)]
                means.append(difference.mean())
                places = rng.integers(0, len(difference), (2000, len(difference)))
                draws.append(difference[places].mean(axis=1))
                pooled.append(float(score) - base[each][0] * bool(change))
            low, high = np.quantile(np.mean(draws, axis=0), [0.025, 0.975])
            after = kept(change, plants)
            label = ", ".join(f"{key}={value:g}" for key, value in change.items()) or "defaults"
            sign = "+" if change else ""
            print(
                f"| {label} | {np.mean(means):{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}] | {np.mean(pooled):{sign}.3f} | "
                f"{after[0]:.2f} / {after[1]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

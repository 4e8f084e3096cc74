"""Choices made without any test split: faults injected into the tails of training splits, and what finds them.

Every entity's training split is cut at 60 %: fit on the first part, put faults of seven kinds into the rest
(:func:`tisat.datasets.synthetic.inject_faults`), score it, and compare SPD at delta_max 100, pooled and mean over entities.
No test value and no label of any data set is read.

    TISAT_DATA=... python experiments/injected_faults.py rules       the excess rule: where its past starts, where it clips
    TISAT_DATA=... python experiments/injected_faults.py units       the level scores are divided by before they are pooled
    TISAT_DATA=... python experiments/injected_faults.py lookahead   TiSAT's second forecast (its linear start: no training)
    TISAT_DATA=... python experiments/injected_faults.py training    TiSAT's training (a few entities; minutes)

The tables are in ``docs/log.md``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable

import numpy as np

from tisat.alarms.rules import AlarmRule, make_rule
from tisat.datasets.synthetic import inject_faults, make_plant
from tisat.detectors import make
from tisat.metrics import spd_score
from tisat.series import Series
from tisat_bench import datasets
from tisat_bench.rule_counts import NEVER

HEAD = 0.6  # of a training split is fitted on
SHORTEST = 200  # rows a tail must have
TIME_STEPS_A_FAULT = {"smd": 1200, "msl": 800, "smap": 800}
DRAWS = {"smd": 2, "msl": 4, "smap": 4}
DELTA_MAX = 100
SIMPLE = ("last-value", "linear-last", "linear-mean", "mahalanobis")
SIZES = {"smd": (4.0, 30.0)}  # of many channels a third is hit; smaller faults are found by nobody
UNITS: dict[str, Callable[[np.ndarray], float]] = {
    "q99, at least 1e-9": lambda n: max(np.quantile(n, 0.99), 1e-9),
    "q99, at least 0.01": lambda n: max(np.quantile(n, 0.99), 0.01),
    "q99, at least 1": lambda n: max(np.quantile(n, 0.99), 1.0),
    "q99 or the mean, 1 where both are 0": lambda n: (
        max(np.quantile(n, 0.99), n.mean(), 1e-9) if n.max() > 1e-9 else 1.0
    ),
    "q99 or the mean, at least 0.01": lambda n: max(np.quantile(n, 0.99), n.mean(), 0.01),
    "q99 or 1 % of the maximum, at least 0.01": lambda n: max(np.quantile(n, 0.99), 0.01 * n.max(), 0.01),
}

Case = tuple[str, Series, list[Series]]  # entity, fitted on, the tail with each draw of faults
Scored = list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # scores, normal scores, labels


def cases(which: str, only: Iterable[str] = ()) -> list[Case]:
    """The entities of a data set whose training split is long enough."""
    found = []
    for entity in datasets.load(which, telemetry_only=None if which == "smd" else True):
        train = entity.train.without_labels()
        cut = int(HEAD * len(train))
        if len(train) - cut < SHORTEST or (only and entity.name not in only):
            continue
        tail = train[cut:]
        tails = [
            inject_faults(
                tail,
                n_faults=max(1, len(tail) // TIME_STEPS_A_FAULT[which]),
                size=SIZES.get(which, (1.0, 6.0)),
                random_state=draw,
            )[0]
            for draw in range(DRAWS[which])
        ]
        found.append((entity.name, train[:cut], tails))
    return found


def plants() -> list[Case]:
    """Generated plants, whose faults are of the same kinds."""
    made = [make_plant(random_state=seed) for seed in range(40, 52)]
    return [(f"plant {number}", plant.train, [plant.test]) for number, plant in enumerate(made)]


def scored(data: list[Case], detector: str, **params: object) -> Scored:
    """Scores of every tail, with the normal scores of its entity."""
    rows: Scored = []
    for _, head, tails in data:
        fitted = make(detector, **params).fit(head, holdout=0.0)
        normal = fitted.aggregate(fitted.normal_)
        rows += [(fitted.decision_function(tail.without_labels()), normal, tail.labels) for tail in tails]
    return rows


def figure(rows: Scored, statistic: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> str:
    """Pooled and mean SPD of a statistic made from scores and normal scores."""
    made = [statistic(scores, normal) for scores, normal, _ in rows]
    labels = [one for _, _, one in rows]
    each = [spd_score(y, s, delta_max=DELTA_MAX) for y, s in zip(labels, made, strict=True) if y.any()]
    return f"{spd_score(labels, made, delta_max=DELTA_MAX):.3f} / {np.mean(each):.3f}"


def over(rule: AlarmRule) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The statistic of a rule whose alarms do not feed back."""

    def statistic(scores: np.ndarray, normal: np.ndarray) -> np.ndarray:
        rule.fit(normal)
        return rule.accumulate(rule.evidence(scores), threshold=NEVER).statistic

    return statistic


def in_units(unit: Callable[[np.ndarray], float]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda scores, normal: scores / unit(normal[~np.isnan(normal)])


def rules(which: str, data: list[Case]) -> None:
    found = {name: scored(data, name) for name in SIMPLE}
    print(f"\n| excess rule, {which} | " + " | ".join(SIMPLE) + " |\n|---" + "|---" * len(SIMPLE) + "|")
    for clip in (3.0, 10.0, 30.0, 1e6):
        for warm in (100, 300):
            row = [figure(found[name], over(make_rule("excess", clip=clip, warm=warm))) for name in SIMPLE]
            print(f"| clip {clip:g}, warm {warm} | " + " | ".join(row) + " |", flush=True)
    row = [figure(found[name], over(make_rule("excess", window=2, lag=0, clip=1.0))) for name in SIMPLE]
    print("| a reference that does not move | " + " | ".join(row) + " |", flush=True)


def units(which: str, data: list[Case]) -> None:
    found = {name: scored(data, name) for name in SIMPLE}
    print(f"\n| unit, plain threshold, {which} | " + " | ".join(SIMPLE) + " |\n|---" + "|---" * len(SIMPLE) + "|")
    for name, unit in UNITS.items():
        row = [figure(found[detector], in_units(unit)) for detector in SIMPLE]
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


def settings(which: str, data: list[Case], named: dict[str, dict[str, object]]) -> None:
    print(f"\n| TiSAT, {which} | plain threshold | excess |\n|---|---|---|")
    unit = UNITS["q99 or the mean, 1 where both are 0"]
    for name, params in named.items():
        rows = scored(data, "tisat", **params)
        print(f"| {name} | {figure(rows, in_units(unit))} | {figure(rows, over(make_rule('excess')))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("rules", "units", "lookahead", "training"))
    parser.add_argument("--sets", default="msl,smap,smd", help="lookahead also takes plants.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    for which in options.sets.split(","):
        if options.what == "training":
            few = {"smd": 2, "msl": 8, "smap": 12}[which]
            data = cases(which)
            data = data[:: max(1, len(data) // few)]
            settings(which, data, {f"{n} epochs": {"epochs": n} for n in (0, 4, 8)})
        elif options.what == "lookahead":
            settings(
                which,
                plants() if which == "plants" else cases(which),
                {f"lookahead {n}": {"epochs": 0, "lookahead": n} for n in (1, 5, 20)},
            )
        else:
            {"rules": rules, "units": units}[options.what](which, cases(which))


if __name__ == "__main__":
    main()

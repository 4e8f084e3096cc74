"""Is the budget kept, is it used, and what is found? Real sets with their test labels, plants nobody has seen, and the pump.

    TISAT_DATA=... python experiments/kept.py --out kept --detectors prism,linear-last,mahalanobis,tisat --plants 2,16
    python experiments/budgets.py table --kept kept --detectors prism,linear-last,mahalanobis
    python experiments/budgets.py goals --kept kept --detectors prism
    python experiments/budgets.py ladder [--detectors prism,pca]
    python experiments/budgets.py silent [--detectors prism,mahalanobis]

``table`` starts from kept scores and calibrates as a watch does. Per budget: the alarms raised outside events and their windows
(100 rows) over what the budget allows there, the events found within their window, and what an oracle finds: the best
threshold for this entity's own test labels that stays within the same allowance. No calibration can promise the oracle's; the
distance to it is what is left to gain. ``ladder``: thresholds of a clean week of the pump for budgets from 1/8h to 1/year, with
and without an on/off valve, which of the three faults are found at each, and the false alarms of two days. ``silent``: two days
of normal plants with one channel dead, each in turn, beside the same days with all of them.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from kept import SETS, KeptScores, kept
from scipy.stats import poisson

from tisat import registry
from tisat.alarms.calibration import NormalEvidence
from tisat.alarms.rules import make_rule
from tisat.datasets.synthetic import DAY, make_plant, make_pump
from tisat.detectors import make
from tisat.events import events_from_labels
from tisat.series import Series
from tisat.watch.watch import Watch

DETECTORS = "prism,linear-last,mahalanobis"
PERIODS = {"1/1000": 1000, "1/10000": 10_000}
PLANT_PERIODS = {"1/day": 1440, "1/week": 10_080}
LADDER = ("1/8h", "1/day", "2/week", "1/week", "1/month", "1/year")
WINDOW = 100
GRACE = 110  # a forecaster's window remembers a fault
FIXED = " fixed"  # the threshold stays
WAYS = ("", FIXED)
PARTIAL = "prism,mahalanobis,linear-last,ewma,last-value"
SILENT, WARM = range(9900, 9912), 600  # plants used nowhere else; rows before the channel dies


def counts(statistic: np.ndarray, events: Any, outside: np.ndarray, threshold: float) -> tuple[int, int]:
    """False alarms and events found within their window."""
    return counted(np.nan_to_num(statistic, nan=-np.inf) >= threshold, events, outside)


def counted(active: np.ndarray, events: Any, outside: np.ndarray) -> tuple[int, int]:
    raised = active & ~np.append(False, active[:-1])
    return int((raised & outside).sum()), sum(bool(active[a : a + WINDOW].any()) for a, _ in events)


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


def one_entity(entity: KeptScores, rule: str, periods: dict[str, int], *, with_oracle: bool) -> dict[str, Any]:
    made = make_rule(rule)
    known = NormalEvidence(made, entity.normal, breaks=entity.breaks.tolist())
    statistic = np.asarray(made.accumulate(made.evidence(entity.test), threshold=1e300).statistic)
    events = events_from_labels(entity.labels.astype(int))
    outside = ~np.isnan(statistic)
    for start, stop in events:
        outside[start : max(stop, start + WINDOW)] = False
    found: dict[str, Any] = {"outside": int(outside.sum()), "events": len(events)}
    for name, period in periods.items():
        best = oracle(statistic, events, outside, found["outside"] / period) if with_oracle else 0
        for way in WAYS:
            made_for = known.calibrate(1 / period, control=FIXED not in way)
            run = made.start(threshold=made_for.threshold, control=made_for.control)
            false, hits = counted(run.run(entity.test)[1].active, events, outside)
            found[name + way] = {"h": made_for.threshold, "false": false, "found": hits, "oracle": best}
    return found


def interval(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """95 % of a ratio of sums, resampling entities."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, len(values), (1000, len(values)))
    low, high = np.quantile(values[places].sum(axis=1) / np.maximum(weights[places].sum(axis=1), 1e-12), [0.025, 0.975])
    return float(low), float(high)


def table(folder: Path, detectors: list[str], sets: list[str], plants: list[str], rule: str) -> None:
    head = "| set | detector | budget | entities | false / allowed | kept | within 3x | significantly over | found | oracle | found / oracle [95 %] |"
    print(head + "\n|" + "---|" * 11)
    for which in sets:
        for detector in detectors:
            rows = [one_entity(one, rule, PERIODS, with_oracle=True) for one in kept(folder, detector, which)]
            for name, period in PERIODS.items() if rows else ():
                for key in (name + way for way in WAYS):
                    false, found, best = (np.array([r[key][k] for r in rows]) for k in ("false", "found", "oracle"))
                    allowed = np.array([r["outside"] / period for r in rows])
                    events = sum(r["events"] for r in rows)
                    low, high = interval(found, best)
                    print(
                        f"| {which} | {detector} | {key} | {len(rows)} | {false.sum() / allowed.sum():.2f} | {np.mean(false <= allowed):.0%} | "
                        f"{np.mean(false <= 3 * allowed):.0%} | {int((poisson.sf(false - 1, allowed) < 0.025).sum())} | {found.sum() / events:.2f} | "
                        f"{best.sum() / events:.2f} | {found.sum() / max(best.sum(), 1):.2f} [{low:.2f}, {high:.2f}] |",
                        flush=True,
                    )
    print(
        "\n| plants never seen | detector | budget | plants | observed / promised | kept | significantly over |\n|"
        + "---|" * 7
    )
    for weeks in plants:
        for detector in detectors:
            rows = [
                one_entity(one, rule, PLANT_PERIODS, with_oracle=False)
                for one in kept(folder, detector, f"plants{weeks}")
            ]
            for name, period in PLANT_PERIODS.items() if rows else ():
                for key in (name + way for way in WAYS):
                    false = np.array([r[key]["false"] for r in rows])
                    allowed = np.array([r["outside"] / period for r in rows])
                    over = int((poisson.sf(false - 1, allowed) < 0.025).sum())
                    print(
                        f"| {weeks} weeks | {detector} | {key} | {len(rows)} | {false.sum() / allowed.sum():.2f} | "
                        f"{int((false <= allowed).sum())} | {over} |",
                        flush=True,
                    )


def goals(folder: Path, detectors: list[str], sets: list[str], rule: str) -> None:
    """The default against its goals: false / allowed .5 to 1, 80 % of entities within, 95 % within 3x, .85 of the oracle found."""
    print("A star: the goal is met. In brackets: a threshold that stays.\n")
    print("| set | detector | budget | false / allowed | within | within 3x | found | found / oracle |\n|" + "---|" * 8)
    for which in sets:
        for detector in detectors:
            rows = [one_entity(one, rule, PERIODS, with_oracle=True) for one in kept(folder, detector, which)]
            for name, period in PERIODS.items() if rows else ():
                allowed = np.array([r["outside"] / period for r in rows])
                best = sum(r[name]["oracle"] for r in rows)
                cells = []
                for way in ("", FIXED):
                    false, found = (np.array([r[name + way][key] for r in rows]) for key in ("false", "found"))
                    within = [float(np.mean(false <= times * allowed)) for times in (1, 3)]
                    share = found.sum() / sum(r["events"] for r in rows)
                    cells.append((false.sum() / allowed.sum(), *within, share, found.sum() / max(best, 1)))
                (pooled, one, three, share, ratio), fixed = cells
                met = (0.5 <= pooled <= 1.0, one >= 0.8, three >= 0.95, False, ratio >= 0.85)
                forms = (".2f", ".0%", ".0%", ".2f", ".2f")
                told = (
                    f"{value:{form}}{'*' * int(good)} ({other:{form}})"
                    for value, other, good, form in zip(
                        (pooled, one, three, share, ratio), fixed, met, forms, strict=True
                    )
                )
                print(f"| {which} | {detector} | {name} | " + " | ".join(told) + " |", flush=True)


def ladder(detectors: list[str]) -> None:
    print("Threshold (faults found: vibration, ramp, flow; false alarms in two days).\n")
    print("| detector | valve | " + " | ".join(LADDER) + " |\n|" + "---|" * (2 + len(LADDER)))
    for name in detectors:
        for valve in (False, True):
            pump = make_pump(valve=valve)
            watch = Watch(make(name).fit(pump.train), budget=LADDER[0]).calibrate()
            normal = np.ones(len(pump.test), dtype=bool)
            for fault in pump.faults:
                normal[fault.start : fault.stop + GRACE] = False
            cells = []
            for budget in LADDER:
                other = watch.recalibrated(budget)
                alarms = other.alarms(pump.test)
                hits = "".join(str(int(alarms.active[fault.start : fault.stop].any())) for fault in pump.faults)
                false = sum(bool(normal[alarm.raised]) for alarm in alarms)
                cells.append(f"{other.calibration.threshold:.2f} ({hits}; {false})")
            print(f"| {name} | {'yes' if valve else 'no'} | " + " | ".join(cells) + " |", flush=True)


def silent(detectors: list[str]) -> None:
    print("Alarms in two normal days at 1/day, two weeks of training, twelve plants each.\n")
    print("| detector | channels | all there | allowed | one dead, each in turn | allowed |\n|" + "---|" * 6)
    for name in detectors:
        for channels in (4, 8):
            whole, dead = 0, 0
            for seed in SILENT:
                plant = make_plant(
                    n_train=14 * DAY, n_test=WARM + 2 * DAY, n_channels=channels, n_faults=0, random_state=seed
                )
                watch = Watch(make(name).fit(plant.train), budget="1/day").calibrate()
                for gone in (None, *range(channels)):
                    values = np.array(plant.test.values)
                    if gone is not None:
                        values[WARM:, gone] = np.nan
                    alarms = watch.alarms(Series(values, timestamps=plant.test.timestamps))
                    raised = sum(alarm.raised >= WARM for alarm in alarms)
                    whole, dead = whole + raised * (gone is None), dead + raised * (gone is not None)
            allowed = 2 * len(SILENT)
            print(f"| {name} | {channels} | {whole} | {allowed} | {dead} | {allowed * channels} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "goals", "ladder", "silent"])
    parser.add_argument("--kept", type=Path, default=Path("kept"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--plants", default="2,16")
    parser.add_argument(
        "--detectors", default=None, help="table: prism,linear-last,mahalanobis; ladder: all that are cheap to fit."
    )
    parser.add_argument("--rule", default="excess")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "ladder":
        cheap = [name for name in registry.DETECTORS if registry.resolve(name).traits.crossfit > 1]
        ladder(given.detectors.split(",") if given.detectors else cheap)
        return
    if given.what == "silent":
        silent((given.detectors or PARTIAL).split(","))
        return
    plants, sets = (list(filter(None, text.split(","))) for text in (given.plants, given.sets))
    if given.what == "goals":
        goals(given.kept, (given.detectors or "prism").split(","), sets, given.rule)
        return
    table(given.kept, (given.detectors or DETECTORS).split(","), sets, plants, given.rule)


if __name__ == "__main__":
    main()

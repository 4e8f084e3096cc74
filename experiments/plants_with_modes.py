"""Faults found and false alarms on generated plants with operating modes, by the default detector at one alarm per day.

Each plant (``modes_generator.py``) has three weeks of training, four normal weeks and a
week with ten faults. A fault is found where an alarm is raised between its first row and an hour after its last; the
channel is right where the first alarm of the fault begins with a channel that the fault names. Four weeks allow 28 alarms.

    python experiments/plants_with_modes.py                          plants 9000 to 9009: looked at while constants were changed
    python experiments/plants_with_modes.py --first 9500 --plants 10  looked at once (earlier versions: 9100, 9300)
    python experiments/plants_with_modes.py --first 0 --plants 4     others, to develop on
    python experiments/plants_with_modes.py --detector linear-last
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter

from modes_generator import MODE_FAULTS, make_plant_with_modes

from tisat import registry
from tisat.datasets.injected_faults import DAY, WEEK
from tisat.watch.watch import Watch

NORMAL = 4 * WEEK
LATE = 60  # rows after a fault in which an alarm is still about it


def look(seed: int, detector: str, *, verbose: bool) -> tuple[dict[str, bool], int, int, float]:
    """Kinds found and whether the first channel was right; alarms in the normal weeks, in the fault week; CPU seconds to fit."""
    plant = make_plant_with_modes(random_state=seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch(detector, budget="1/day").fit(plant.train)
        spent = time.process_time() - began
        alarms = watch.alarms(plant.test)
    found: dict[str, bool] = {}
    matched = set()
    for fault in plant.faults:
        own = [alarm for alarm in alarms if fault.start <= alarm.raised < fault.stop + LATE]
        matched.update(alarm.raised for alarm in own)
        if own:
            names = {plant.test.channels[c] for c in fault.channels}
            found[fault.kind] = next(iter(own[0].channels)) in names
        if verbose:
            print(f"  {fault.kind:16s} {own[0] if own else 'not found'}")
    normal = [alarm for alarm in alarms if alarm.raised < NORMAL]
    if verbose:
        for alarm in normal:
            print(f"  false, day {alarm.raised // DAY:2d} {alarm}")
    late = sum(alarm.raised >= NORMAL and alarm.raised not in matched for alarm in alarms)
    return found, len(normal), late, spent


def main() -> None:
    """Print a line per plant and the totals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=9000)
    parser.add_argument("--plants", type=int, default=10)
    parser.add_argument("--detector", default=registry.DEFAULT)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    print(f"{'plant':>5} found right  false in 4 weeks  false in the fault week  fit, CPU s  not found")
    kinds: Counter[str] = Counter()
    good = []
    for seed in range(args.first, args.first + args.plants):
        found, normal, late, spent = look(seed, args.detector, verbose=args.verbose)
        kinds.update(found.keys())
        good.append((len(found), sum(found.values()), normal))
        absent = ", ".join(kind for kind in MODE_FAULTS if kind not in found)
        wrong = ", ".join(kind for kind, right in found.items() if not right)
        print(
            f"{seed:5d} {len(found):5d} {sum(found.values()):5d} {normal:17d} {late:24d} {spent:11.1f}  {absent}"
            + (f"; another channel first: {wrong}" if wrong else ""),
            flush=True,
        )
    n = len(good)
    print(
        f"at least 8 found in {sum(f >= 8 for f, _, _ in good)} of {n}, at least 7 right in {sum(r >= 7 for _, r, _ in good)}, "
        f"within the budget of 28 in {sum(a <= 28 for _, _, a in good)}; mean {sum(f for f, _, _ in good) / n:.1f} found, "
        f"{sum(r for _, r, _ in good) / n:.1f} right, {sum(a for _, _, a in good) / n:.1f} false alarms"
    )
    print("found by kind: " + ", ".join(f"{kind} {kinds[kind]}" for kind in MODE_FAULTS))


if __name__ == "__main__":
    main()

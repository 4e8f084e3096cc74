"""Count how many of ten plants like the demo's keep their budget: ``python experiments/demo_plants.py``.

The plants are those of ``tisat demo --seed 0`` to ``--seed 9``: fifteen normal days, then four weeks with two faults of each of seven
kinds, at one false alarm per day. Takes about a minute and a half of CPU.
"""

import argparse
import json
from typing import Any

from tisat.plotting.demo_page import false_alarms, run_demo


def figures(seed: int) -> dict[str, Any]:
    """Run the demo on one plant and count."""
    demo = run_demo(random_state=seed)
    false = len(false_alarms(demo))
    return {
        "seed": seed,
        "found": demo.counts.true_alarms,
        "faults": demo.counts.n_events,
        "false_alarms": false,
        "days": round(demo.counts.days_outside, 1),
        "met": false <= demo.counts.n_outside / demo.alarms.calibration.target,
    }


def summary(plants: list[dict[str, Any]]) -> str:
    """Put the plants into one sentence."""
    total = {name: sum(plant[name] for plant in plants) for name in ("found", "faults", "false_alarms", "days", "met")}
    return (
        f"{total['met']} of {len(plants)} such plants meet their budget: {total['found']} of {total['faults']} faults found, "
        f"{total['false_alarms']} false alarms in {total['days']:.0f} days without faults."
    )


def main() -> None:
    """Run the plants and print a line for each, then the sentence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="seed of the first plant")
    parser.add_argument("--plants", type=int, default=10)
    given = parser.parse_args()
    plants = []
    for seed in range(given.first, given.first + given.plants):
        plants.append(figures(seed))
        print(json.dumps(plants[-1]), flush=True)
    print(summary(plants))


if __name__ == "__main__":
    main()

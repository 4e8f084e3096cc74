"""What labels of one week teach: alarms of the same kind that call nobody afterwards, and faults that are demoted, on plants with modes.

Each plant (``modes_generator.py``) has three weeks of training, four normal weeks and a week with
ten faults. Every alarm of the first normal week is labelled false; its patterns are taken. Alarms of the three normal weeks after it and
the false ones of the fault week are **of the same kind** where they look alike (spike, relations, ...) and the pump did the same within
the hour before: it stopped, or it started. A fault is demoted where every alarm of it is known.

    python experiments/label_patterns.py                       plants 9000 to 9009
    python experiments/label_patterns.py --first 0 --plants 2  others, to develop on
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from modes_generator import make_plant_with_modes

from tisat.alarms.alarms import Alarm
from tisat.alarms.patterns import known_by, propose_patterns
from tisat.datasets.injected_faults import WEEK
from tisat.series import Series
from tisat.watch.watch import Watch

NORMAL, LATE, HOUR = 4 * WEEK, 60, 60


def happened(alarm: Alarm, series: Series) -> str:
    """What the pump did within the hour before the raise: stop, start, or nothing; the last of them."""
    pump = series.values[max(alarm.raised - HOUR, 0) : alarm.raised + 1, series.channels.index("pump_running")]
    moves = np.diff(np.nan_to_num(pump))
    found = np.flatnonzero(moves)
    return "nothing" if not len(found) else "start" if moves[found[-1]] > 0 else "stop"


def look(seed: int) -> tuple[int, int, int, int, int, int]:
    """Labels, alarms of the same kind afterwards, those known, other false alarms known, faults found, faults demoted."""
    plant = make_plant_with_modes(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alarms = list(Watch(budget="1/day").fit(plant.train).alarms(plant.test))
    labelled = [one for one in alarms if one.raised < WEEK]
    proposals = propose_patterns(labelled, {one.raised: "false" for one in labelled})
    patterns = [one.pattern for one in proposals if one.safe]
    about = {one.raised: [f for f in plant.faults if f.start <= one.raised < f.stop + LATE] for one in alarms}
    later = [one for one in alarms if one.raised >= WEEK and not about[one.raised]]
    kinds = {(happened(one, plant.test), one.kind) for one in labelled if happened(one, plant.test) != "nothing"}
    same = [one for one in later if (happened(one, plant.test), one.kind) in kinds]
    known = [one for one in later if known_by(one, patterns)]
    found, demoted = 0, 0
    for fault in plant.faults:
        own = [one for one in alarms if fault in about[one.raised]]
        found += bool(own)
        demoted += bool(own) and all(known_by(one, patterns) for one in own)
    return (
        len(labelled),
        len(same),
        sum(one in known for one in same),
        len(known) - sum(one in known for one in same),
        found,
        demoted,
    )


def main() -> None:
    """Print a line per plant and the totals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=9000)
    parser.add_argument("--plants", type=int, default=10)
    args = parser.parse_args()
    print("plant  labels  same kind later  of them known  other false known  faults found  faults demoted")
    rows = []
    for seed in range(args.first, args.first + args.plants):
        rows.append(look(seed))
        print(
            f"{seed:5d} {rows[-1][0]:7d} {rows[-1][1]:16d} {rows[-1][2]:14d} {rows[-1][3]:18d} {rows[-1][4]:13d} {rows[-1][5]:15d}",
            flush=True,
        )
    total = np.sum(rows, axis=0)
    print(
        f"{100 * total[2] / max(total[1], 1):.0f} % of {total[1]} alarms of the same kind call nobody; {total[5]} of {total[4]} faults demoted"
    )


if __name__ == "__main__":
    main()

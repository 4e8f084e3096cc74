"""What ends an alarm of the paper's rule, and what that does to SPD and to the number of alarms.

    TISAT_DATA=... python experiments/end_policies.py [--sets smd,msl,smap]

linear-mean on train (holdout 0.2), kNN evidence in the weibull form (one unit for all entities), the same evidence under each way to end an
alarm, 60 thresholds from 1 to 100,000. SPD is pooled, delta_max 100, the area over these thresholds. The last columns are counted at h = 30, the same for all.
"""

import argparse

import numpy as np

from tisat.alarms.rules import make_rule
from tisat.detectors import make
from tisat.metrics import count_alarms, spd_score_of_active
from tisat_bench.datasets import load

THRESHOLDS = np.logspace(0, 5, 60)
SHOWN = 30.0
ENDS = ("restart", "recovery", "cooldown")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="smd,msl,smap")
    options = parser.parse_args()
    print(
        "| set | end | SPD pooled | SPD mean | detected at h = 30 | false alarms at h = 30 |\n|---|---|---|---|---|---|"
    )
    for name in options.sets.split(","):
        labels, evidence = [], []
        for entity in load(name):
            detector = make("linear-mean").fit(entity.train)
            rule = make_rule("paper", form="weibull").fit(detector.normal_)
            evidence.append(rule.evidence(detector.points(entity.test)))
            labels.append(entity.test.labels)
        for end in ENDS:
            rule = make_rule("paper", form="weibull", end=end)
            active = {h: [rule.accumulate(one, threshold=h).active for one in evidence] for h in (*THRESHOLDS, SHOWN)}
            spd = spd_score_of_active(labels, active, delta_max=100)
            counts = count_alarms(labels, active[SHOWN], delta_max=100)
            print(
                f"| {name} | {end} | {float(spd):.3f} | {spd.per_series_mean:.3f} | {counts.true_alarms} of {counts.n_events} "
                f"| {counts.n_false_alarms} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""What one model for many machines costs: a model each, one for all, one for each group of machines alike.

    TISAT_DATA=... python experiments/shared_models.py [--detectors linear-last,mahalanobis] [--sets ASD,smd]

SPD under the excess rule (delta_max 100), pooled and mean over entities; the threshold and the reference are always an entity's own. "A model each"
is what ``tisat fit --each`` makes, whose normal points are cross-fitted; with "training rows" they are the model's own rows, as a shared model's nearly are.
Differences to a model each have paired 95 % bootstrap intervals over entities. Groups are those of ``tisat fit --each --group-by auto``.
Machines are learned from as ``--group-by`` does: at most 20 of a group, spread over it. NAB's series have nothing in common and are left out.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from kept import entities

from tisat.alarms.rules import make_rule
from tisat.batch.fitting import LEARN_FROM
from tisat.batch.groups import Described, _figures, by_likeness
from tisat.detectors import adapt, make
from tisat.metrics import spd_score
from tisat.metrics.statistics import interval_of, resampled_means, resampling_weights

SETS = ("smd", "msl", "smap", "ASD", "JumpStarter2")
DELTA_MAX = 100


def spread(many: list[str]) -> list[str]:
    return [many[i] for i in sorted({round(i * (len(many) - 1) / (LEARN_FROM - 1)) for i in range(LEARN_FROM)})]


def statistic(detector, test):
    """The excess statistic of a test series; the rule is fitted on the detector's normal points."""
    normal, points = detector.normal_, detector.points(test)
    rule = make_rule("excess").fit(normal, scores=detector.aggregate(normal), views=detector.score_points(normal).views)
    evidence = rule.evidence(points, scores=detector.aggregate(points), views=detector.score_points(points).views)
    return rule.accumulate(evidence, threshold=1.0).statistic


def study(which: str, name: str) -> None:
    rows = {one[0]: one[1:] for one in entities(which)}
    alike = by_likeness(
        [
            Described(one, tuple(map(str, range(train.shape[1]))), tuple(_figures(train[-5000:]).ravel()))
            for one, (train, _, _) in rows.items()
        ]
    )
    found: dict[str, dict[str, np.ndarray]] = {}
    for way in ("a model each", "a model each, training rows", "one for all", "one for each group"):
        groups = dict.fromkeys(rows, "all") if way == "one for all" else alike
        shared = {}
        if way.startswith("one"):
            for group in set(groups.values()):
                members = spread([one for one in rows if groups[one] == group])
                shared[group] = make(name).fit([rows[one][0] for one in members], holdout=0.0)
        holdout = 0.0 if way.endswith("rows") else None
        found[way] = {
            one: statistic(
                adapt(shared[groups[one]], train) if shared else make(name).fit(train, holdout=holdout), test
            )
            for one, (train, test, _) in rows.items()
        }
    labels = [truth for _, _, truth in rows.values()]
    each = {}
    for way, statistics in found.items():
        pooled = float(spd_score(labels, list(statistics.values()), delta_max=DELTA_MAX))
        each[way] = np.array(
            [
                float(spd_score(truth, one, delta_max=DELTA_MAX)) if truth.any() else np.nan
                for truth, one in zip(labels, statistics.values(), strict=True)
            ]
        )
        said = ""
        if way != "a model each":
            gap = each[way] - each["a model each"]
            interval = interval_of(float(np.nanmean(gap)), resampled_means(gap, resampling_weights(len(gap))))
            said = f"; mean {interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
        count = f" ({len(set(alike.values()))} groups)" if way == "one for each group" else ""
        print(f"{which} {name}, {way}{count}: {pooled:.3f}/{np.nanmean(each[way]):.3f}{said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detectors", default="linear-last,mahalanobis")
    parser.add_argument("--sets", default=",".join(SETS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for which in given.sets.split(","):
        for name in given.detectors.split(","):
            study(which, name)


if __name__ == "__main__":
    main()

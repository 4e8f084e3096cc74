"""Would other detectors gain from units of the training range and cut-off inputs, as prism has them?

    TISAT_DATA=... python experiments/range_units.py [--sets ASD,msl] [--detectors linear-last,mahalanobis]

For each detector: as it is; inputs cut off 4 training ranges outside the training range; the same with the training range as the
unit of every channel instead of its spread. Pooled / mean SPD (delta_max 100, excess rule), and the difference of the mean to the
first line with its 95 % interval, entities resampled. Test labels are used to measure.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from kept import entities

from tisat.alarms.rules import make_rule
from tisat.detectors import make
from tisat.errors import SeriesError
from tisat.metrics import spd_score

SPREADS = ("tisat.detectors._forecast.residual_spread", "tisat.detectors._windows.normal_spread")


def ranges(rows: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
    span = np.ptp(np.concatenate(parts), axis=0)
    return np.where(span > 0, span, 1.0)


def statistic(name: str, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    made: Any = make(name).fit(train)
    points, rule = made.points(test), make_rule("excess")
    rule.fit(made.score_points(made.normal_))
    evidence = rule.evidence(made.score_points(points))
    return np.asarray(rule.accumulate(evidence, threshold=1e300).statistic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="ASD,NAB,msl,smap,JumpStarter2")
    parser.add_argument("--detectors", default="linear-last,mahalanobis")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| detector | set | as it is | cut off | cut off, in units of the range |\n|---|---|---|---|---|")
    for name in given.detectors.split(","):
        for which in given.sets.split(","):
            found: list[list[np.ndarray]] = [[], [], []]
            labels = []
            for _, train, test, truth in entities(which):
                low, high = np.nanmin(train, axis=0), np.nanmax(train, axis=0)
                span = np.where(high > low, high - low, np.inf)  # a channel that never moved is left as it is
                cut = np.clip(test, low - 4 * span, high + 4 * span)
                try:
                    plain, second = statistic(name, train, test), statistic(name, train, cut)
                    with patch(SPREADS[0], ranges), patch(SPREADS[1], ranges):
                        third = statistic(name, train, cut)
                except SeriesError:
                    continue
                for kept, one in zip(found, (plain, second, third), strict=True):
                    kept.append(one)
                labels.append(truth.astype(int))
            scores = [spd_score(labels, one, delta_max=100) for one in found]
            cells = []
            for score in scores:
                each = np.array(score.per_series) - np.array(scores[0].per_series)
                each = each[~np.isnan(each)]
                drawn = each[np.random.default_rng(0).integers(0, len(each), (2000, len(each)))].mean(axis=1)
                low, high = np.quantile(drawn, [0.025, 0.975])
                cells.append(
                    f"{float(score):.3f}/{np.nanmean(score.per_series):.3f} ({each.mean():+.3f} [{low:+.3f}, {high:+.3f}])"
                )
            print(f"| {name} | {which} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

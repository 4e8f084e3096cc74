"""Channels that never move in training: how often they wake in normal data, and how much their scale matters.

    TISAT_DATA=... python experiments/constant_channels.py             halves of the training splits; no label is read
    TISAT_DATA=... python experiments/constant_channels.py --effect    pooled SPD by scale and by least normal level

The tables are in ``docs/decisions/constant-channels.md``.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from tisat.detectors import make
from tisat.metrics import spd_score
from tisat_bench import datasets


def halves() -> None:
    for which, telemetry_only in (("smd", None), ("smap", True), ("msl", True), ("smap", False), ("msl", False)):
        total = constant = woke = 0
        sizes = []
        for entity in datasets.load(which, telemetry_only=telemetry_only):
            values = np.asarray(entity.train.values)
            first, second = values[: len(values) // 2], values[len(values) // 2 :]
            still = np.flatnonzero(np.ptp(first, axis=0) == 0)
            total, constant = total + values.shape[1], constant + len(still)
            for c in still:
                moved = np.abs(second[:, c] - first[0, c]).max()
                if moved > 0:
                    woke += 1
                    sizes.append(moved / max(abs(first[0, c]), 1.0))
        print(
            which,
            "telemetry only" if telemetry_only else "all columns",
            total,
            constant,
            woke,
            np.median(sizes) if sizes else "",
        )


def effect() -> None:
    for which in ("smd", "smap", "msl"):
        entities = datasets.load(which).entities
        truth = [entity.test.labels for entity in entities]
        for name in ("last-value", "ewma"):
            kept = []
            for entity in entities:
                detector = make(name).fit(entity.train, holdout=0)
                still = np.ptp(entity.train.values, axis=0) == 0
                kept.append((detector.points(entity.test) ** 2, detector.normal_**2, still))
            for factor, least in itertools.product((0.1, 1, 10, 100), (1e-6, 1e-2, 1)):
                scores = []
                for points, normal, still in kept:
                    weight = np.where(still, factor**-2.0, 1.0)
                    level = np.quantile((normal * weight).mean(axis=1), 0.99)
                    scores.append((points * weight).mean(axis=1) / max(level, least))
                spd = spd_score(truth, scores, delta_max=100)
                print(
                    which,
                    name,
                    f"spread x {factor:g}, level >= {least:g}: {spd.pooled:.3f} / {spd.per_series_mean:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--effect", action="store_true")
    effect() if parser.parse_args().effect else halves()

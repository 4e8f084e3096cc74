"""Scores of the entities of six real sets and of normal plants by any detector, computed once and kept in a folder.

    TISAT_DATA=... python experiments/kept.py --out DIR --detectors prism,linear-last [--sets smd,msl] [--plants 2,16]

What a detector says of normal rows it has not seen and of the test does not depend on the alarm rule, its options or the
budget: ``budgets.py``, ``prism.py`` and ``excess_settings.py`` start from these files, and a study of them takes seconds. What
is there is not computed again. SMD is the 12 machines of ``data/``, MSL and SMAP are the telemetry value, ASD, JumpStarter2 and
NAB are folders of npz files (``train``, ``test``, ``labels``); plants have 8 channels, a row a minute and no fault.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms.rules import Scored
from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat.errors import SeriesError
from tisat_bench import datasets

SETS = ("smd", "msl", "smap", "ASD", "JumpStarter2", "NAB")
WEEK = 10_080
PLANTS = 10
TEST_WEEKS = 4


@dataclass(frozen=True)
class KeptScores:
    """What a detector says of one entity."""

    name: str
    normal: Scored  # rows the model that scored them had not seen; points are the scores
    breaks: np.ndarray  # where stretches of them begin
    test: Scored
    labels: np.ndarray  # (T,)


def entities(which: str) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Name, training values, test values and labels of every entity of a set."""
    if which.startswith("plants"):
        for seed in range(PLANTS):
            rows = int(which.removeprefix("plants")) * WEEK
            plant = make_plant(n_train=rows, n_test=TEST_WEEKS * WEEK, n_faults=0, random_state=1000 + seed)
            yield str(seed), plant.train.values, plant.test.values, np.zeros(len(plant.test), dtype=bool)
        return
    if which in ("smd", "msl", "smap"):
        for one in datasets.load(which, telemetry_only=None if which == "smd" else True):
            yield one.name, one.train.values, one.test.values, one.test.labels.astype(bool)
        return
    for file in sorted((Path(os.environ["TISAT_DATA"]) / which).glob("*.npz")):
        with np.load(file) as arrays:
            train, test, labels = (arrays[name] for name in ("train", "test", "labels"))
        yield file.stem, train.astype(float), test.astype(float), labels.astype(bool)


def made_of(name: str) -> Any:
    """A detector by its name; ``tisat-line`` is TiSAT without its transformer, which is what its default mostly comes to."""
    return make("tisat", epochs=0) if name == "tisat-line" else make(name)


def keep(out: Path, detector: str, which: str) -> None:
    """Score every entity of a set that is not there yet."""
    (out / detector).mkdir(parents=True, exist_ok=True)
    for name, train, test, labels in entities(which):
        file = out / detector / f"{which}__{name}.npz"
        if file.exists():
            continue
        start = time.process_time()
        try:
            made: Any = made_of(detector).fit(train)
        except SeriesError as error:
            print(f"{which} {name} is left out: {error}", flush=True)
            continue
        points = made.points(test)
        arrays = {
            "normal_scores": made.aggregate(made.normal_),
            "normal": made.score_points(made.normal_).views,
            "breaks": made.normal_breaks_,
            "momentary": np.array(made.score_points(made.normal_).momentary, dtype=np.int64),
            "scores": made.aggregate(points),
            "views": made.score_points(points).views,
            "labels": labels,
            "seconds": np.array(time.process_time() - start),
        }
        if detector == "prism":  # as they are before unsteady views are heard less
            heard = made.score_points(points).views.shape[1]
            arrays |= {"raw_normal": made.normal_[:, :heard], "raw": points[:, :heard]}
        part = file.with_suffix(".part")
        with part.open("wb") as opened:
            np.savez(opened, **arrays)
        part.rename(file)
    print(f"{detector} {which}", flush=True)


def kept(out: Path, detector: str, which: str) -> list[KeptScores]:
    """What was kept of a set, by name."""
    found = []
    for file in sorted((out / detector).glob(f"{which}__*.npz")):
        with np.load(file) as arrays:
            momentary = tuple(arrays["momentary"].tolist()) if "momentary" in arrays else ()
            normal = Scored.of(arrays["normal_scores"], arrays["normal_scores"], arrays["normal"], momentary)
            test = Scored.of(arrays["scores"], arrays["scores"], arrays["views"], momentary)
            found.append(
                KeptScores(file.stem.split("__")[1], normal, arrays["breaks"], test, arrays["labels"].astype(bool))
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("kept"))
    parser.add_argument("--detectors", default="prism,linear-last,mahalanobis")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--plants", default="", help="Weeks of training, as 2,16.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = [
        *filter(None, given.sets.split(",")),
        *(f"plants{weeks}" for weeks in filter(None, given.plants.split(","))),
    ]
    for detector in given.detectors.split(","):
        for which in sets:
            keep(given.out, detector, which)


if __name__ == "__main__":
    main()

"""How to join the parts of a centred score, chosen on series that no evaluation list of TSB-AD holds.

The parts: the nearest window of training, scored round each row, with switches together as one channel or each as one; prism's
statistic and the logarithm of its score, both averaged over the next 60 rows. The development series are what is left of the raw
data when every series of `tisat bench tsb-ad-m` and `tsb-ad-u` is taken out: NAB, UCR and 15 services of JumpStarter2 and ASD with
their own training rows; MSL, SMAP and SMD test files with the first quarter as training, at most 100 rows before the first event.
Scored as TSB-AD does. Parts are kept in a folder, so a second run is quick.

    TISAT_DATA=... python experiments/centred_scores.py KEPT
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tisat import Watch
from tisat.metrics import vus_pr
from tisat.utils.period import own_period
from tisat.utils.ranks import average_ranks
from tisat.watch import centred
from tisat.watch.centred import ahead, joined, window_scores
from tisat_bench.datasets.loading import data_root, load
from tisat_bench.tsb_ad import find_series, read_benchmark

NOW, OTHER = "windows and statistic (as it is)", "each switch as a channel of its own"
LONGEST = 60_000  # rows of a series that is taken


def development_series() -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Kind and name, values, labels and number of training rows of each series."""
    lists = [find_series(read_benchmark(name)) for name in ("tsb-ad-m", "tsb-ad-u")]
    held = {series.source.removeprefix("rebuilt from ") for found in lists for series in found}
    for kind in ("NAB", "UCR", "ASD", "JumpStarter2"):
        for file in sorted((data_root(None) / kind).glob("*.npz"))[:: 2 if kind == "JumpStarter2" else 1]:
            arrays = np.load(file)
            train, test = (arrays[name].astype(float).reshape(len(arrays[name]), -1) for name in ("train", "test"))
            labels = np.concatenate([np.zeros(len(train), bool), arrays["labels"] > 0])
            if f"{kind} {file.stem}" not in held and labels.any() and len(labels) <= LONGEST:
                side = "u" if train.shape[1] == 1 else "m"
                yield f"{side}-{kind}-{file.stem}", np.concatenate([train, test]), labels, len(train)
    for kind in ("msl", "smap", "smd"):
        for alone in (False,) if kind == "smd" else (True, False):
            entities = load(kind, telemetry_only=None if kind == "smd" else alone)
            for entity in entities.names:
                test = entities[entity].test
                labels = np.asarray(test.labels) > 0
                if f"{kind} {entity}" in held or not labels.any():
                    continue
                rows = min(int(labels.argmax()) - 100, len(labels) // 4)
                if rows >= 300:
                    yield (
                        f"{'u' if alone else 'm'}-{kind.upper()}-{entity}",
                        np.asarray(test.values, float),
                        labels,
                        rows,
                    )


def parts_of(kept: Path, name: str, values: np.ndarray, labels: np.ndarray, rows: int) -> dict[str, np.ndarray]:
    """The parts of one series, computed once."""
    file = kept / f"{name}.npz"
    if not file.is_file():
        period = own_period(values)
        watch = Watch("prism").fit(values[:rows])
        np.savez(
            file,
            statistic=ahead(watch.score(values)),
            score=ahead(compressed(watch.detector.decision_function(values))),
            windows=window_scores(values[:rows], values, period=period),
            each=windows_of_each(values[:rows], values, period=period),
            labels=labels,
            period=period,
        )
        print(f"{name}: {values.shape}", flush=True)
    return dict(np.load(file))


def windows_of_each(train: np.ndarray, rows: np.ndarray, *, period: int) -> np.ndarray:
    """Window scores where a channel of few values counts as any other."""
    few, centred.FEW_VALUES = centred.FEW_VALUES, 0
    try:
        return window_scores(train, rows, period=period)
    finally:
        centred.FEW_VALUES = few


def compressed(scores: np.ndarray) -> np.ndarray:
    """Logarithms of scores, the lowest as 0; 0 where there is none."""
    known = np.isfinite(scores)
    lowest = scores[known].min()
    return np.where(known, np.log1p(np.where(known, scores, lowest) - lowest), 0.0)


def sum_of(*parts: np.ndarray, period: int) -> np.ndarray:
    """Standard scores of any number of parts, summed and averaged over a period."""
    nothing = np.zeros(len(parts[0]))
    return np.sum([joined(part, nothing, period=period) for part in parts], axis=0)


def joins(
    windows: np.ndarray, each: np.ndarray, statistic: np.ndarray, score: np.ndarray, period: int
) -> dict[str, np.ndarray]:
    """The ways that were compared."""
    ranks = [average_ranks(part) / len(part) for part in (windows, statistic)]
    return {
        "windows alone": windows,
        "windows alone, each switch as a channel": each,
        "statistic alone": statistic,
        "score alone": score,
        "mean of ranks of windows and statistic": ranks[0] + ranks[1],
        NOW: joined(windows, statistic, period=period),
        "windows and score": joined(windows, score, period=period),
        "statistic and score": joined(statistic, score, period=period),
        "score twice": sum_of(windows, statistic, score, score, period=period),
        "with the score, averaged over two periods": sum_of(windows, statistic, score, period=2 * period),
        "with the score as a third part": sum_of(windows, statistic, score, period=period),
        OTHER: joined(each, statistic, period=period),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kept", type=Path, help="the folder of parts")
    kept: Path = parser.parse_args().kept
    kept.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, float]] = {}
    for name, values, labels, rows in development_series():
        try:
            parts = parts_of(kept, name, values, labels, rows)
        except ValueError as error:
            print(f"{name}: left out, {error}")
            continue
        period = int(parts["period"])
        results[name] = {
            way: float(vus_pr(parts["labels"], scores, max_buffer=period, version="2025", thresholds=250))
            for way, scores in joins(
                *(parts[part] for part in ("windows", "each", "statistic", "score")), period
            ).items()
        }
    kinds = sorted({"-".join(name.split("-")[:2]) for name in results})
    print(f"| join | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for way in next(iter(results.values())):
        means = [np.mean([r[way] for name, r in results.items() if name.startswith(f"{kind}-")]) for kind in kinds]
        print(f"| {way.strip()} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    for side, title in (("u", "univariate"), ("m", "multivariate")):
        apart = np.array([r[NOW] - r[OTHER] for name, r in results.items() if name.startswith(side)])
        draws = np.random.default_rng(0).choice(apart, (4000, len(apart))).mean(axis=1)
        low, high = np.quantile(draws, [0.025, 0.975])
        print(f"{title}, {len(apart)} series: {NOW}, against {OTHER} {apart.mean():+.3f} [{low:+.3f}, {high:+.3f}]")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()

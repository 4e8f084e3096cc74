"""How to join the two parts of a centred score, chosen on series that no evaluation list of TSB-AD holds.

The parts: the nearest window of training, scored round each row, and prism's statistic averaged over the next 60 rows. The
development series are what is left of the raw data when every series of `tisat bench tsb-ad-m` and `tsb-ad-u` is taken out: NAB, UCR
and 15 services of JumpStarter2 and ASD with their own training rows; MSL, SMAP and SMD test files with the first quarter as training, at
most 100 rows before the first event. Scored as TSB-AD does. Parts are kept in a folder, so a second run is quick.

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
from tisat.watch.centred import ahead, joined, window_scores
from tisat_bench.datasets.loading import data_root, load
from tisat_bench.tsb_ad import find_series, read_benchmark

NOW, BEFORE = "standard scores, averaged over a period", "mean of ranks (before)"
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
    """Both parts of one series, computed once."""
    file = kept / f"{name}.npz"
    if not file.is_file():
        period = own_period(values)
        statistic = Watch("prism").fit(values[:rows]).score(values)
        windows = window_scores(values[:rows], values, period=period)
        np.savez(file, statistic=ahead(statistic), windows=windows, labels=labels, period=period)
        print(f"{name}: {values.shape}", flush=True)
    return dict(np.load(file))


def joins(first: np.ndarray, second: np.ndarray, period: int) -> dict[str, np.ndarray]:
    """The ways that were compared."""
    ranks = [average_ranks(one) / len(one) for one in (first, second)]
    tails = [-np.log1p(-(rank - 0.5 / len(rank))) for rank in ranks]
    return {
        "windows alone": first,
        "statistic alone": second,
        BEFORE: ranks[0] + ranks[1],
        "the same, averaged over a period": joined(ranks[0] + ranks[1], np.zeros(len(first)), period=period),
        "larger rank": np.maximum(*ranks),
        "smaller rank": np.minimum(*ranks),
        "tail probabilities multiplied": tails[0] + tails[1],
        "the same, averaged over a period ": joined(tails[0] + tails[1], np.zeros(len(first)), period=period),
        "standard scores": joined(first, second, period=1),
        "standard scores, averaged over half a period": joined(first, second, period=period // 2),
        NOW: joined(first, second, period=period),
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
            for way, scores in joins(parts["windows"], parts["statistic"], period).items()
        }
    kinds = sorted({"-".join(name.split("-")[:2]) for name in results})
    print(f"| join | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for way in next(iter(results.values())):
        means = [np.mean([r[way] for name, r in results.items() if name.startswith(f"{kind}-")]) for kind in kinds]
        print(f"| {way.strip()} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    for side, title in (("u", "univariate"), ("m", "multivariate")):
        apart = np.array([r[NOW] - r[BEFORE] for name, r in results.items() if name.startswith(side)])
        draws = np.random.default_rng(0).choice(apart, (4000, len(apart))).mean(axis=1)
        low, high = np.quantile(draws, [0.025, 0.975])
        print(
            f"{title}, {len(apart)} series: {NOW} against the mean of ranks {apart.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()

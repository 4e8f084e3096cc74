"""A detector's VUS-PR beside all published ones, on the series that are there, with paired intervals over series.

Series are what is drawn: an interval says how a difference would vary over other series like these, not over those of TSB-AD that
are missing. Which data sets are there is named beside the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tisat.errors import InputError
from tisat.metrics.statistics import Interval, fewest_units, interval_of, resampled_means, resampling_weights
from tisat_bench.tsb_ad.lists import Benchmark, ListedSeries

FEW = 10  # series below which a bootstrap interval is too narrow


@dataclass(frozen=True)
class Standing:
    """One detector on the series that are there."""

    detector: str
    published: bool
    mean: float
    by_dataset: Mapping[str, float]
    whole_mean: float  # of a published one on all listed series; NaN otherwise
    difference: Interval | None  # to the reference, the best published one here; None for itself


@dataclass(frozen=True)
class Comparison:
    """All detectors, the best first."""

    title: str
    standings: tuple[Standing, ...]
    reference: str
    series: int
    listed: int
    datasets: Mapping[str, tuple[int, int]]  # by data set: series that are there, series of the list
    chosen: tuple[str, ...] = ()  # the series, where they were chosen by name

    @property
    def coverage(self) -> str:
        """Which series the figures are of, in words."""
        few = ""
        if self.series < fewest_units():
            few = f" Of fewer than {fewest_units()} series no difference is claimed and no interval is given."
        elif self.series < FEW:
            few = " Intervals over so few series are narrower than they should be."
        if self.chosen:
            return (
                f"{self.series} of {self.listed} series, chosen by name: {', '.join(self.chosen)}. Published results beside them are over the same series; "
                f"these means cannot be compared with published means over others, such as all {self.listed}.{few}"
            )
        parts = ", ".join(f"{name} {here} of {all_}" for name, (here, all_) in self.datasets.items() if here)
        missing = sum(all_ for here, all_ in self.datasets.values() if not here)
        absent = sum(1 for here, _ in self.datasets.values() if not here)
        rest = f"; none of the {missing} series of {absent} other data sets" if absent else ""
        return f"{self.series} of {self.listed} series: {parts}{rest}.{few}"

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Columns and rows to be printed."""
        here = [name for name, (count, _) in self.datasets.items() if count]
        columns = ["", "detector", "mean", f"against {self.reference}", *here, f"all {self.listed}"]
        rows: list[list[object]] = []
        for rank, standing in enumerate(self.standings, 1):
            apart = standing.difference
            between = "" if apart is None else f"{apart.value:+.3f}"
            if apart is not None and self.series >= fewest_units():  # fewer have no interval
                between += f" [{apart.low:+.3f}, {apart.high:+.3f}]"
            name = standing.detector if standing.published else f"{standing.detector} *"
            rows.append(
                [rank, name, standing.mean, between, *(standing.by_dataset[d] for d in here), standing.whole_mean]
            )
        return columns, rows

    def markdown(self) -> str:
        """The table in Markdown, three digits."""
        columns, rows = self.table()
        lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
        for row in rows:
            cells = ["–" if c != c else f"{c:.3f}" if isinstance(c, float) else str(c) for c in row]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {
            "benchmark": self.title,
            "measure": "VUS-PR, version 2025, 250 thresholds",
            "series": self.series,
            "listed": self.listed,
            "chosen": list(self.chosen),
            "coverage": self.coverage,
            "reference": self.reference,
            "datasets": {name: {"here": here, "listed": all_} for name, (here, all_) in self.datasets.items()},
            "detectors": [
                {
                    "detector": one.detector,
                    "published": one.published,
                    "mean": one.mean,
                    "by_dataset": dict(one.by_dataset),
                    "mean_of_all_listed": None if np.isnan(one.whole_mean) else one.whole_mean,
                    "difference": None
                    if one.difference is None
                    else {
                        "value": one.difference.value,
                        "low": one.difference.low if self.series >= fewest_units() else None,
                        "high": one.difference.high if self.series >= fewest_units() else None,
                    },
                }
                for one in self.standings
            ],
        }


def compare_with_published(
    benchmark: Benchmark,
    series: Sequence[ListedSeries],
    results: Mapping[str, Sequence[float]],
    *,
    chosen: bool = False,
    resamples: int = 2000,
    random_state: int = 0,
) -> Comparison:
    """Lay results beside the published ones.

    Parameters
    ----------
    benchmark : Benchmark
    series : sequence of ListedSeries
        Those that are there.
    results : mapping of a name to VUS-PR values
        One value for each of ``series``, in their order.
    chosen : bool
        Whether the series were chosen by name, which the table then says.
    resamples : int
        Draws of the series for the intervals.
    random_state : int

    Raises
    ------
    InputError
        Where there are no series, or not one result for each.
    """
    if not series:
        raise InputError(
            f"The series given to compare_with_published must be at least one of {benchmark.title}. Got none."
        )
    for name, scores in results.items():
        if len(scores) != len(series):
            raise InputError(
                f"The results of {name!r} must be one for each of the {len(series)} series. Got {len(scores)} instead."
            )
    names = np.array([one.dataset for one in series])
    listed = Counter(one.dataset for one in benchmark.series)
    here = Counter(names.tolist())
    published = {name: np.array([one.published[name] for one in series]) for name in benchmark.detectors}
    reference = max(published, key=lambda name: float(np.nanmean(published[name])))
    weights = resampling_weights(len(series), resamples=resamples, random_state=random_state)
    standings = []
    own = {name: np.asarray(scores, dtype=np.float64) for name, scores in results.items()}
    enough = len(series) >= fewest_units()
    for name, values in [*published.items(), *own.items()]:
        apart = values - published[reference]
        is_published = name in published and name not in own
        standings.append(
            Standing(
                detector=name,
                published=is_published,
                mean=float(np.nanmean(values)),
                by_dataset={d: float(np.nanmean(values[names == d])) for d in here},
                whole_mean=float(np.mean([s.published[name] for s in benchmark.series]))
                if is_published
                else float("nan"),
                difference=None
                if is_published and name == reference
                else interval_of(float(np.nanmean(apart)), resampled_means(apart, weights) if enough else []),
            )
        )
    order = sorted(standings, key=lambda one: -one.mean)
    datasets = {name: (here[name], count) for name, count in listed.items()}
    names_chosen = tuple(one.stem for one in series) if chosen else ()
    return Comparison(
        benchmark.title, tuple(order), reference, len(series), len(benchmark.series), datasets, names_chosen
    )

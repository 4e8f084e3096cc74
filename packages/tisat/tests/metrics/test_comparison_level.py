"""Random scores against random scores, and against trivial baselines: how often a result calls them different, at 5 %.

``python packages/tisat/tests/metrics/test_comparison_level.py 1000`` prints the shares over 1000 pairs, ``... 200 baselines`` those over 200 sets beside the baselines.
"""

import math
import sys
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from tisat.metrics import audit
from tisat.metrics.comparison import compare

LAYOUTS = ((1, 1), (2, 1), (3, 1), (5, 1), (6, 1), (7, 1), (10, 1), (20, 1), (6, 3), (9, 3), (20, 4))  # events, series


def labelled(rng, events, series):
    """Series of 200 rows per event, events of 5 to 60 rows."""
    labels = []
    for count in (len(part) for part in np.array_split(np.arange(events), series)):
        y = np.zeros(200 * count, dtype=int)
        for start in 200 * np.arange(count) + rng.integers(40, 120, count):
            y[start : start + int(rng.integers(5, 60))] = 1
        labels.append(y)
    return labels


def different(events, series, pairs, *, resamples=200, seed=0):
    """How many of the pairs of random scores each score calls different."""
    rng = np.random.default_rng([seed, events, series])
    found = Counter({"SPD": 0, "AUC-ROC": 0, "AUC-PR": 0})
    for _ in range(pairs):
        labels = labelled(rng, events, series)
        scores = {name: [rng.random(len(y)) for y in labels] for name in ("a", "b")}
        result = compare(labels, scores, delta_max=30, resamples=resamples, random_state=rng)
        found.update(d.score for d in result.differences if "is better than" in str(d))
    return found


def above(events, series, sets, *, resamples=400, seed=0):
    """How many of the sets of random scores are called better than the best trivial baseline, by score."""
    rng = np.random.default_rng([seed, events, series])
    found = Counter()
    for _ in range(sets):
        labels = labelled(rng, events, series)
        scores = [rng.random(len(y)) for y in labels]
        account = audit(labels, scores, delta_max=30, random_state=rng)
        result = compare(labels, {"a": scores}, delta_max=30, resamples=resamples, random_state=rng, every=True, thresholds={"a": account.threshold})  # fmt: skip
        rows = account.with_intervals({name: each["a"] for name, each in result.intervals.items()}).evaluation.rows
        found.update({row.name: int("is above the best" in row.verdict) for row in rows})
    return found


@pytest.mark.parametrize("events", [1, 2, 3, 5])
def test_too_few_events_name_no_winner_and_the_result_says_so(events):
    assert sum(different(events, 1, 10).values()) == 0
    labels = labelled(np.random.default_rng(events), events, 1)
    result = compare(labels, {"good": [y + 0.0 for y in labels], "none": [0.0 * y for y in labels]}, resamples=100)
    assert "is better than" not in str(result)
    assert min(d.p for d in result.differences) >= 2 * 2.0**-events
    assert f"only {events} event" in result.verdict[-1]
    assert "it takes 6 to tell scores apart at 5 %" in result.verdict[-1]
    assert all(math.isnan(low) and math.isnan(high) for *_, low, high in result.rows()), "no interval of so few"
    assert " to +" not in str(result)


@pytest.mark.parametrize(("events", "series"), [(6, 1), (7, 1), (9, 3)])
def test_random_scores_are_told_apart_no_more_often_than_the_level(events, series):
    found = different(events, series, 100)
    assert max(found.values()) <= binom.ppf(0.999, 100, 0.05), found


def test_six_events_are_enough_for_a_plain_difference():
    labels = labelled(np.random.default_rng(0), 6, 1)
    result = compare(labels, {"good": [y + 0.0 for y in labels], "none": [0.0 * y for y in labels]}, resamples=100)
    assert str(result.differences[0]).startswith("SPD: good is better than none")
    assert result.differences[0].p == 2 * 2.0**-6
    strict = compare(labels, {"good": [y + 0.0 for y in labels], "none": [0.0 * y for y in labels]}, resamples=100, level=0.99)  # fmt: skip
    assert "are only 6 events: it takes 8 to tell scores apart at 1 %" in strict.verdict[-1]


def test_random_scores_are_seldom_above_the_best_trivial_baseline():
    assert sum(above(5, 1, 6).values()) == 0
    found = above(8, 1, 12)
    assert max(found.values()) <= binom.ppf(0.999, 12, 0.05), found


if __name__ == "__main__":
    count, beside = int(sys.argv[1]), sys.argv[2:] == ["baselines"]
    for events, series in LAYOUTS:
        found = above(events, series, count) if beside else different(events, series, count)
        shares = ", ".join(f"{name} {100 * times / count:.1f}" for name, times in sorted(found.items()))
        print(f"{events:2} events, {series} series: {shares} % of {count}", flush=True)

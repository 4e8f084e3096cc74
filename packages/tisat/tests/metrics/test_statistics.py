"""Intervals cover, pairs are kept, ranks agree with the book."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import rankdata

from tisat.errors import InputError, ParameterError
from tisat.metrics.statistics import interval_of, mean_ranks, resampled_means, resampling_weights

# Demsar, JMLR 7 (2006), Table 5(a): critical values of the two-tailed Nemenyi test at 0.05, for 2 to 10 systems
DEMSAR = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)


@pytest.mark.parametrize(("k", "q"), list(enumerate(DEMSAR, start=2)))
def test_the_critical_difference_is_demsars(k, q):
    rng = np.random.default_rng(k)
    found = mean_ranks(rng.random((14, k)), [str(i) for i in range(k)])
    assert found.critical_difference == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * 14)), abs=2e-3)


def test_mean_ranks_are_ranks_with_ties_shared_and_incomplete_blocks_left_out():
    table = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 5.0], [np.nan, 1.0, 2.0], [0.2, 0.1, 0.3]])
    found = mean_ranks(table, ("a", "b", "c"))
    expected = np.mean([rankdata(-row) for row in table[[0, 1, 3]]], axis=0)
    assert dict(zip(found.names, found.ranks, strict=True)) == pytest.approx(dict(zip("abc", expected, strict=True)))
    assert found.blocks == 3


def test_systems_far_apart_are_told_apart_and_twins_are_not():
    rng = np.random.default_rng(0)
    base = rng.random((60, 1))
    found = mean_ranks(np.hstack([base + 5, base + rng.normal(0, 1e-3, (60, 2))]), ("best", "twin", "other twin"))
    assert found.names[0] == "best"
    assert [set(group) for group in found.groups()] == [{"twin", "other twin"}]


def test_ranks_of_too_little_are_refused():
    with pytest.raises(InputError, match="at least two complete blocks"):
        mean_ranks([[1.0, 2.0]], ("a", "b"))
    with pytest.raises(InputError, match="one column for each"):
        mean_ranks([[1.0], [2.0]], ("a",))


def test_weights_are_resamples_and_the_same_for_everybody():
    weights = resampling_weights(7, resamples=500)
    assert (weights.sum(axis=1) == 7).all()
    assert (weights == resampling_weights(7, resamples=500)).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(7), abs=0.2)


def test_a_paired_difference_is_tighter_than_either_figure():
    rng = np.random.default_rng(3)
    hard = rng.normal(0, 1, 40)  # entities differ much, systems little
    a, b = hard + 0.1 + rng.normal(0, 0.05, 40), hard + rng.normal(0, 0.05, 40)
    weights = resampling_weights(40)
    single = interval_of(float(a.mean()), resampled_means(a, weights))
    paired = interval_of(float((a - b).mean()), resampled_means(a, weights) - resampled_means(b, weights))
    assert paired.error < single.error / 5
    assert paired.low > 0
    assert single.low < 0 < single.high


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(4)
    weights = resampling_weights(40, resamples=400)
    hits = 0
    for _ in range(200):
        sample = rng.normal(0, 1, 40)
        found = interval_of(float(sample.mean()), resampled_means(sample, weights))
        hits += found.low <= 0 <= found.high
    assert 0.88 <= hits / 200 <= 0.99


def test_the_standard_error_is_the_textbooks():
    rng = np.random.default_rng(5)
    sample = rng.normal(0, 2, 200)
    found = interval_of(float(sample.mean()), resampled_means(sample, resampling_weights(200)))
    assert found.error == pytest.approx(sample.std() / math.sqrt(200), rel=0.08)


def test_nothing_to_resample_is_undefined_and_wrong_levels_are_refused():
    assert math.isnan(interval_of(0.5, [np.nan]).low)
    with pytest.raises(ParameterError, match="'level' parameter"):
        interval_of(0.5, [1.0], level=1.5)

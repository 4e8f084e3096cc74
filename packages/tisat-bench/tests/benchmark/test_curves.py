"""Counts per entity give back the metrics of the package, pooled, single and resampled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat.alarms.rules import make_rule
from tisat.metrics import spd_score, spd_score_of_active
from tisat.metrics.entity_counts import EntityCounts, counts_of_scores
from tisat.metrics.windows import windows_of
from tisat_bench.rule_counts import counts_of_rule, grid_of


@st.composite
def many_series(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    number = draw(st.integers(1, 4))
    labels, scores = [], []
    for _ in range(number):
        length = int(rng.integers(5, 60))
        labels.append(rng.random(length) < rng.choice([0.0, 0.1, 0.5]))
        score = rng.integers(0, 6, length).astype(float)  # ties
        score[: int(rng.integers(0, 3))] = np.nan
        scores.append(score)
    return labels, scores, draw(st.integers(1, 12))


def counted(labels, scores, delta) -> EntityCounts:
    return counts_of_scores(scores, [windows_of(one, delta) for one in labels])


@settings(deadline=None, max_examples=60)
@given(many_series())
def test_pooled_and_single_scores_are_those_of_the_metric(case):
    labels, scores, delta = case
    if not any(one.any() for one in labels):
        return
    counts, metric = counted(labels, scores, delta), spd_score(labels, scores, delta_max=delta)
    assert counts.pooled()[0] == pytest.approx(float(metric), abs=1e-12)
    assert counts.per_entity() == pytest.approx(np.array(metric.per_series), abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=40)
@given(many_series(), st.integers(0, 2**32 - 1))
def test_a_weight_is_a_repetition(case, seed):
    labels, scores, delta = case
    weights = np.random.default_rng(seed).integers(0, 3, len(labels))
    repeated = [i for i, weight in enumerate(weights) for _ in range(weight)]
    if not any(labels[i].any() for i in repeated) or all(np.isnan(scores[i]).all() for i in repeated):
        return
    expected = spd_score([labels[i] for i in repeated], [scores[i] for i in repeated], delta_max=delta)
    assert counted(labels, scores, delta).pooled(weights)[0] == pytest.approx(float(expected), abs=1e-12)


def test_a_resample_without_events_is_undefined():
    counts = counted([np.array([False, True]), np.array([False, False])], [np.arange(2.0), np.arange(2.0)], 3)
    assert np.isnan(counts.pooled([[0, 1]])[0])


@pytest.mark.parametrize("end", ["restart", "recovery", "cooldown", "endless"])
def test_a_rule_that_restarts_is_counted_as_its_alarms_are(end):
    rng = np.random.default_rng(0)
    labels = [rng.random(400) < 0.02 for _ in range(2)]
    evidence = [rng.normal(-0.5, 1.0, 400) + 3 * label for label in labels]
    rule = make_rule("paper", end=end, cooldown=5)
    windows = [windows_of(label, 10) for label in labels]
    counts = counts_of_rule(evidence, windows, rule)
    family = {
        float(h): [rule.accumulate(one, threshold=float(h)).active for one in evidence] for h in counts.thresholds
    }
    expected = spd_score_of_active(labels, family, delta_max=10)
    assert counts.pooled()[0] == pytest.approx(float(expected), abs=1e-12)
    assert counts.per_entity() == pytest.approx(np.array(expected.per_series), abs=1e-12)
    assert (np.diff(grid_of(evidence, windows, rule)) < 0).all()


def test_the_curve_encloses_the_score():
    rng = np.random.default_rng(1)
    labels = [rng.random(500) < 0.05]
    counts = counted(labels, [rng.random(500) + 0.5 * labels[0]], 8)
    nadd, precision = counts.curve()
    assert (np.diff(nadd) < 0).all()
    assert (-np.diff(np.append(1.0, nadd)) * precision).sum() == pytest.approx(counts.pooled()[0], abs=1e-12)


def test_counts_survive_a_file(tmp_path):
    counts = counted([np.array([False, True, False])], [np.array([0.0, 2.0, 1.0])], 2)
    again = EntityCounts.of_arrays(counts.to_arrays())
    assert again.pooled() == counts.pooled()
    assert again.delta_max == 2

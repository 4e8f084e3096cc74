"""The period curve of a resample: what is resampled, what is trusted, and which line goes on."""

from types import SimpleNamespace

import numpy as np
import pytest

from tisat.alarms import bootstrap
from tisat.alarms.bootstrap import block_length, period_curve


def rule(*, bounded):
    """One whose statistic is the evidence itself."""

    def accumulate(sample, *, threshold):
        return SimpleNamespace(statistic=sample, active=sample >= threshold)

    return SimpleNamespace(bounded=bounded, positive=True, accumulate=accumulate)


def sampled(monkeypatch, sample):
    """The lengths that are asked for; ``sample`` is given, whatever is asked for."""
    asked = []
    monkeypatch.setattr(bootstrap, "resample", lambda evidence, *, length, block, rng: asked.append(length) or sample)
    return asked


def test_as_much_is_resampled_as_the_bounds_allow(monkeypatch):
    asked = sampled(monkeypatch, np.full(bootstrap.LONGEST, -1.0))
    for n in (10, 4000, 9000):
        period_curve(rule(bounded=True), [np.zeros(n)], rng=np.random.default_rng(0))
    assert asked == [100_000, 160_000, 200_000]


def test_where_all_but_one_time_step_is_quiet_the_threshold_is_above_that_one(monkeypatch):
    sample = np.append(np.zeros(159_999), 5.0)
    sampled(monkeypatch, sample)
    found = period_curve(rule(bounded=True), [np.zeros(4000)], rng=np.random.default_rng(0))
    assert found.threshold(10.0) == found.threshold(1e9) > 5.0


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_heavy_tail_goes_on_over_the_logarithm_of_the_threshold_in_any_unit(monkeypatch, unit):
    heavy, light = ((1 - (np.arange(160_000) + 0.5) / 160_000) ** -1.0, -np.log(1 - np.arange(160_000) / 160_000))
    shuffled = np.random.default_rng(0).permutation(160_000)
    found = {}
    for name, sample in (("heavy", heavy), ("light", light)):
        for bounded in (False, True):
            sampled(monkeypatch, unit * sample[shuffled])
            curve = period_curve(rule(bounded=bounded), [np.zeros(4000)], rng=np.random.default_rng(0))
            found[name, bounded] = curve.logarithmic
            assert curve.trusted == (8000 if bounded else 4000 / 3)
    assert found == {("heavy", False): True, ("heavy", True): False, ("light", False): False, ("light", True): False}


@pytest.mark.parametrize(("quiet", "found"), [(4, 16), (5, 6)])
def test_correlation_is_lost_for_good_after_five_lags_in_the_noise(monkeypatch, quiet, found):
    correlated = np.zeros(500)
    correlated[:3] = correlated[3 + quiet] = 0.9
    monkeypatch.setattr(bootstrap, "autocorrelation", lambda evidence, *, lags: correlated[:lags])
    assert block_length(np.zeros(4000)) == found

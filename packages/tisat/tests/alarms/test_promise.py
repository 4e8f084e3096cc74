"""The promise on normal plants that nothing else uses: an exact bound instead of a fixed tolerance."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom, poisson

from tisat.alarms.budget import Budget
from tisat.datasets.synthetic import make_plant
from tisat.errors import CalibrationWarning
from tisat.series import Series
from tisat.watch import Watch

DAY = 1440
SEEDS = range(770_000, 770_010)
LEVEL = 0.025  # of one plant's test
SURELY = 1e-3  # how unlikely so many broken plants may be where every promise is kept


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["prism", "mahalanobis", "linear-last"])
@pytest.mark.parametrize("channels", [4, 8])
def test_the_budget_is_kept_while_a_channel_is_dead(detector, channels):
    """Two days with one channel dead, each channel in turn: within the exact bound of the two days' allowance."""
    episodes = broken = 0
    for seed in SEEDS:
        plant = make_plant(
            n_train=14 * DAY, n_test=600 + 2 * DAY, n_channels=channels, n_faults=0, random_state=seed + 500
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            watch = Watch(detector, budget="3/day").fit(plant.train)
        values = np.array(plant.test.values)
        values[600:, seed % channels] = np.nan
        alarms = watch.alarms(Series(values, timestamps=plant.test.timestamps, channels=plant.test.channels))
        found = sum(alarm.raised >= 600 for alarm in alarms)
        broken += poisson.sf(found - 1, 6.0) < LEVEL
        episodes += found
    print(f"{detector} {channels} channels: {episodes} episodes, {6 * len(SEEDS)} allowed, {broken} significantly over")
    assert binom.sf(broken - 1, len(SEEDS), LEVEL) > SURELY
    assert poisson.sf(episodes - 1, 1.25 * 6 * len(SEEDS)) > SURELY


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["linear-last", "prism"])
@pytest.mark.parametrize("budget", ["1/day", "3/day"])
def test_no_more_plants_break_their_budget_than_chance_allows(detector, budget):
    broken = episodes = 0
    allowed = 0.0
    for seed in SEEDS:
        plant = make_plant(n_train=14 * DAY, n_test=7 * DAY, n_faults=0, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            watch = Watch(detector, budget=budget).fit(plant.train)
        found = len(watch.alarms(plant.test))
        expected = 7 * DAY / Budget.parse(budget, period=watch.period).time_steps
        broken += poisson.sf(found - 1, expected) < LEVEL
        episodes += found
        allowed += expected
    print(
        f"{detector} {budget}: {episodes} episodes, {allowed:.0f} allowed, {broken} of {len(SEEDS)} significantly over"
    )
    assert binom.sf(broken - 1, len(SEEDS), LEVEL) > SURELY
    assert (
        poisson.sf(episodes - 1, 1.25 * allowed) > SURELY
    )  # all of them together, with the doubt of one calibration each

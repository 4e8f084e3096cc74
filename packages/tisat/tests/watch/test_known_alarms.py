"""Alarms that a pattern knows."""

import numpy as np
import pytest

import tisat
from tisat.alarms.patterns import propose_patterns


@pytest.fixture(scope="module")
def spiky():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 2))
    new = rng.normal(size=(3000, 2))
    new[np.arange(300, 3000, 400), 0] += 12.0
    return tisat.Watch("mahalanobis", budget="1/500 rows").fit(rows), new


def test_alarms_that_a_pattern_knows_are_not_called_a_new_pattern(spiky):
    watch, new = spiky
    before = watch.alarms(new)
    assert before.movement.alike > 2
    for proposal in propose_patterns(before.alarms, {alarm.raised: "expected" for alarm in before.alarms}):
        watch.adopt(proposal)
    after = watch.alarms(new)
    assert [alarm.raised for alarm in after] == [alarm.raised for alarm in before]
    assert sum(not alarm.known for alarm in after) >= after.movement.alike
    assert after.movement.alike < before.movement.alike

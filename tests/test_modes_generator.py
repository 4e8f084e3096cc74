"""The plant with operating modes: deterministic, normal before its faults, each fault where its label says."""

import numpy as np
import pytest
from modes_generator import CHANNELS, DAY, MODE_FAULTS, SUNDAY, WEEK, make_plant_with_modes

from tisat.datasets.profile import look
from tisat.errors import ParameterError


@pytest.fixture(scope="module")
def plant():
    return make_plant_with_modes(n_test=2 * WEEK, n_normal=WEEK, random_state=5)


def test_a_seed_is_a_plant(plant):
    again = make_plant_with_modes(n_test=2 * WEEK, n_normal=WEEK, random_state=5)
    assert np.array_equal(plant.train.values, again.train.values)
    assert np.array_equal(plant.test.values, again.test.values)
    assert plant.faults == again.faults
    other = make_plant_with_modes(n_test=2 * WEEK, n_normal=WEEK, random_state=6)
    assert not np.array_equal(plant.train.values, other.train.values)


def test_every_kind_once_after_the_normal_week(plant):
    assert sorted(fault.kind for fault in plant.faults) == sorted(MODE_FAULTS)
    assert all(WEEK <= fault.start < fault.stop <= 2 * WEEK for fault in plant.faults)
    assert len(plant.test.events) == len(plant.faults)
    for fault in plant.faults:
        day = (plant.test.timestamps[fault.start].astype("datetime64[D]").astype(int) + 3) % 7
        assert (day == 6) == (fault.kind == SUNDAY)
        assert tuple(CHANNELS[c] for c in fault.channels) == MODE_FAULTS[fault.kind]


def test_training_has_the_modes_it_says(plant):
    values = dict(zip(CHANNELS, plant.train.values.T, strict=True))
    running, sundays = values["pump_running"], (np.arange(len(plant.train)) // DAY) % 7 == 6
    assert set(np.unique(running)) == set(np.unique(values["drain_valve"])) == {0.0, 1.0}
    assert (np.diff(running) < 0).sum() >= 30  # stops, dozens of them
    assert not running[sundays].any()
    kinds = {one.name: one.kind for one in look(plant.train).channels}
    assert kinds["pump_running"] == kinds["drain_valve"] == "on/off"
    steps = np.diff(values["total_flow"])
    assert ((steps >= 0) | (steps < -1000)).all()  # a counter, and its limit


def test_faults_act_on_the_machine_and_nowhere_else(plant):
    healthy = make_plant_with_modes(n_test=2 * WEEK, n_normal=WEEK, n_faults=0, random_state=5)
    assert healthy.faults == ()
    stuck = next(fault for fault in plant.faults if fault.kind == "stuck sensor")
    frozen = plant.test.values[stuck.start : stuck.stop, CHANNELS.index("pressure")]
    assert (frozen == frozen[0]).all()
    counter = next(fault for fault in plant.faults if fault.kind == "counter stuck")
    count = plant.test.values[counter.start : counter.stop, CHANNELS.index("total_flow")]
    assert (count == count[0]).all()
    valve = next(fault for fault in plant.faults if fault.kind == "valve stuck")
    assert not plant.test.values[valve.start : valve.stop, CHANNELS.index("drain_valve")].any()


def test_refusals():
    with pytest.raises(ParameterError, match="must leave two faults per working day"):
        make_plant_with_modes(n_test=DAY, n_normal=0)
    with pytest.raises(ParameterError, match="must be among valve stuck"):
        make_plant_with_modes(kinds=["nonsense"])

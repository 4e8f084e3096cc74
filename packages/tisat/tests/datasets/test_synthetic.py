import numpy as np
import pytest

from tisat.datasets.synthetic import DAY, KINDS, PUMP_FAULTS, WEEK, make_plant, make_pump
from tisat.errors import ParameterError


@pytest.fixture(scope="module")
def plant():
    return make_plant(random_state=5)


def test_the_same_seed_gives_the_same_plant(plant):
    again, other = make_plant(random_state=5), make_plant(random_state=6)
    np.testing.assert_array_equal(plant.test.values, again.test.values)
    assert plant.faults == again.faults
    assert not np.array_equal(plant.test.values, other.test.values)


def test_labels_are_the_faults(plant):
    assert plant.test.events.tolist() == [[fault.start, fault.stop] for fault in plant.faults]
    assert [fault.kind for fault in plant.faults] == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_touches_its_channels_and_its_rows_only(kind):
    whole = make_plant(kinds=[kind], n_faults=3, random_state=1)
    healthy = make_plant(kinds=[kind], n_faults=0, random_state=1)
    changed = whole.test.values != healthy.test.values
    for fault in whole.faults:
        inside = changed[fault.start : fault.stop]
        assert inside[:, list(fault.channels)].any(axis=0).all(), "every named channel is changed"
        others = [c for c in range(8) if c not in fault.channels]
        assert not inside[:, others].any()
    assert not changed[~whole.test.labels].any()
    assert not np.isnan(whole.test.values).any()


def test_channels_are_coupled(plant):
    assert np.abs(np.corrcoef(plant.train.values.T)).min() > 0.5


def test_noise_grows_with_the_load():
    power = make_plant(random_state=3).train.values[:, 3]  # rises with the load, and has little cycle of its own
    steps = np.abs(np.diff(power))
    high = power[:-1] > np.median(power)
    assert steps[high].mean() > 1.2 * steps[~high].mean()


def test_the_test_continues_the_training_data(plant):
    assert plant.test.timestamps[0] - plant.train.timestamps[-1] == np.timedelta64(60, "s")
    step = np.abs(plant.test.values[0] - plant.train.values[-1])
    assert (step < 8 * np.abs(np.diff(plant.train.values, axis=0)).std(axis=0)).all()


def test_one_channel_and_bad_arguments():
    assert make_plant(n_channels=1, random_state=0).test.n_channels == 1
    with pytest.raises(ParameterError, match="must be among spike"):
        make_plant(kinds=["nonsense"])
    with pytest.raises(ParameterError, match="leave room"):
        make_plant(n_test=500)


@pytest.mark.parametrize("valve", [False, True])
def test_a_pump_is_one_week_and_two_days_with_three_gross_faults(valve):
    pump, healthy = make_pump(valve=valve, random_state=4), make_pump(valve=valve, faults=(), random_state=4)
    assert pump.train.values.shape == (WEEK, 5 + valve)
    assert len(pump.test) == 2 * DAY
    assert pump.train.period == 60.0
    assert pump.test.timestamps[0] - pump.train.timestamps[-1] == np.timedelta64(60, "s")
    np.testing.assert_array_equal(pump.train.values, healthy.train.values)
    changed = pump.test.values != healthy.test.values
    for fault in pump.faults:
        name = pump.test.channels[fault.channels[0]]
        rows = changed[fault.start : fault.stop, fault.channels[0]]
        assert rows[1:].all()
        assert PUMP_FAULTS[fault.kind][0] == name
    assert changed.sum() <= 320
    assert (changed.any(axis=1) <= (pump.test.labels == 1)).all()
    if valve:
        opened = pump.train.values[:, 5]
        assert set(np.unique(opened)) == {0.0, 1.0}
        assert 0.05 < opened.mean() < 0.4


def test_a_pump_refuses_faults_it_does_not_have_or_has_no_room_for():
    with pytest.raises(ParameterError, match="among vibration doubled"):
        make_pump(faults=["nonsense"])
    with pytest.raises(ParameterError, match="within n_test"):
        make_pump(n_test=1000)
    assert len(make_pump(n_test=800, faults=["vibration doubled"]).faults) == 1

"""Faults put into a series of one's own: where they are, what they touch, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat.datasets.synthetic import KINDS, inject_faults
from tisat.errors import ParameterError
from tisat.series import Series


def walk(length=3000, channels=6, seed=0):
    return Series(np.cumsum(np.random.default_rng(seed).standard_normal((length, channels)), axis=0), name="walk")


@given(st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_only_the_labelled_rows_of_the_named_channels_differ(n_faults, seed):
    healthy = walk(seed=seed)
    faulty, faults = inject_faults(healthy, n_faults=n_faults, random_state=seed)
    touched = np.zeros(healthy.values.shape, dtype=bool)
    for fault in faults:
        touched[fault.start : fault.stop, list(fault.channels)] = True
    differs = np.asarray(faulty.values) != np.asarray(healthy.values)
    assert not (differs & ~touched).any()
    assert [(fault.start, fault.stop) for fault in faults] == [
        tuple(event) for event in zip(*edges(faulty.labels), strict=True)
    ]
    stretch = len(healthy) // n_faults
    for fault in faults:
        assert fault.start % stretch >= stretch // 4
        assert fault.stop - fault.start <= max(3, stretch // 3)


def edges(labels):
    steps = np.diff(np.concatenate([[0], labels.astype(int), [0]]))
    return np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist()


def test_the_same_seed_gives_the_same_faults_and_another_others():
    one, same, other = (inject_faults(walk(), n_faults=4, random_state=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values, same.values)
    assert (np.asarray(one.values) != np.asarray(other.values)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_can_be_asked_for_and_its_size_scales_it(kind):
    small, large = (inject_faults(walk(), kinds=[kind], size=(size, size), random_state=3)[0] for size in (0.5, 5.0))
    healthy = np.asarray(walk().values)
    moved = [np.abs(np.asarray(one.values) - healthy).max() for one in (small, large)]
    assert moved[0] > 0
    if kind in ("spike", "level shift", "slow drift", "changed frequency"):
        assert moved[1] == pytest.approx(10 * moved[0])


def test_a_stuck_sensor_on_a_channel_that_never_moves_is_no_fault():
    still = Series(np.ones((400, 1)))
    faulty, faults = inject_faults(still, kinds=["stuck sensor"])
    assert faults == ()
    assert not faulty.labels.any()


def test_bad_input_is_refused_with_a_sentence():
    with pytest.raises(ParameterError, match="must have 30 rows a fault"):
        inject_faults(walk(100), n_faults=4)
    with pytest.raises(ParameterError, match="'kinds' parameter of inject_faults"):
        inject_faults(walk(), kinds=["gremlin"])

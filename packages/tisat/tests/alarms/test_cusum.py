"""The accumulators: the definition, the policies, and one call or many."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_sequential as naive
from tisat.alarms import Cusum, WindowSum
from tisat.alarms.cusum import POLICIES
from tisat.errors import ParameterError

values = st.one_of(st.integers(-8, 8).map(lambda i: i / 4), st.just(math.nan), st.just(1e200))
sequences = st.lists(values, min_size=1, max_size=60)
thresholds = st.integers(1, 12).map(lambda i: i / 4)


def same(statistic, expected):
    return math.isnan(statistic) if expected is None else statistic == expected


@given(sequences, thresholds, st.sampled_from(sorted(POLICIES)), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_the_cusum_is_its_definition(evidence, threshold, end, cooldown):
    trace = Cusum(threshold=threshold, end=end, cooldown=cooldown).run(evidence)
    for t, (statistic, active, onset) in enumerate(naive.cusum(evidence, threshold, end, cooldown)):
        assert same(trace.statistic[t], statistic)
        assert trace.active[t] == active
        assert trace.onset[t] == onset


@given(sequences, thresholds, st.integers(1, 5), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_the_window_sum_is_its_definition(evidence, threshold, length, hold):
    trace = WindowSum(threshold=threshold, length=length, hold=hold).run(evidence)
    for t, (statistic, _, onset) in enumerate(naive.window_sum(evidence, threshold, length, hold)):
        assert trace.onset[t] == onset
        if statistic is None:
            assert math.isnan(trace.statistic[t])
            assert not trace.active[t]
        else:
            assert trace.statistic[t] == pytest.approx(statistic)
            assert trace.active[t] == (trace.statistic[t] >= threshold)


@given(
    sequences,
    st.lists(st.integers(0, 60), max_size=4),
    st.sampled_from(["cusum", "window"]),
    st.sampled_from(sorted(POLICIES)),
)
@settings(max_examples=50, deadline=None)
def test_an_array_in_pieces_and_through_a_saved_state_gives_the_same_to_the_bit(evidence, cuts, kind, end):
    def make():
        return (
            Cusum(threshold=1.5, end=end, cooldown=3) if kind == "cusum" else WindowSum(threshold=1.5, length=3, hold=4)
        )

    whole = make().run(evidence)
    piece = make()
    edges = [0, *sorted(cut for cut in cuts if cut < len(evidence)), len(evidence)]
    traces = []
    for start, stop in pairwise(edges):
        fresh = make()
        fresh.restore(piece.state())  # as after a restart of the process
        piece = fresh
        traces.append(piece.run(evidence[start:stop]))
    for field in ("statistic", "active", "onset"):
        joined = np.concatenate([getattr(trace, field) for trace in traces])
        np.testing.assert_array_equal(joined, getattr(whole, field))


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=80), thresholds, st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_what_each_policy_promises(evidence, threshold, cooldown):
    traces = {end: Cusum(threshold=threshold, end=end, cooldown=cooldown).run(evidence) for end in POLICIES}
    raised = {end: np.flatnonzero(np.diff(trace.active.astype(int), prepend=0) == 1) for end, trace in traces.items()}
    for trace in traces.values():
        assert (trace.statistic >= 0).all()
    first = [found[0] if len(found) else None for found in raised.values()]
    assert len(set(first)) == 1  # policies differ only after the first alarm
    assert (traces["recovery"].statistic <= threshold).all()
    if len(raised["cooldown"]) > 1:
        assert np.diff(raised["cooldown"]).min() > cooldown
    over = traces["recovery"].active
    for t in np.flatnonzero(over[:-1] & ~over[1:]) + 1:
        assert traces["recovery"].statistic[t] == 0


def test_update_is_run_of_one():
    evidence = np.random.default_rng(0).normal(-0.2, 1.0, 200)
    cusum = Cusum(threshold=2.0)
    one_by_one = [cusum.step(e)[:2] for e in evidence]
    trace = Cusum(threshold=2.0).run(evidence)
    assert one_by_one == list(zip(trace.statistic.tolist(), trace.active.tolist(), strict=True))


def test_the_repr_is_the_constructor_call():
    for made in (Cusum(threshold=2.0, end="cooldown", cooldown=7), WindowSum(threshold=2.0, length=3, hold=4)):
        again = eval(repr(made), {type(made).__name__: type(made)})
        assert repr(again) == repr(made)
        assert again.__dict__.keys() == made.__dict__.keys()
        assert again.threshold == 2.0


def test_bad_arguments_are_refused_in_a_sentence():
    with pytest.raises(ParameterError, match=r"'threshold' parameter of Cusum must be a number > 0\. Got 0\.0"):
        Cusum(threshold=0.0)
    with pytest.raises(ParameterError, match="'end' parameter of Cusum must be one of"):
        Cusum(threshold=1.0, end="never")

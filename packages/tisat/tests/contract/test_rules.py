"""The contract tests of every alarm rule: run over the registry, so that a new rule is under them without being listed."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat.alarms.rules import RULES, AlarmRule, Scored, make_rule, register_rule
from tisat.errors import NotFittedError, ParameterError

VIEWS = 3
FLOATS = st.one_of(st.floats(0, 60), st.just(float("nan")), st.sampled_from([0.0, 1e100, 1e308]))


def scored(values, m=2):
    """Points, scores and views of as many rows as there are values; all unknown where the value is NaN."""
    column = np.asarray(values, dtype=np.float64)
    points = np.sqrt(np.abs(column))[:, None] * np.linspace(1.0, 0.5, m)
    views = np.abs(column)[:, None] * np.linspace(1.0, 0.2, VIEWS)
    return Scored.of(points, np.abs(column), views)


def fitted(name):
    normal = np.random.default_rng(0).exponential(size=400)
    return make_rule(name).fit(scored(normal))


THRESHOLD = 4.0


@pytest.mark.parametrize("name", RULES)
@given(st.lists(FLOATS, min_size=1, max_size=80), st.lists(st.integers(0, 80), max_size=6))
@settings(max_examples=25, deadline=None)
def test_any_chunking_and_any_restart_give_the_batch_to_the_bit(name, values, cuts):
    rule, rows = fitted(name), scored(values)
    evidence, trace = rule.start(threshold=THRESHOLD).run(rows)
    run, start = rule.start(threshold=THRESHOLD), 0
    for stop in [*sorted({c for c in cuts if 0 < c < len(rows)}), len(rows)]:
        fresh = rule.start(threshold=THRESHOLD)
        fresh.restore(run.state())  # as if the process had died here
        run = fresh
        found, part = run.run(rows.rows(slice(start, stop)))
        np.testing.assert_array_equal(found, evidence[start:stop])
        np.testing.assert_array_equal(part.statistic, trace.statistic[start:stop])
        np.testing.assert_array_equal(part.active, trace.active[start:stop])
        np.testing.assert_array_equal(part.onset, trace.onset[start:stop])
        start = stop


@pytest.mark.parametrize("name", RULES)
@given(st.lists(FLOATS, min_size=1, max_size=60))
@settings(max_examples=25, deadline=None)
def test_finite_rows_have_a_finite_statistic_and_unknown_rows_have_none(name, values):
    rows = scored(values)
    _, trace = fitted(name).start(threshold=THRESHOLD).run(rows)
    np.testing.assert_array_equal(np.isnan(trace.statistic), ~rows.known)
    assert np.isfinite(trace.statistic[rows.known]).all()
    assert not trace.active[~rows.known].any()


@pytest.mark.parametrize("name", RULES)
def test_a_prefix_is_judged_as_the_beginning_of_the_whole(name):
    rule, rows = fitted(name), scored(np.random.default_rng(1).exponential(size=200) * 5)
    _, whole = rule.start(threshold=THRESHOLD).run(rows)
    for stop in (1, 7, 100):
        _, part = rule.start(threshold=THRESHOLD).run(rows.rows(slice(0, stop)))
        np.testing.assert_array_equal(part.statistic, whole.statistic[:stop])
        np.testing.assert_array_equal(part.active, whole.active[:stop])


@pytest.mark.parametrize("name", RULES)
def test_a_higher_threshold_is_never_reached_sooner_nor_more_of_the_time(name):
    rule = fitted(name)
    evidence = rule.evidence(scored(np.random.default_rng(2).exponential(size=400) * 4))
    traces = [rule.accumulate(evidence, threshold=h) for h in (1.0, 2.0, 4.0, 8.0, 1e300)]
    first = [int(np.argmax(np.append(trace.active, True))) for trace in traces]
    assert first == sorted(first)
    if not rule.feeds_back:  # then one statistic serves every threshold
        for trace in traces[1:]:
            np.testing.assert_array_equal(trace.statistic, traces[0].statistic)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_it_is_and_its_options_are_plain_values(name):
    cls = RULES[name]
    assert cls.name == name
    assert cls.title
    rule = make_rule(name)
    assert json.loads(json.dumps(rule.params())) == rule.params()
    assert repr(eval(repr(rule), {cls.__name__: cls})) == repr(rule)
    with pytest.raises(NotFittedError, match=f"{cls.__name__} must be fitted"):
        make_rule(name).start(threshold=1.0)
    with pytest.raises(ParameterError, match="must have options among"):
        make_rule(name, no_such_option=1)


def test_a_name_that_is_taken_is_not_given_away():
    class Other(AlarmRule):
        name = "excess"

    with pytest.raises(ParameterError, match="'excess' must be free"):
        register_rule(Other)
    assert register_rule(RULES["excess"]) is RULES["excess"]

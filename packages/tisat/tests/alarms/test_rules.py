"""The rules: one interface, the same answers offline and online, and the excess rule against its definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_sequential as naive
from tisat.alarms import ExcessRule, make_rule
from tisat.alarms.cusum import WindowSum
from tisat.alarms.rules import RULES, Scored
from tisat.alarms.rules.excess import new_level
from tisat.errors import InputError, ParameterError

CASES = [
    ("threshold", {}, 3.0),
    ("threshold", {"hold": 5}, 3.0),
    ("excess", {"window": 50}, 1.0),
    ("excess", {"window": 7, "lag": 0, "length": 3, "hold": 1}, 0.2),
    ("drift", {}, 5.0),
    ("drift", {"drift": 1.5, "end": "restart"}, 4.0),
    ("paper", {}, 2.0),
    ("paper", {"form": "weibull", "end": "recovery"}, 5.0),
    ("paper", {"form": "log", "k": 3, "end": "cooldown", "cooldown": 4}, 1.0),
]


def data(m, seed=0):
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(300, m))
    points = rng.normal(size=(200, m))
    points[80:100] += 3.0
    points[120:125] = np.nan
    return normal, points


@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize(("name", "options", "threshold"), CASES)
def test_rows_one_by_one_give_the_batch_to_the_bit_and_survive_a_restart(name, options, threshold, m):
    normal, points = data(m)
    rule = make_rule(name, **options).fit(normal)
    scored = Scored.of(points)
    evidence, trace = rule.start(threshold=threshold).run(scored)
    np.testing.assert_array_equal(evidence, rule.evidence(points))
    np.testing.assert_array_equal(trace.statistic, rule.accumulate(evidence, threshold=threshold).statistic)
    run = rule.start(threshold=threshold)
    contributing = rule.contributions(points)
    for t in range(len(points)):
        if t % 37 == 5:
            fresh = rule.start(threshold=threshold)
            fresh.restore(run.state())
            run = fresh
        found = run.step(scored.rows(slice(t, t + 1)))
        expected = (evidence[t], trace.statistic[t], trace.active[t], trace.onset[t])
        np.testing.assert_array_equal(found, expected)
        if not np.isnan(points[t]).any():
            assert run.contribution(points[t]).tolist() == contributing[t].tolist()
    assert trace.active.any()
    assert not trace.active[120:125].any()
    assert np.isnan(trace.statistic[120:125]).all()


@pytest.mark.parametrize(("name", "options", "threshold"), CASES)
def test_an_alarm_at_a_higher_threshold_comes_no_sooner(name, options, threshold):
    normal, points = data(2)
    rule = make_rule(name, **options).fit(normal)
    evidence = rule.evidence(points)
    first = [
        np.argmax(np.append(rule.accumulate(evidence, threshold=h).active, True))
        for h in threshold * np.array([0.5, 1, 2, 4])
    ]
    assert first == sorted(first)


@given(
    st.lists(st.one_of(st.floats(-5, 50), st.just(float("nan"))), min_size=1, max_size=40),
    st.integers(2, 9), st.integers(0, 4), st.floats(1.0, 4.0), st.floats(0.3, 0.95), st.integers(1, 12),
    st.integers(0, 4), st.integers(1, 5), st.integers(2, 20), st.integers(0, 99), st.integers(2, 12), st.floats(0.0, 4.0),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_the_excess_is_its_definition(
    scores, window, lag, clip, quantile, warm, enter, hold, lasting, seed, momentary_window, gate
):
    normal = np.random.default_rng(seed).exponential(size=(60, 2)) * [1.0, 3.0]
    options = {"window": window, "lag": lag, "clip": clip, "quantile": quantile, "warm": warm, "enter": enter}
    momentary = {"momentary_window": momentary_window, "gate": gate}
    rule = ExcessRule(**options, **momentary, hold=hold, length=hold + 1, lasting=lasting)
    rule.fit(Scored.of(normal, views=normal, momentary=(1,)))
    values = np.column_stack([scores, scores[::-1]])
    found = rule.evidence(values, scores=values[:, 0], views=values)
    for v, of_view in enumerate((options, {**options, "window": momentary_window, "gate": gate})):
        expected = naive.excess(
            values[:, v], level=rule.level_[v], centre=rule.centre_[v], gap=rule.length, lasting=lasting, **of_view
        )
        known = ~np.isnan(values[:, v])
        np.testing.assert_array_equal(found[known, v], np.array(expected)[known])
        unknown = found[~known, v]  # a view that is missing says nothing, unless all are
        np.testing.assert_array_equal(np.isnan(unknown), np.isnan(values[~known]).all(axis=1))
    evidence = np.nan_to_num(found)
    np.testing.assert_allclose(
        rule.accumulate(evidence, threshold=1.0).statistic,
        naive.compressed_sum(evidence.tolist(), length=rule.length, hold=hold, unit=rule.unit),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize(("above", "back"), [(0, True), (1, True), (2, False)])
def test_the_normal_level_is_back_where_one_score_in_twenty_is_above_it(above, back):
    options = {"window": 30, "lag": 0, "clip": 3.0, "quantile": 0.9, "warm": 20, "enter": 2, "lasting": 20}
    rule = ExcessRule(**options, length=2, hold=1).fit(np.linspace(0.0, 1.0, 60))
    changed, later = [5.0] * 20, [0.5] * 17 + [2.0] * above + [0.5] * (3 - above)
    scores = np.array([*changed, *later, 2.0])
    found = rule.evidence(scores)
    expected = naive.excess(scores, level=rule.level_[0], centre=rule.centre_[0], gap=rule.length, **options)
    np.testing.assert_array_equal(found, expected)
    assert (found[-1] > 0) is np.bool_(back)


def test_the_excess_is_its_definition_while_levels_change_and_come_back():
    rng = np.random.default_rng(0)
    for lag, gap, high in itertools.product(range(3), range(2, 6), (2.0, 9.0)):
        options = {"window": 12, "lag": lag, "clip": 3.0, "quantile": 0.7, "warm": 6, "enter": 1, "lasting": 20}
        rule = ExcessRule(**options, length=gap, hold=1).fit(np.linspace(0.0, 1.0, 60))
        normal = 0.2 + 0.4 * rng.random(20)
        normal[rng.integers(15, 20)] = high  # one of twenty is above: the level is back all the same
        scores = np.concatenate([5.0 + rng.random(20), normal, rng.choice([0.6, 2.0, 3.0], 30)])
        expected = naive.excess(scores, level=rule.level_[0], centre=rule.centre_[0], gap=gap, **options)
        found = rule.evidence(scores)
        np.testing.assert_array_equal(found, expected)
        assert (found[40:] > 0).any()


def test_views_measured_from_their_own_level_keep_it_and_a_score_of_its_own_is_measured():
    own = np.linspace(-2.0, 3.0, 60)
    rule = ExcessRule().fit(own, views=np.column_stack([own, own + 2.0]))
    assert (rule.centre_.tolist(), rule.level_[0]) == ([-1.0, np.median(own + 2.0)], 0.0)
    alone = ExcessRule().fit(own)
    assert (alone.centre_[0], alone.level_[0]) == (np.median(own), np.quantile(own, alone.quantile))
    assert [alone.tail(views) for views in (1, 3)] == [(1.3, 1.0), (2.8, 1.0)]


def test_the_score_of_a_point_is_itself_or_the_mean_of_its_squares():
    assert Scored.of([-1.0, 2.0]).scores.tolist() == [-1.0, 2.0]
    assert Scored.of([[1.0, -2.0], [3.0, 4.0]]).scores.tolist() == [2.5, 12.5]


def test_the_level_of_a_change_for_good_is_the_lowest_of_its_thirds():
    for raw, lowest in (([9.0], 9.0), ([5.0, 1.0, 9.0], 1.0), ([8.0, 9.0, 4.0, 7.0, 6.0, 5.0], 6.0)):
        assert new_level(np.array(raw), 1.0) == lowest


def test_one_view_orders_time_steps_as_the_plain_sum_does():
    normal, points = data(1)
    rule = ExcessRule(window=50).fit(normal)
    evidence = rule.evidence(points)
    plain = WindowSum(threshold=1.0, length=rule.length, hold=rule.hold).run(evidence).statistic
    statistic = rule.accumulate(evidence, threshold=1.0).statistic
    np.testing.assert_allclose(statistic, np.log1p(plain / rule.unit), rtol=1e-12)


@given(st.floats(0.01, 1e4), st.floats(-1e3, 1e3))
@settings(max_examples=30, deadline=None)
def test_the_unit_and_the_zero_of_a_score_do_not_matter_to_the_excess(unit, zero):
    normal, points = data(1)
    plain = ExcessRule(window=40).fit(normal).evidence(points)
    moved = ExcessRule(window=40).fit(normal * unit + zero).evidence(points * unit + zero)
    np.testing.assert_allclose(moved, plain, rtol=1e-6, atol=1e-6)


def test_a_level_that_changes_for_good_is_forgiven_by_the_excess_and_never_by_an_endless_sum():
    rng = np.random.default_rng(0)
    normal, scores = rng.exponential(size=3000), rng.exponential(size=3000)
    scores[1000:] *= 4.0
    held = {}
    cases = (("excess", 3.0, {"window": 300, "lasting": 200}), ("paper", 20.0, {"form": "weibull", "end": "recovery"}))
    for name, threshold, options in cases:
        rule = make_rule(name, **options).fit(normal)
        held[name] = rule.accumulate(rule.evidence(scores), threshold=threshold).active
    assert held["excess"][1000:1300].any()
    assert not held["excess"][2000:].any()
    assert held["paper"][2000:].mean() > 0.9


def test_contributions_add_up_to_what_the_evidence_is_made_of():
    normal, points = data(3)
    known = points[:50]
    rule = make_rule("paper").fit(normal)
    np.testing.assert_allclose(np.sqrt(rule.contributions(known).sum(axis=1)), rule.knn_._neighbours.distances(known))
    np.testing.assert_allclose(
        make_rule("excess").fit(normal).contributions(known).mean(axis=1), np.mean(known**2, axis=1)
    )


def test_what_is_not_said_is_what_published_figures_were_made_with():
    assert [repr(make_rule(name)) for name in ("paper", "threshold", "drift", "excess")] == [
        "PaperRule(form='power', k=1, alpha=0.05, end='restart', cooldown=50, method='auto', max_points=10000, random_state=0)",
        "ThresholdRule(hold=1)",
        "DriftRule(drift=0.4, end='endless', cooldown=50)",
        "ExcessRule(quantile=0.98, window=3000, lag=20, clip=10.0, warm=3000, length=20, hold=30, enter=5, lasting=200, unit=0.2, momentary_window=1000, gate=5.0)",
    ]


def test_the_repr_is_the_constructor_call():
    for name in RULES:
        rule = make_rule(name)
        assert repr(eval(repr(rule), {type(rule).__name__: type(rule)})) == repr(rule)


def test_bad_arguments_are_refused_in_a_sentence():
    with pytest.raises(
        ParameterError, match="'rule' parameter of Watch must be one of 'paper', 'threshold', 'drift', 'excess'"
    ):
        make_rule("cusum")
    with pytest.raises(ParameterError, match="options among hold"):
        make_rule("threshold", length=3)
    with pytest.raises(ParameterError, match="'clip' parameter of ExcessRule"):
        make_rule("excess", clip=0.5).fit([1.0, 2.0])
    with pytest.raises(ParameterError, match="'cooldown' parameter of PaperRule must be an integer >= 1"):
        make_rule("paper", cooldown=0).fit(np.arange(9.0))
    assert make_rule("paper", cooldown=1).fit(np.arange(9.0)).cooldown == 1
    with pytest.raises(InputError, match="at least 2"):
        make_rule("threshold").fit([1.0, np.nan])
    with pytest.raises(InputError, match="one entry a point"):
        make_rule("threshold").fit([1.0, 2.0], scores=[1.0])


def test_options_of_an_earlier_file_keep_the_rule_it_was_written_with():
    written = {name: value for name, value in ExcessRule(window=500).params().items() if name not in ExcessRule.added}
    rule = make_rule("excess", **ExcessRule.complete_options(written))
    assert (rule.momentary_window, rule.gate) == (500, 0.0)
    assert rule.identity() == written  # and what tells it from others is what it was
    assert ExcessRule().identity()["gate"] == 5.0
    rng = np.random.default_rng(0)
    normal, values = (
        rng.exponential(size=(500, 3)),
        rng.exponential(size=(3000, 3)) * rng.choice([1.0, 9.0], (3000, 1)),
    )
    fitted = [rule.fit(Scored.of(normal, views=normal, momentary=numbers)) for numbers in ((), (0, 1, 2))]
    closed, opened = (one.evidence(Scored.of(values, views=values)) for one in fitted)
    np.testing.assert_array_equal(closed, opened)

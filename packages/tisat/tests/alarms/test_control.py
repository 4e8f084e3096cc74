"""The threshold that follows the alarms: its bound, its limits, and the same answers row by row, in a batch and after a restart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat.alarms import calibrate, make_rule
from tisat.alarms.control import AIM, BURST, HIGHEST, LOWER, START, STEP, Control
from tisat.alarms.cusum import CompressedSum, WindowSum
from tisat.alarms.rules import RULES, Scored
from tisat.errors import ArtefactError, ParameterError

LEVEL, PERIOD = 5.0, 50.0


def controlled(threshold=LEVEL, period=PERIOD, lowest=0.5, compression=None):
    sums = WindowSum(threshold=threshold, length=1, hold=1)
    sums.follow(Control(period=period, level=LEVEL, lowest=lowest, compression=compression))
    return sums


def definition(statistic, *, period, lowest):
    """Alarm and threshold of each row, from the definition."""
    balance, on, strong, active, used = START, False, False, [], []
    for value in statistic:
        over = -balance if balance < 0 else min(BURST - balance, 0.0)
        level = LEVEL + STEP * over
        level = max(level, min(lowest, LEVEL)) if over < 0 else level
        now = bool(value >= level)
        if on and not now:
            balance = balance if strong else max(balance - 1.0, -HIGHEST / STEP)
            strong = False
        strong |= now and value >= LEVEL + HIGHEST
        if not now and not np.isnan(value):
            balance = min(balance + AIM / period, BURST + LOWER / STEP)
        on = now
        active.append(now)
        used.append(level)
    return np.array(active), np.array(used)


numbers = st.one_of(st.floats(0.0, 30.0), st.sampled_from([0.0, 4.9, 5.0, 6.9, 7.0, 10.9, 11.0, 15.0, float("nan")]))


@given(st.lists(numbers, min_size=1, max_size=300), st.integers(2, 60), st.floats(0.5, 8.0))
@settings(max_examples=60, deadline=None)
def test_the_threshold_is_its_definition(statistic, period, lowest):
    trace = controlled(period=float(period), lowest=lowest).run(statistic)
    active, used = definition(statistic, period=period, lowest=lowest)
    np.testing.assert_array_equal(trace.active, active)
    np.testing.assert_allclose(trace.threshold, used, rtol=1e-12)


@given(st.lists(st.tuples(st.floats(0.0, 14.9), st.integers(1, 40)), min_size=1, max_size=120), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_alarms_below_the_highest_level_are_within_the_budget_whatever_comes(pieces, seed):
    statistic = np.repeat([height for height, _ in pieces], [rows for _, rows in pieces])
    statistic = np.where(np.random.default_rng(seed).random(len(statistic)) < 0.3, 0.0, statistic)
    trace = controlled().run(statistic)
    ends = np.flatnonzero(trace.active[:-1] & ~trace.active[1:])
    calm = int((~trace.active).sum())
    starts = np.flatnonzero(trace.active & ~np.append(False, trace.active[:-1]))[: len(ends)]
    peaks = np.array([statistic[a : b + 1].max() for a, b in zip(starts, ends, strict=True)])
    ordinary = int((peaks < LEVEL + HIGHEST - STEP).sum())
    assert ordinary <= AIM * calm / PERIOD + START + HIGHEST / STEP


def test_the_highest_ordinary_faults_without_end_are_raised_at_the_rate_of_the_budget():
    active = controlled().run(np.tile([LEVEL + HIGHEST - STEP - 1e-9, 0.0], 10_000)).active
    alarms, calm = int((active[1:] & ~active[:-1]).sum()) + int(active[0]), int((~active).sum())
    assert AIM * calm / PERIOD <= alarms <= AIM * calm / PERIOD + START + HIGHEST / STEP


def test_a_gross_fault_is_raised_however_many_came_before():
    trace = controlled().run(np.tile([LEVEL + HIGHEST + 0.1, 0.0], 500))
    assert trace.active[::2].all()
    assert trace.threshold.max() == LEVEL  # and hides nothing that is weaker


def test_what_repeated_faults_can_hide_is_bounded_in_height_and_in_time():
    burst = np.tile([LEVEL + 1.0, 0.0], 30)
    first = int((BURST - START) * PERIOD / AIM)
    calm = int(PERIOD / AIM * HIGHEST / STEP) + 1
    trace = controlled().run(np.concatenate([np.zeros(first), burst, np.zeros(calm), [LEVEL]]))
    assert trace.active[first : first + 2 * int(BURST) : 2].all()  # a burst after a calm time moves nothing
    assert trace.threshold.max() <= LEVEL + HIGHEST
    assert trace.threshold[first + 60] <= LEVEL + 1.0 + STEP  # no higher than what it saw, and one step
    assert trace.active[-1]  # and that long a calm forgets all of it


def test_a_long_calm_lowers_the_threshold_to_its_bound_and_an_alarm_brings_it_back():
    sums = controlled(lowest=4.6)
    quiet = sums.run(np.zeros(10_000))
    assert quiet.threshold[-1] == 4.6
    assert LEVEL - LOWER < 4.6  # a tenth of the rows lie above it: lower it does not go
    assert sums.run([6.0, 0.0, 6.0, 0.0, 0.0]).threshold[-1] == LEVEL


def test_an_alarm_that_is_on_counts_once_and_one_that_was_true_not_at_all():
    sums = controlled()
    sums.run([*[9.0] * 500, 0.0])
    assert sums.control[0] == pytest.approx(START - 1.0 + AIM / PERIOD)
    rule = make_rule("threshold").fit(np.linspace(0.0, 1.0, 100))
    run = rule.start(threshold=LEVEL, control=Control(period=PERIOD, level=LEVEL, lowest=1.0))

    def push(*values):
        for value in values:
            run.step(Scored.of([value]))

    push(9.0, 0.0)
    ended = run.movement.alarms
    run.exempt(on=False)
    assert (ended, run.movement.alarms) == (1, 0)
    run.exempt(on=False, again=True)
    assert run.movement.alarms == 1
    push(9.0)
    run.exempt(on=True)
    push(0.0)
    assert run.movement.alarms == 1
    assert "1 alarm counted in 2 rows, 0.04 asked for" in str(run.movement)


def test_the_sentence_about_a_threshold_says_where_it_is_and_what_brings_it_back():
    rule = make_rule("threshold").fit(np.linspace(0.0, 1.0, 100))
    run = rule.start(threshold=LEVEL, control=Control(period=PERIOD, level=LEVEL, lowest=1.0))
    run.run(Scored.of([9.0, 0.0] * 3))
    said = str(run.movement)
    assert said.startswith(
        f"Threshold raised from {LEVEL:.4g} to {run.threshold:.4g}, where it is at the last row: 3 alarms"
    )
    assert f"{np.ceil(run.movement.back):,.0f} rows without an alarm bring it back" in said
    assert "labels true and expected, in the service and by Monitor.label alone" in said
    run.run(Scored.of([0.0] * int(run.movement.back)))
    assert run.threshold > LEVEL
    run.run(Scored.of([0.0]))
    assert run.threshold == LEVEL
    run.run(Scored.of([0.0] * 10_000))
    assert "lowered from" in str(run.movement)
    assert "The next alarm brings it back." in str(run.movement)


@pytest.mark.parametrize("name", [name for name in RULES if RULES[name].controllable])
def test_one_by_one_in_pieces_and_after_a_restart_it_is_the_same(name):
    rng = np.random.default_rng(0)
    normal = rng.exponential(size=4000)
    rule = make_rule(name)
    calibration = calibrate(rule, normal, "1/100 rows", control=True)
    scores = rng.exponential(size=1500) * np.repeat(rng.choice([1.0, 12.0], 150, p=[0.92, 0.08]), 10)
    scores[300:310] = np.nan
    learn = np.ones(1500, dtype=bool)
    learn[500:700] = False

    def start():
        return rule.start(threshold=calibration.threshold, control=calibration.control)

    rows = Scored.of(scores)
    _, whole = start().run(rows, learn=learn)
    run, at = start(), 0
    for size in (1, 2, 97, 400, 300, 700):
        again = start()
        again.restore(run.state())
        run, part = again, slice(at, at + size)
        _, trace = run.run(rows.rows(part), learn=learn[part])
        np.testing.assert_array_equal(trace.active, whole.active[part])
        np.testing.assert_array_equal(trace.threshold, whole.threshold[part])
        at += size
    one = start()
    for row in range(1500):
        active = one.step(rows.rows(slice(row, row + 1)), learn=bool(learn[row]))[2]
        assert (active, one.used) == (whole.active[row], whole.threshold[row])
    assert len(set(whole.threshold.tolist())) > 10
    assert len(set(whole.threshold[500:700].tolist())) == 1  # nothing is learned there
    assert one.movement == run.movement


def test_a_control_that_cannot_be_one_is_refused_and_a_state_without_one_begins_afresh():
    sums = controlled()
    state = sums.state()
    with pytest.raises(ArtefactError, match="must be 4 finite numbers"):
        sums.restore({**state, "control": np.full(4, np.nan)})
    sums.run(np.tile([9.0, 0.0], 20))
    fresh = controlled()
    fresh.restore({name: array for name, array in sums.state().items() if name != "control"})
    assert fresh.control[0] == START
    fresh.restore({**state, "control": np.array([1e9, 0.0, 0.0, 0.0])})
    assert fresh.control[0] == BURST + LOWER / STEP
    plain = WindowSum(threshold=LEVEL, length=1, hold=1)
    assert "control" not in plain.state()
    plain.restore(sums.state())
    assert plain.run([4.9, 5.0]).active.tolist() == [False, True]


def test_a_rule_whose_alarms_change_its_statistic_is_not_controlled():
    rule = make_rule("paper").fit(np.random.default_rng(0).normal(size=(200, 2)))
    with pytest.raises(ParameterError, match="must belong to a rule whose statistic no alarm changes"):
        rule.start(threshold=1.0, control=Control(period=10.0, level=1.0, lowest=0.5))
    calibration = calibrate(rule, np.random.default_rng(0).normal(size=(400, 2)), "1/50 rows", control=True)
    assert not calibration.controlled
    assert "Controlled: no" in calibration.words[-1]


def test_the_calibration_says_where_the_threshold_may_go_and_is_kept_in_a_document():
    normal = np.random.default_rng(0).exponential(size=5000)
    free = calibrate(make_rule("excess"), normal, "1/500 rows", control=True)
    low, high = free.control.bounds
    assert low >= max(free.threshold - LOWER, free.normal.floor, free.calm)
    assert high == pytest.approx(free.threshold + HIGHEST)
    assert "follows the alarms" in free.words[-1]
    assert type(free).from_json(free.to_json()) == free
    earlier = {name: value for name, value in free.to_json().items() if name not in ("controlled", "calm")}
    assert type(free).from_json(earlier).control is None  # files of earlier versions: the threshold stays
    plain = calibrate(make_rule("threshold"), normal, "1/500 rows", control=True)
    assert plain.control.threshold(0.0) == pytest.approx(plain.threshold)
    assert plain.control.bounds[1] > plain.threshold


def test_views_are_summed_as_before_where_nothing_moves():
    rng = np.random.default_rng(1)
    evidence = rng.exponential(size=(400, 3)) * (rng.random((400, 1)) < 0.1)
    plain, free = (CompressedSum(threshold=1e6, views=3) for _ in range(2))
    free.follow(Control(period=1e9, level=1e6, lowest=1.0))
    kept, moved = plain.run(evidence), free.run(evidence)
    for name in ("statistic", "active", "onset"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(moved, name))

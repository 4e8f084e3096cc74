"""No masking: the k-th fault is found as the first, and a change for good ends its alarm without hiding what comes after."""

import numpy as np
import pytest

from tisat.alarms.rules import RULES, Scored, make_rule
from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat.utils.stage import split_state

LENGTH, SPAN, APART = 2880, 60, 200
STARTS = [600 + k * (SPAN + APART) for k in range(6)]  # six faults in two days of minutes


def level_of_one_alarm_a_day(rule, evidence):
    """The lowest threshold with at most one alarm in 1440 rows of clean evidence."""
    if rule.feeds_back:
        levels = np.geomspace(0.1, 1e6, 60)
    else:
        statistic = rule.accumulate(evidence, threshold=1e300).statistic
        levels = np.unique(np.quantile(statistic[~np.isnan(statistic)], np.linspace(0.5, 1.0, 200)))
    lowest = float(np.nextafter(levels[-1], np.inf))
    for h in levels[::-1]:  # from above: at a low one the alarm never ends, which is one alarm too
        active = rule.accumulate(evidence, threshold=float(h)).active
        if h <= 0 or (active[1:] & ~active[:-1]).sum() + active[0] > len(active) / 1440:
            break
        lowest = float(h)
    return lowest


@pytest.mark.parametrize("size", [3.0, 8.0, 30.0])
@pytest.mark.parametrize("name", RULES)
def test_the_sixth_fault_is_found_as_if_it_were_alone(name, size):
    rng = np.random.default_rng(7)
    normal, clean, healthy = (rng.exponential(size=n) for n in (10_080, 14_400, LENGTH))
    rule = make_rule(name).fit(normal)
    threshold = level_of_one_alarm_a_day(rule, rule.evidence(clean))

    def found(copies):
        scores = healthy.copy()
        for k in copies:
            scores[STARTS[k] : STARTS[k] + SPAN] *= size
        active = rule.accumulate(rule.evidence(scores), threshold=threshold).active
        return [bool(active[start : start + SPAN].any()) for start in STARTS]

    alone = [found([k])[k] for k in range(6)]
    assert found(range(6)) == alone
    assert size == 3.0 or all(alone)


@pytest.mark.parametrize("name", ["linear-last", "mahalanobis"])
@pytest.mark.parametrize("rule_name", RULES)
def test_on_plants_too(name, rule_name):
    kept = total = 0
    for seed in range(3):
        plant = make_plant(n_train=4000, n_test=12_000, n_channels=4, n_faults=0, random_state=50 + seed)
        detector = make(name).fit(plant.train)
        rule = make_rule(rule_name).fit(detector.normal_, scores=detector.aggregate(detector.normal_))
        values = np.array(plant.test.values)
        clean = detector.points(values[LENGTH:])
        threshold = level_of_one_alarm_a_day(rule, rule.evidence(Scored.of(clean, detector.aggregate(clean))))
        step = np.diff(plant.train.values, axis=0).std(axis=0)

        def found(copies, detector=detector, rule=rule, values=values, threshold=threshold, step=step):
            rows = values[:LENGTH].copy()
            for k in copies:
                wave = np.sin(np.arange(SPAN) * 0.9) + 1.0
                rows[STARTS[k] : STARTS[k] + SPAN, 1] += 8 * step[1] * wave
            points = detector.points(rows)
            evidence = rule.evidence(Scored.of(points, detector.aggregate(points)))
            active = rule.accumulate(evidence, threshold=threshold).active
            return np.array([active[start : start + SPAN].any() for start in STARTS])

        alone = np.array([found([k])[k] for k in range(6)])
        after = found(range(6))
        kept, total = kept + int((alone & after).sum()), total + int(alone.sum())
    assert total >= 6
    assert kept >= 0.97 * total


def test_a_change_for_good_ends_its_alarm_and_a_fault_on_top_of_it_is_found():
    rng = np.random.default_rng(3)
    rule = make_rule("excess").fit(rng.exponential(size=10_080))
    threshold = level_of_one_alarm_a_day(rule, rule.evidence(rng.exponential(size=14_400)))
    scores = rng.exponential(size=6000)
    scores[1000:] *= 15.0
    scores[4000:4060] *= 12.0
    active = rule.accumulate(rule.evidence(scores), threshold=threshold).active
    assert active[1010 : 1000 + rule.lasting].all()  # it is on while nobody can know that the change is for good
    ends = 1000 + rule.lasting + rule.length + rule.hold
    assert active[ends + 5 : 4000].mean() < 0.1
    assert active[4000:4060].any()
    raised = int((active[1:] & ~active[:-1]).sum())
    assert raised <= 6  # not again and again for ever


def test_the_normal_level_comes_back_too():
    rng = np.random.default_rng(5)
    rule = make_rule("excess").fit(rng.exponential(size=10_080))
    threshold = level_of_one_alarm_a_day(rule, rule.evidence(rng.exponential(size=14_400)))
    scores = rng.exponential(size=5000)
    scores[1000:2000] *= 15.0  # a night of something else
    scores[3100:3160] *= 10.0  # then an ordinary fault, hidden by that night's level unless it is forgotten
    active = rule.accumulate(rule.evidence(scores), threshold=threshold).active
    assert active[3100:3160].any()


@pytest.mark.parametrize("views", [1, 4])
def test_state_is_bounded_and_does_not_grow(views):
    rng = np.random.default_rng(0)
    rule = make_rule("excess").fit(rng.exponential(size=(500, views)), views=rng.exponential(size=(500, views)))
    run = rule.start(threshold=3.0)
    sizes = set()
    for _ in range(3):
        values = rng.exponential(size=(2000, views)) * 5
        run.run(Scored.of(values, values[:, 0], values))
        arrays = split_state(run.state())[1]
        past, above = arrays.pop("evidence.past"), arrays.pop("evidence.above")
        assert len(past) <= views * (rule.window + rule.lag) <= 8 * len(above) < views * (rule.window + rule.lag) + 8
        sizes.add(sum(array.size for array in arrays.values()))
    assert sizes == {views * (rule.lasting + 8 + rule.length) + rule.hold + 5}


def has_a_moving_reference(name):
    return hasattr(make_rule(name).fit(np.random.default_rng(0).exponential(size=500))._evidence_step(), "reference")


MOVING = [name for name in RULES if has_a_moving_reference(name)]
# rows of high scores, and times what; a forecaster remembers one absurd value for some
EARLY = {"absurd": (20, 1e30), "gross": (60, 30.0), "ordinary": (60, 8.0)}
LATER = [700, 1100, 1500, 1900]


@pytest.mark.parametrize(("views", "momentary"), [(1, ()), (6, ()), (6, (0, 1, 2))])
@pytest.mark.parametrize("when", [50, 130, 220, 400])
@pytest.mark.parametrize("what", EARLY)
@pytest.mark.parametrize("name", MOVING)
def test_what_goes_wrong_early_in_a_stream_hides_and_delays_nothing_later(name, what, when, views, momentary):
    rng = np.random.default_rng(11)
    normal, clean, healthy = (rng.exponential(size=(n, views)) for n in (10_080, 14_400, 2400))
    rule = make_rule(name).fit(Scored.of(normal, views=normal, momentary=momentary))
    threshold = level_of_one_alarm_a_day(rule, rule.evidence(clean, views=clean))
    for start in LATER:
        healthy[start : start + SPAN] *= 5.0
    scores = healthy.copy()
    span, size = EARLY[what]
    scores[when : when + span] *= size

    def first(rows):
        active = rule.accumulate(rule.evidence(rows, views=rows), threshold=threshold).active
        return [int(np.argmax(np.append(active[start : start + SPAN], True))) for start in LATER]

    alone = first(healthy)
    assert max(alone) < SPAN
    assert (np.array(first(scores)) <= np.array(alone) + 2).all()  # rows later, if later at all
    run = rule.start(threshold=threshold)
    one_by_one = [run.step(Scored.of(row[None], row[:1], row[None]))[1] for row in scores[:800]]
    whole = rule.accumulate(rule.evidence(scores, views=scores), threshold=threshold).statistic
    np.testing.assert_array_equal(one_by_one, whole[:800])


@pytest.mark.parametrize("name", MOVING)
def test_faults_soon_after_a_change_for_good_do_not_hide_the_next(name):
    rng = np.random.default_rng(13)
    rule = make_rule(name).fit(rng.exponential(size=10_080))
    threshold = level_of_one_alarm_a_day(rule, rule.evidence(rng.exponential(size=14_400)))
    after = rng.exponential(size=3000)
    after[1000:] *= 15.0
    for start in (1700, 2000, 2300):
        after[start : start + SPAN] *= 5.0
    scores = after.copy()
    for start in (1240, 1300, 1360):  # soon after the new level was taken for one
        scores[start : start + 20] *= 30.0

    def first(rows):
        active = rule.accumulate(rule.evidence(rows), threshold=threshold).active
        return np.array([np.argmax(np.append(active[start : start + SPAN], True)) for start in (1700, 2000, 2300)])

    assert (first(after) < SPAN).all()
    assert (first(scores) <= first(after) + 2).all()


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("when", [820, 860, 900, 940])
def test_a_fault_during_a_change_for_good_is_no_part_of_the_new_level(name, when):
    rng = np.random.default_rng(17)
    rule = make_rule(name).fit(rng.exponential(size=10_080))
    threshold = level_of_one_alarm_a_day(rule, rule.evidence(rng.exponential(size=14_400)))
    scores = rng.exponential(size=2400)
    scores[800:] *= 3.0
    scores[when : when + SPAN] *= 30.0
    scores[1500 : 1500 + SPAN] *= 5.0
    active = rule.accumulate(rule.evidence(scores), threshold=threshold).active
    assert active[1500 : 1500 + SPAN].any()

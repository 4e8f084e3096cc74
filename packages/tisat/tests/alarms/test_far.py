"""What was promised beside what came of it, counted."""

import numpy as np

from tisat.alarms import calibrate, make_rule
from tisat.alarms.calibration import period_interval
from tisat.alarms.false_alarm_study import Promise, actual_curve, count_alarms, count_restarts, ideal_rule, promises


def test_every_method_and_target_is_counted_on_the_points_nobody_saw():
    rng = np.random.default_rng(0)
    normal, held_out = rng.exponential(size=2000), np.append(rng.exponential(size=3000), np.nan)
    found = promises(
        normal, held_out, targets=(100.0, 400.0), rule="threshold", methods=("auto", "episodes"),
        scores=(normal, held_out), entity="pump", hold=2,
    )  # fmt: skip
    assert [(one.method, one.target) for one in found] == [
        (method, target) for method in ("auto", "episodes") for target in (100.0, 400.0)
    ]
    for one in found:
        rule = make_rule("threshold", hold=2)
        calibration = calibrate(rule, normal, 1 / one.target)
        alarms = count_alarms(rule, rule.evidence(held_out), calibration.threshold)
        assert (one.entity, one.rule, one.form, one.used) == ("pump", "threshold", "", "episodes")
        assert (one.threshold, one.alarms, one.time_steps) == (calibration.threshold, alarms, 3000)
        assert (one.low, one.high, one.folds) == (*period_interval(alarms, 3000), calibration.observed)
        assert one.observed == 3000 / alarms
    assert found[0].alarms > found[1].alarms > 0


def test_a_promise_is_kept_by_as_many_alarms_as_the_budget_allows():
    kept = [Promise("", "", "", "", "", 100.0, 1.0, alarms, 300, 0.0, None, None).kept for alarms in (2, 3, 4)]
    assert kept == [True, True, False]


def test_an_alarm_that_restarts_the_sum_is_counted_each_time_and_a_run_once():
    evidence = np.array([2.0, -1.0, 3.0, 3.0, -5.0, 1.0, 1.0])
    assert (count_restarts(ideal_rule(), evidence, 2.0), count_alarms(ideal_rule(), evidence, 2.0)) == (4, 3)


def test_the_actual_curve_is_counted_at_every_threshold_that_raised_an_alarm():
    rule = make_rule("threshold").fit([0.0, 1.0])
    evidence = np.append(np.random.default_rng(0).normal(size=500), np.nan)
    thresholds, periods = actual_curve(rule, evidence, points=10)
    assert len(thresholds) == 10
    assert (np.diff(thresholds) > 0).all()
    assert thresholds[0] > 0
    assert np.nanmax(evidence) > thresholds[-1] > np.nanquantile(evidence, 0.99)
    assert periods.tolist() == [500 / count_alarms(rule, evidence, float(h)) for h in thresholds]
    assert [each.tolist() for each in actual_curve(rule, np.full(5, -1.0))] == [[], []]
    assert [each.tolist() for each in actual_curve(rule, np.array([-1.0, 2.0]))] == [[2.0], [2.0]]

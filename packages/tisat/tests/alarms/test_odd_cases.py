"""Alarms at their edges: formulas without a solution, rules given what they were not fitted on, records that are full."""

import math

import numpy as np
import pytest

from tisat.alarms import Calibration, PaperRule, ThresholdRule, calibrate, make_rule
from tisat.alarms.cusum import Cusum, WindowSum
from tisat.alarms.decay import empirical_decay, exact_decay, paper_decay
from tisat.alarms.episode_log import EpisodeRecord
from tisat.alarms.episodes import Episodes
from tisat.alarms.evidence import fit_weibull
from tisat.alarms.false_alarm_study import actual_curve, ideal_rule
from tisat.alarms.rules import Scored
from tisat.errors import CalibrationWarning, InputError, ParameterError

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(400, 2))


@pytest.mark.parametrize("evidence", [[], [np.nan, np.nan], [1.0, -0.5], [0.0, 0.0]])
def test_evidence_that_does_not_fall_has_no_decay(evidence):
    assert math.isnan(empirical_decay(np.array(evidence, dtype=float)))


def test_decays_solve_their_equations_or_say_that_there_is_none():
    falling = np.array([-1.0, -0.2, 0.3])
    assert np.mean(np.exp(empirical_decay(falling) * falling)) == pytest.approx(1.0)
    assert empirical_decay(np.array([-1.0, -2.0])) == math.inf, "it never rises"
    for q, k in ((1.5, 1), (4.0, 2)):
        w = exact_decay(q=q, k=k)
        assert (1 - w) ** k == pytest.approx(math.exp(-w * q))
    assert exact_decay(q=1e6) == 1.0
    assert math.isnan(exact_decay(q=1.0))
    assert math.isnan(exact_decay(q=1.0 + 1e-15))
    _, notes = paper_decay(log_ball=0.0, largest=math.e * (1 + 1e-9))
    assert "both roots meet" in notes[-1]
    assert paper_decay(log_ball=701.0, largest=1.0)[0] == math.inf


def test_a_formula_without_a_solution_gives_way_to_the_bootstrap():
    rule = PaperRule(alpha=0.9)  # nine of ten normal points count as evidence: it rises by itself
    with pytest.warns(CalibrationWarning):
        found = calibrate(rule, NORMAL, "1/50 rows", method="empirical")
    assert (found.requested, found.method) == ("empirical", "bootstrap")
    assert math.isfinite(found.threshold)
    assert any("does not drift downwards" in note for note in found.notes)


def test_methods_are_for_the_rules_they_know():
    with pytest.raises(ParameterError, match="'episodes' must be used with a rule whose statistic no alarm changes"):
        calibrate(PaperRule(), NORMAL, "1/50 rows", method="episodes")
    with pytest.raises(ParameterError, match="must be used with the 'paper' rule"):
        calibrate(ThresholdRule(), NORMAL, "1/50 rows", method="exact")
    with pytest.raises(ParameterError, match=r"must be given where it is made. Got hold besides"):
        make_rule(ThresholdRule(), hold=3)


@pytest.mark.parametrize(("points", "scores", "views", "must"), [
    (np.zeros((2, 2, 2)), None, None, r"points given to w must have shape \(T, m\)"),
    (np.zeros((3, 0)), None, None, r"points given to w must have shape \(T, m\)"),
    (np.zeros(3), np.zeros(2), None, r"one entry a point \(3\). Got shape \(2,\)"),
    (np.zeros(3), None, np.zeros((2, 1)), r"views given to w must have shape \(3, V\)"),
    (np.zeros(3), None, np.zeros((3, 0)), r"views given to w must have shape \(3, V\)"),
])  # fmt: skip
def test_what_a_detector_says_must_fit_together(points, scores, views, must):
    with pytest.raises(InputError, match=must):
        Scored.of(points, scores, views, whose="w")


def test_excess_is_judged_in_the_views_it_was_fitted_on():
    two = Scored.of(NORMAL, views=np.abs(NORMAL))
    rule = make_rule("excess").fit(two)
    with pytest.raises(InputError, match=r"must have the 2 views it was fitted on. Got 1"):
        rule.evidence(Scored.of(NORMAL))
    with pytest.raises(InputError, match="View 1 has none"):
        make_rule("excess").fit(Scored.of(NORMAL, views=np.column_stack([NORMAL[:, 0], np.full(400, np.nan)])))


def test_rules_and_sums_print_as_they_are_made():
    assert repr(Cusum(threshold=2.0)).startswith("Cusum(threshold=2.0, ")
    assert repr(WindowSum(threshold=2.0, length=3, hold=1)) == "WindowSum(threshold=2.0, length=3, hold=1)"


def test_distances_that_are_all_alike_have_no_shape():
    with pytest.raises(InputError, match=r"at least two different positive distances. Got 1"):
        fit_weibull(np.array([2.0, 2.0, 0.0]))


def test_one_stretch_is_counted_at_its_own_threshold():
    one = Episodes(((5.0, 3.0, 1.0),), (1000,), 1.0, 0.0)
    assert one.count(3.0) == 2
    assert one.observed(300.0) == one.count(one.threshold(300.0))


def test_evidence_that_never_rises_has_no_curve():
    thresholds, periods = actual_curve(ideal_rule(), np.full(10, -1.0))
    assert len(thresholds) == len(periods) == 0


def test_a_full_record_keeps_what_people_said_and_then_the_newest():
    record = EpisodeRecord(mark=1.0, room=3)
    for peak in (5.0, 2.0, 4.0):
        record.step(peak)
        record.step(0.0)
    record.label(0, "false")
    record.step(3.0)
    record.step(0.0)
    assert [one.peak for one in record.episodes] == [5.0, 4.0, 3.0]
    assert record.mark == 2.0, "the lowest that nobody labelled went"
    record.label(4, "true")
    record.label(6, "true")
    record.step(9.0)
    assert [one.peak for one in record.episodes] == [4.0, 3.0, 9.0]
    assert record.mark == 2.0, "all were labelled: the oldest went"


def test_a_calibration_is_drawn_where_it_keeps_what_the_picture_needs():
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    kept = calibrate(ThresholdRule(), NORMAL, "1/50 rows")
    assert kept.plot(ax=axis) is not None
    assert axis.get_lines()
    other = calibrate(PaperRule(), NORMAL, "1/50 rows", method="bootstrap")
    with pytest.raises(ParameterError, match=r"cannot be drawn. Only 'episodes'"):
        other.plot()
    assert Calibration.from_json(kept.to_json()) == kept

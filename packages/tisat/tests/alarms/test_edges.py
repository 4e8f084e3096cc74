"""Thresholds and sums at their edges: too little evidence, evidence that never rises, views that change."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import chi2

from tisat import Series
from tisat.alarms import Alarm, PaperRule, calibrate, raise_alarms
from tisat.alarms.bootstrap import PeriodCurve, _line, block_length, flat, period_curve
from tisat.alarms.budget import Budget
from tisat.alarms.calibration import NormalEvidence
from tisat.alarms.closed_forms import by_formula, count_alarms, independence, raise_to_data
from tisat.alarms.cusum import CompressedSum
from tisat.alarms.decay import paper_decay
from tisat.alarms.evidence import KNNEvidence
from tisat.alarms.plot import draw
from tisat.alarms.rules import make_rule
from tisat.errors import CalibrationWarning, InputError


def test_a_handful_of_time_steps_cannot_show_dependence():
    assert independence([np.arange(4.0), np.array([9.0, np.nan, 1.0, 2.0])]) == (1.0, 0.0)
    p, correlation = independence([np.arange(200.0)])
    assert p < 1e-12
    assert correlation > 0.9


def test_dependence_is_beyond_doubt_and_of_a_size_that_matters():
    known = NormalEvidence(make_rule("threshold"), np.arange(20.0))
    for p, correlation, dependent in ((0.001, 0.5, True), (0.001, -0.5, True), (0.01, 0.5, False), (0.001, 0.1, False)):
        known.p_value, known.correlation = p, correlation
        assert known.dependent is dependent


@pytest.mark.parametrize(("n", "lags"), [(9, 1), (44, 8), (200, 10)])
def test_independence_is_tested_by_ljung_and_box_over_a_fifth_of_what_is_there(n, lags):
    evidence = np.random.default_rng(n).permutation(n).astype(float)
    x = evidence - evidence.mean()
    rho = [np.sum(x[lag:] * x[:-lag]) / np.sum(x**2) for lag in range(1, lags + 1)]
    q = n * (n + 2) * sum(r**2 / (n - lag) for lag, r in enumerate(rho, start=1))
    assert independence([evidence]) == pytest.approx((chi2.sf(q, lags), rho[0]))


def test_a_block_is_at_most_a_fifth_of_what_is_there():
    steps = np.repeat([0.0, 1.0], 200)  # the correlation is never lost in noise
    assert block_length(steps) == len(steps) // 5
    assert block_length(np.random.default_rng(1).normal(size=400)) < 40
    assert block_length(np.arange(8000.0)) == 1000  # no longer, however long the memory


def test_views_are_added_up():
    assert flat(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [3.0, 7.0]
    assert flat(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]


def curve(**changes):
    plain = {
        "thresholds": np.array([1.0, 2.0, 3.0]), "periods": np.exp([1.0, 2.0, 3.0]), "trusted": math.exp(2.5),
        "logarithmic": False, "intercept": 0.0, "slope": 1.0, "block": 1,
    }  # fmt: skip
    return PeriodCurve(**{**plain, **changes})


def test_a_threshold_is_read_off_the_curve_and_beyond_it_along_the_line():
    assert curve().threshold(math.exp(0.5)) == 1.0  # the lowest there is
    assert curve().threshold(math.exp(1.25)) == pytest.approx(1.25)
    assert curve().threshold(math.exp(2.0)) == pytest.approx(2.0)
    assert curve().threshold(math.exp(7.0)) == pytest.approx(7.0)
    assert curve(logarithmic=True).threshold(math.exp(7.0)) == pytest.approx(math.exp(7.0))
    assert curve(logarithmic=True).threshold(math.exp(700.0)) == math.exp(600.0)
    assert curve(slope=0.0).threshold(math.exp(7.0)) == 2.0  # a line that does not rise says nothing
    assert curve(intercept=8.0).threshold(math.exp(7.0)) == 2.0  # never below what was reached
    assert curve(trusted=0.1).threshold(math.exp(7.0)) == 7.0
    assert curve(periods=np.exp([0.0, 1.0, 2.0]), trusted=1.0, intercept=-5.0).threshold(1.0) == 1.0  # trusted itself


def test_a_line_through_too_little_is_flat():
    assert _line(np.array([1.0]), np.array([5.0])) == (5.0, 0.0, math.inf)
    assert _line(np.array([]), np.array([])) == (0.0, 0.0, math.inf)
    assert _line(np.array([2.0, 2.0]), np.array([5.0, 6.0])) == (6.0, 0.0, math.inf)
    assert _line(np.arange(3.0), 1.0 + 2.0 * np.arange(3.0)) == pytest.approx((1.0, 2.0, 0.0))
    assert _line(np.arange(3.0), np.array([0.0, 1.0, 0.0])) == pytest.approx((1 / 3, 0.0, 2 / 9))  # what it leaves


def test_evidence_that_never_rises_gets_a_threshold_above_it():
    rule = make_rule("paper").fit(np.random.default_rng(0).normal(size=(200, 1)))
    found = period_curve(rule, [np.full(300, -1.0)], rng=np.random.default_rng(0))
    assert found.thresholds.tolist() == [1.0]
    assert found.slope == 0.0
    assert found.threshold(1e9) == 1.0


def test_a_compressed_sum_keeps_the_views_it_began_with():
    sums = CompressedSum(threshold=2.0, length=2, hold=1, unit=1.0, views=1)
    with pytest.raises(InputError, match=r"shape \(T, V\). Got shape \(1, 1, 1\)"):
        sums.run(np.zeros((1, 1, 1)))
    assert sums.run([[1.0, 1.0]]).statistic.tolist() == pytest.approx([2 * math.log(2.0)])  # it had not begun
    assert sums.views == 2
    with pytest.raises(InputError, match=r"must have the 2 views it began with. Got 3"):
        sums.run(np.zeros((1, 3)))
    assert repr(sums) == "CompressedSum(threshold=2.0, length=2, hold=1, unit=1.0, views=2)"
    rule = make_rule("excess").fit(np.arange(9.0))
    assert repr(CompressedSum(threshold=2.0)) == repr(rule._accumulator(2.0))  # unless told otherwise, the rule's


def test_a_compressed_sum_is_on_where_it_reaches_its_threshold_and_began_where_it_last_was_nothing():
    rows = [[0, 0], [1, 0], [0, 0], [0, 0], [2, 1], [3, 0], [0, 0], [0, 0], [0, 0], [1, 0]]
    plain = CompressedSum(threshold=1e300, length=2, hold=1, unit=1.0).run(rows)
    assert plain.onset.tolist() == [0, 0, 0, 3, 3, 3, 3, 7, 8, 8]
    sums = CompressedSum(threshold=plain.statistic[5], length=2, hold=1, unit=1.0)
    found = sums.run(rows)
    assert found.active.tolist() == [value >= plain.statistic[5] for value in plain.statistic]
    assert found.active[5]
    assert found.onset.tolist() == [0, 0, 0, 3, 3, 3, 6, 7, 8, 8]  # what follows an alarm did not begin before its end


def test_the_closed_form_says_where_it_means_nothing():
    decay, notes = paper_decay(log_ball=701.0, largest=1.0)
    assert math.isinf(decay)
    assert "leaves floating point" in notes[0]
    ball = math.log(10.0)
    decay, notes = paper_decay(log_ball=math.log(ball), largest=5.0 / ball, printed=True)
    assert decay == pytest.approx(ball)
    assert "trivial root" in notes[0]
    decay, notes = paper_decay(log_ball=math.log(ball), largest=5.0 / ball)
    assert decay > ball
    assert "the bound can be broken" in notes[0]


@pytest.mark.parametrize(
    ("time_steps", "said"),
    [
        (30.0, "1 in 30 rows (30 seconds)"),
        (60.0, "1 in 60 rows (1 minute)"),
        (7200.0, "1 in 7200 rows (2 hours)"),
        (86400.0, "1 in 86400 rows (1 day)"),
        (math.inf, "1 in inf rows"),
    ],
)
def test_a_period_in_the_words_of_a_budget(time_steps, said):
    assert Budget.parse("1/week", period=1.0).say(time_steps) == said
    assert Budget.parse("1/500 rows").say(30.0) == "1 in 30 rows"


@pytest.mark.parametrize(
    ("m", "volume"), [(1, lambda r: 2 * r), (2, lambda r: math.pi * r**2), (3, lambda r: 4 / 3 * math.pi * r**3)]
)
def test_the_ball_of_the_theorem_has_the_volume_of_a_ball(m, volume):
    found = KNNEvidence().fit(np.random.default_rng(0).random((200, m)))
    assert math.exp(found.log_ball) == pytest.approx(volume(found.d_alpha_))


@pytest.mark.parametrize("method", ["printed", "other-root"])
def test_the_theorems_threshold_and_what_it_takes_for_granted(method):
    points = np.random.default_rng(0).random((900, 2)) * 21.0  # about one in a unit of area, as the theorem has it
    rule = PaperRule()
    with pytest.warns(CalibrationWarning, match="trivial root"):
        found = calibrate(rule, points, "1/300 rows", method=method)
    knn = rule.knn_
    decay, _ = paper_decay(log_ball=knn.log_ball, largest=knn.largest_, printed=method == "printed")
    assert by_formula(rule, method, [], 300.0)[0] == pytest.approx(math.log(300.0) / decay)
    assert found.threshold >= math.log(300.0) / decay * (1 - 1e-9)  # raised where the data break it
    assert "intensity 1" not in " ".join(by_formula(rule, method, [], 300.0)[1])
    assert by_formula(rule, method, [], 1.5)[0] == pytest.approx(math.log(1.5) / decay)  # however low
    knn.largest_ = 0.5
    decay, _ = paper_decay(log_ball=knn.log_ball, largest=0.5, printed=method == "printed")
    assert by_formula(rule, method, [], 300.0)[0] == pytest.approx(math.log(300.0) / decay)
    rule.fit(10.0 * points)
    assert "intensity 1; here v_m mean(d^m)" in " ".join(by_formula(rule, method, [], 300.0)[1])


def test_a_threshold_is_raised_above_the_highest_where_no_alarm_is_allowed():
    rule = make_rule("threshold").fit([0.0, 1.0])
    segments = [np.array([0.0, 3.0, 1.0]), np.array([2.0, 0.0, 3.0])]
    assert raise_to_data(rule, segments, 2.5, 3.0) == 2.5  # as many alarms as are allowed
    for threshold in (1.0, 2.5, 3.0):
        found = raise_to_data(rule, segments, threshold, 1e9)
        assert found == pytest.approx(3.0)
        assert count_alarms(rule, segments, found) == 0


def test_a_threshold_that_is_a_level_is_raised_just_above_it():
    rule = make_rule("threshold").fit([0.0, 1.0])
    segments = [np.array([0.0, 2.0, 0.0, 3.0])]
    assert raise_to_data(rule, segments, 2.0, 4.0) == np.nextafter(
        2.0, 3.0
    )  # one alarm is allowed, and that of 3 is one


def test_where_evidence_does_not_drift_downwards_a_formula_has_no_threshold_and_says_so():
    rule = PaperRule(form="log").fit(np.random.default_rng(0).normal(size=(60, 1)))
    threshold, notes = by_formula(rule, "empirical", [np.ones(10)], 100.0)
    assert math.isnan(threshold)
    assert "does not drift downwards, so 'empirical' has no solution" in notes[-1]


def test_auto_takes_the_most_careful_formula_that_applies():
    known = NormalEvidence(PaperRule(form="power"), np.random.default_rng(0).random((400, 2)))
    assert not known.dependent
    found = {name: by_formula(known.rule, name, known.segments, 100.0)[0] for name in ("exact", "empirical")}
    assert known._choose(100.0) == max(found, key=found.get)
    known.p_value, known.correlation = 0.0, 0.9
    assert known._choose(100.0) == "bootstrap"


def test_the_share_of_active_time_steps_is_counted_where_alarms_are():
    found = calibrate(PaperRule(form="weibull"), np.random.default_rng(0).random((400, 2)), 0.1, method="weibull")
    assert 1 > found.active >= found.alarms / found.time_steps > 0


def no_alarms(length):
    normal = np.random.default_rng(0).exponential(size=2000)
    return raise_alarms(np.zeros(length), normal=normal, false_alarms="1/200 rows", rule="threshold")


def test_an_alarm_is_told_in_times_where_there_are_any_and_else_in_time_steps():
    plain = Alarm(7, 6, 9, peak=2.0, threshold=1.0, rule="paper", budget="", channels={})
    assert str(plain) == "alarm at row 7, since row 6, until 9"
    timed = replace(plain, raised_time=0.0, onset_time=-5.0, cleared_time=20.0)  # zero is a time too
    assert str(timed) == "alarm at 0, since -5, until 20"
    cells = [replace(timed, cleared=None), timed, plain]
    shown = replace(no_alarms(10), alarms=tuple(cells))._repr_html_()
    found = re.findall(r"<td[^>]*>([^<]*)</td>", shown)
    assert [found[i : i + 3] for i in range(0, len(found), len(found) // 3)] == [
        ["0", "-5", "still on"],
        ["0", "-5", "20"],
        ["7", "6", "9"],
    ]


def test_the_picture_shows_two_spreads_around_what_was_expected():
    series = Series([[1.0], [2.0], [3.0], [4.0]])
    expected = (np.array([[1.0], [2.0], [3.0], [4.0]]), np.full((4, 1), 0.5))
    band = draw(no_alarms(4), series, expected=expected).axes[0].collections[0].get_paths()[0].vertices
    assert {(x, y) for x, y in band} >= {(t, 1.0 + t + side) for t in range(4) for side in (-1.0, 1.0)}


def test_the_picture_shows_times_as_they_were_written_and_says_at_which_offset():
    zoned = [f"2026-06-01T0{hour}:00+02:00" for hour in range(4)]
    last = draw(no_alarms(4), Series(np.ones((4, 1)), timestamps=zoned)).axes[-1]
    assert last.get_xlabel() == "time at +02:00"
    assert str(last.lines[0].get_xdata()[0]).startswith("2026-06-01T00:00")
    plain = [stamp.removesuffix("+02:00") for stamp in zoned]
    assert draw(no_alarms(4), Series(np.ones((4, 1)), timestamps=plain)).axes[-1].get_xlabel() == ""


def test_the_picture_shows_an_event_to_the_last_row():
    series = Series([[1.0], [2.0], [3.0], [4.0], [5.0]], labels=[0, 1, 0, 1, 1])
    spans = draw(no_alarms(5), series).axes[0].patches
    assert [(span.get_x(), span.get_x() + span.get_width()) for span in spans] == [(1, 2), (3, 4)]


def test_the_picture_of_a_calibration_goes_from_edge_to_edge():
    calibration = no_alarms(5).calibration
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = calibration.plot()
    pyplot.close(axes.figure)
    given = Figure().subplots()
    assert calibration.plot(given) is given
    periods = axes.lines[0].get_xdata()
    np.testing.assert_allclose(np.diff(np.log(periods)), np.log(periods[-1] / periods[0]) / (len(periods) - 1))
    assert (periods[0], periods[-1]) == pytest.approx(axes.get_xlim())
    assert periods[0] < min(calibration.target, calibration.supported)
    assert periods[-1] > max(calibration.target, calibration.supported)


def test_the_picture_has_the_title_it_is_given_or_the_name_of_the_series():
    series = Series([[1.0], [2.0]], name="pump")
    titles = [
        draw(no_alarms(2), one, title=title).get_suptitle()
        for one, title in ((series, ""), (series, "mill"), (None, ""))
    ]
    assert [title.partition(" ")[0] for title in titles] == ["pump:", "mill:", "0"]

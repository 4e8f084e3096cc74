"""Thresholds and sums at their edges: too little evidence, evidence that never rises, views that change."""

import math

import numpy as np
import pytest

from tisat.errors import InputError
from tisat.sequential.bootstrap import PeriodCurve, _line, block_length, flat, period_curve
from tisat.sequential.budget import Budget
from tisat.sequential.cusum import CompressedSum
from tisat.sequential.decay import paper_decay
from tisat.sequential.formulas import independence
from tisat.sequential.rules import make_rule


def test_a_handful_of_instants_cannot_show_dependence():
    assert independence([np.arange(4.0), np.array([9.0, np.nan, 1.0, 2.0])]) == (1.0, 0.0)
    p, correlation = independence([np.arange(200.0)])
    assert p < 1e-12
    assert correlation > 0.9


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


def test_a_line_through_too_little_is_flat():
    assert _line(np.array([1.0]), np.array([5.0])) == (5.0, 0.0, math.inf)
    assert _line(np.array([]), np.array([])) == (0.0, 0.0, math.inf)
    assert _line(np.array([2.0, 2.0]), np.array([5.0, 6.0])) == (6.0, 0.0, math.inf)
    assert _line(np.arange(3.0), 1.0 + 2.0 * np.arange(3.0)) == pytest.approx((1.0, 2.0, 0.0))


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
    ("instants", "said"),
    [
        (30.0, "1 in 30 instants (30 seconds)"),
        (60.0, "1 in 60 instants (1 minute)"),
        (7200.0, "1 in 7200 instants (2 hours)"),
        (86400.0, "1 in 86400 instants (1 day)"),
        (math.inf, "1 in inf instants"),
    ],
)
def test_a_period_in_the_words_of_a_budget(instants, said):
    assert Budget.parse("1/week", period=1.0).say(instants) == said
    assert Budget.parse("1/500 instants").say(30.0) == "1 in 30 instants"

"""Episodes: counted as defined, and from them thresholds that are finite, strictly monotone and said in words."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat.alarms import Calibration, calibrate, make_rule
from tisat.alarms.calibration import NormalEvidence, with_breaks
from tisat.alarms.episodes import Episodes, episode_levels
from tisat.alarms.rules import RULES, Scored
from tisat.errors import ArtefactError, CalibrationWarning, ParameterError
from tisat.watch.model_files import check_calibration

PERIODS = (50, 480, 1440, 5040, 10_080, 43_200, 525_600)  # 1/50 rows; 1/8h to 1/year of minutes
CALM = [name for name, rule in RULES.items() if not rule.feeds_back]


def quietly(call, *arguments, **options):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return call(*arguments, **options)


def episodes(statistic, level):
    """By the definition: runs at or above the level; unknown rows end one."""
    above = [not np.isnan(value) and value >= level for value in statistic]
    return sum(now and not before for now, before in zip(above, [False, *above], strict=False))


@given(st.lists(st.one_of(st.integers(0, 9).map(float), st.just(float("nan"))), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_the_number_of_levels_not_below_h_is_the_most_episodes_at_h_or_above(statistic):
    levels = episode_levels(np.array(statistic), most=1000)
    assert list(levels) == sorted(levels, reverse=True)
    for h in np.arange(0.0, 10.5, 0.5):
        expected = max(episodes(statistic, higher) for higher in np.arange(h, 11.0, 0.5))
        assert (levels >= h).sum() == expected


SOURCES = {
    "silent": lambda rng: np.zeros(3000),
    "white": lambda rng: rng.exponential(size=3000),
    "heavy": lambda rng: rng.pareto(0.7, size=3000),
    "rare jumps": lambda rng: np.where(rng.random(3000) < 0.003, 1e6, 1e-8),
    "one huge": lambda rng: np.append(rng.exponential(size=2999), 1e200),
    "short": lambda rng: rng.exponential(size=40),
    "negative": lambda rng: rng.normal(size=3000) - 100.0,
    "ties": lambda rng: rng.integers(0, 3, size=3000).astype(float),
}


@pytest.mark.parametrize("name", CALM)
@pytest.mark.parametrize("source", SOURCES)
def test_thresholds_are_finite_and_strictly_monotone_whatever_the_evidence(name, source):
    scores = SOURCES[source](np.random.default_rng(0))
    known = NormalEvidence(make_rule(name), scores)
    found = [known.calibrate(1 / period).threshold for period in PERIODS]
    assert np.isfinite(found).all()
    assert all(low < high for low, high in itertools.pairwise(found))


@pytest.mark.parametrize("name", CALM)
def test_every_word_is_said(name):
    scores = np.random.default_rng(1).exponential(size=6000)
    plain = quietly(calibrate, make_rule(name), scores, "1/10000 rows")
    assert plain.method == "episodes"
    assert plain.supported == 2000
    assert plain.extrapolated == 5.0
    text = " ".join(plain.words)
    for word in (
        "Asked: 1/10000 rows",
        "Supported: 1 in 2000",
        "Extrapolated: 5 times as rare as",
        "Observed: ",
        "h = ",
    ):
        assert word in text
    with pytest.warns(
        CalibrationWarning, match="extrapolated to a budget 5 times as rare: h = .* largest normal statistic is"
    ):
        calibrate(make_rule(name), scores, "1/10000 rows")


def test_a_budget_about_as_rare_as_the_data_supports_has_no_factor():
    scores = np.random.default_rng(1).exponential(size=6000)
    near, far = (quietly(calibrate, make_rule("threshold"), scores, f"1/{rows} rows") for rows in (2020, 5400))
    assert "Extrapolated: just beyond what the data can support." in near.words
    assert "times" not in f"{near}{near.notes}"
    assert "; 2.7 times as rare as your data supports" in str(far)
    assert far.advice == ""


@pytest.mark.parametrize("method", ["episodes", "bootstrap"])
def test_a_budget_far_rarer_than_the_data_supports_names_one_to_type(method):
    scores = np.random.default_rng(1).exponential(size=600)
    far = quietly(calibrate, make_rule("threshold"), scores, "1/10000 rows", method=method)
    typed = re.search(r"--budget '(.*)' is supported", far.advice)[1]
    assert far.notes[-1].endswith(far.advice)
    assert not quietly(calibrate, make_rule("threshold"), scores, typed, method=method).extrapolated > 1.0


@pytest.mark.parametrize("name", CALM)
def test_another_budget_needs_no_training_data(name):
    scores = np.random.default_rng(2).exponential(size=8000)
    known = NormalEvidence(make_rule(name), scores)
    first = Calibration.from_json(known.calibrate("1/500 rows").to_json())
    for budget in ("1/100 rows", "1/500 rows", "1/40000 rows"):
        again = first.recalibrated(budget)
        fresh = known.calibrate(budget)
        assert again.threshold == pytest.approx(fresh.threshold, rel=1e-12)
        assert (again.alarms, again.notes) == (fresh.alarms, fresh.notes)
    with pytest.raises(ParameterError, match="must be made again"):
        quietly(calibrate, make_rule("paper"), scores, "1/500 rows").recalibrated("1/day")


def test_one_stretch_is_counted_at_its_own_threshold_and_many_at_those_of_the_others():
    steps = Episodes.of([np.tile([0.0, 1.0, 0.0, 2.0], 25)], common=1.0, floor=0.0)
    assert [steps.count(level) for level in (0.5, 1.0, 1.5, 2.0, 2.5)] == [50, 50, 25, 25, 0]
    rng = np.random.default_rng(0)
    stretches = [rng.exponential(size=300), 2.0 * rng.exponential(size=300)]
    low, high = (Episodes.of([each], common=1.0, floor=0.0) for each in stretches)
    both = Episodes.of(stretches, common=1.0, floor=0.0)
    at_low, at_high = (each.threshold(10.0) for each in (low, high))
    assert low.observed(10.0) == low.count(at_low) > 0
    assert both.observed(10.0) == low.count(at_high) + high.count(at_low) > 0


def test_the_interval_allows_for_a_model_of_all_rows_that_is_quieter_than_those_of_the_folds():
    scores = np.random.default_rng(3).exponential(size=6000)
    plain, folds = (quietly(calibrate, make_rule("threshold"), scores, "1/100 rows", crossfit=k) for k in (0, 5))
    assert (folds.threshold, folds.alarms, folds.low) == (plain.threshold, plain.alarms, plain.low)
    assert folds.high == pytest.approx(1.25 * plain.high)
    assert folds.recalibrated("1/100 rows") == folds


def test_a_strict_calibration_of_an_earlier_version_keeps_its_threshold():
    made = quietly(calibrate, make_rule("threshold"), np.random.default_rng(3).exponential(size=6000), "1/100 rows")
    old = {**made.to_json(), "strict": True, "threshold": 2.0 * made.threshold}
    del old["folds"]
    assert check_calibration(old).threshold == 2.0 * made.threshold
    assert check_calibration({**old, "strict": False, "threshold": made.threshold}) == made


def test_levels_are_kept_on_a_scale_whose_unit_is_the_rules_own():
    scores = np.random.default_rng(0).exponential(size=500) + 7.0
    threshold, drift = make_rule("threshold").fit(scores), make_rule("drift", drift=1.5).fit(scores)
    at = np.array([6.0, np.median(scores), np.quantile(scores, 0.99), np.nan])
    np.testing.assert_allclose(threshold.compressed(at), [0.0, 0.0, np.log(2.0), np.nan])
    np.testing.assert_allclose(drift.compressed(np.array([0.0, 1.5])), [0.0, np.log(2.0)])
    np.testing.assert_allclose(make_rule("drift", drift=0.0).compressed(np.array([1.0])), np.log(2.0))
    assert quietly(calibrate, threshold, scores, "1/100 rows").compression == threshold.compression


def test_a_table_that_is_not_one_is_refused():
    good = Episodes.of([np.array([0.0, 2.0, 0.0, 1.0])], common=1.0, floor=0.0)
    assert Episodes.from_json(good.to_json()) == good
    unknown = good.joined([], 0)  # a stretch may be empty
    assert Episodes.from_json(unknown.to_json()) == unknown
    for change in (
        {"levels": [[1.0, 2.0]]},
        {"lengths": []},
        {"common": "x"},
        {"levels": [[float("inf")]]},
        {"lengths": [-4]},
    ):
        with pytest.raises(ArtefactError, match="normal episodes"):
            Episodes.from_json({**good.to_json(), **change})


def test_a_break_is_an_unknown_row_between_two_rows():
    found = with_breaks(Scored.of(np.arange(4.0)), [0, 3, 1, 1, 4, 9])
    np.testing.assert_array_equal(found.scores, [0.0, np.nan, 1.0, 2.0, np.nan, 3.0])


def test_nobody_sums_across_a_join():
    scores = np.tile(np.append(np.zeros(99), 5.0), 4)
    joined = with_breaks(Scored.of(scores), [100, 200, 300])
    assert np.isnan(joined.scores).sum() == 3
    rule = make_rule("excess", length=150, hold=1).fit(np.append(np.zeros(500), 1.0))
    sums = rule.accumulate(rule.evidence(joined), threshold=1e300).statistic
    alone = rule.accumulate(rule.evidence(scores[:100]), threshold=1e300).statistic
    np.testing.assert_array_equal(sums[101:201], alone)


@pytest.mark.parametrize("name", CALM)
def test_the_budget_is_about_kept_where_nothing_changes(name):
    counted = allowed = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rule = make_rule(name)
        calibration = calibrate(rule, rng.exponential(size=20_000), "1/1000 rows")
        future = rule.evidence(rng.exponential(size=50_000))
        active = rule.accumulate(future, threshold=calibration.threshold).active
        counted += int((active[1:] & ~active[:-1]).sum())
        allowed += 50
    assert 0.5 * allowed < counted < 1.3 * allowed


def test_a_restless_stretch_with_more_episodes_than_are_kept_does_not_lower_the_threshold(monkeypatch):
    rng = np.random.default_rng(0)
    stretches = [rng.exponential(size=4000) * scale for scale in (1.0, 1.0, 1.0, 3.0)]
    whole = Episodes.of(stretches, common=1.0, floor=0.0, most=10**6).threshold(20)
    monkeypatch.setattr("tisat.alarms.episodes.KEPT", 50)
    few = Episodes.of(stretches, common=1.0, floor=0.0, most=50)
    assert few.threshold(20) >= whole
    assert few.complete == few.levels[3][-1]

"""What a fitted watch says of its training data: constant channels, and rows that were left out."""

import warnings

import numpy as np
import pytest

from tisat import Watch
from tisat.detectors import crossfit
from tisat.errors import CalibrationWarning
from tisat.series import Series

NORMAL = np.random.default_rng(0).normal(size=(3000, 2))


def test_constant_data_is_said():
    with pytest.warns(CalibrationWarning, match="All training data is constant"):
        watch = Watch("last-value", budget="1/100 rows").fit(np.ones((3000, 2)))
    assert any("no budget is supported" in note for note in watch.calibration.notes)
    assert "Your data supports no budget: nothing in it varies." in str(watch.calibration)
    assert "Supported: no budget." in watch.calibration.words
    assert not any("can support" in note for note in watch.recalibrated("1/100000 rows").calibration.notes)
    rows = NORMAL.copy()
    rows[:, 1] = 4.0
    watch = Watch("last-value", budget="1/100 rows").fit(rows)
    assert any("Channel '1' is constant" in note for note in watch.calibration.notes)
    assert any(
        "by a few times 1 % of it (at least 0.01) stands out, a smaller one may not" in note
        for note in watch.calibration.notes
    )


def test_rows_left_out_of_training_are_said_in_python(tmp_path):
    rows = NORMAL.copy()
    rows[1000:1010] += 40.0
    watch = Watch("mahalanobis", budget="1/100 rows", contaminated=True)
    assert watch.left_out_rows == 0
    with pytest.warns(CalibrationWarning, match="training rows .* were left out as anomalous"):
        watch.fit(rows)
    assert 10 <= watch.left_out_rows < 100
    watch.save(tmp_path / "model.tisat")
    assert Watch.load(tmp_path / "model.tisat").left_out_rows == watch.left_out_rows


@pytest.mark.parametrize("counters", [[], ["1"]])
def test_labelled_rows_in_training_are_said(tmp_path, counters):
    labels = np.arange(3000) < 150
    watch = Watch("mahalanobis", budget="1/100 rows", counters=counters)
    with pytest.warns(
        CalibrationWarning, match="150 of 3,000 training rows are labelled anomalous, and learned as normal"
    ):
        watch.fit(Series(NORMAL, labels=labels))
    watch.save(tmp_path / "model.tisat")
    assert any("150 of 3,000" in note for note in Watch.load(tmp_path / "model.tisat").calibration.notes)
    quiet = Watch("mahalanobis", budget="1/100 rows").fit(Series(NORMAL, labels=np.zeros(3000)))
    assert not any("labelled" in note for note in quiet.calibration.notes)


def test_long_data_is_said_to_support_no_rarer_budget_by_more_rows(monkeypatch):
    monkeypatch.setattr(crossfit, "MAX_POINTS", 500)
    monkeypatch.setattr(crossfit, "MAX_VALUES", 500)
    rows = np.random.default_rng(0).normal(size=(3000, 1))
    with pytest.warns(CalibrationWarning) as said:
        watch = Watch("last-value", budget="1/2000 rows").fit(rows)
    assert any(
        "the most that a model keeps: more rows of training support no rarer" in str(one.message) for one in said
    )
    assert any("the most that a model keeps" in note for note in watch.calibration.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Watch("last-value", budget="1/50 rows").fit(rows)


def test_training_rows_without_a_score_are_said():
    rows = np.random.default_rng(0).normal(size=(3000, 1))
    rows[np.arange(3000) % 100 > 20] = np.nan
    with pytest.warns(CalibrationWarning, match=r"of 2,\d+ rows: rows that lack values, or warm up after a gap"):
        Watch("last-value", budget="1/20 rows").fit(rows)


def test_rows_at_no_even_pace_are_said():
    rng = np.random.default_rng(0)
    rows, regular = rng.normal(size=(3000, 1)), 60.0 * np.arange(3000)
    uneven = Series(rows, timestamps=np.cumsum(rng.exponential(60.0, 3000)))
    with pytest.warns(
        CalibrationWarning, match="every 4.* s in the median and every 5.* s on average: a budget per time"
    ):
        watch = Watch("last-value", budget="1/hour").fit(uneven)
    assert any("and 1/hour is one alarm in 1." in note for note in watch.calibration.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so rare a budget is extrapolated
        weekly, rare = (" ".join(watch.recalibrated(one).calibration.notes) for one in ("1/week", "1/100 rows"))
    rows_a_week = 7 * 86_400 / watch.detector.trained_on_["mean_seconds"]
    assert "1/week is one alarm in" in weekly  # of the budget that was asked, not of another
    assert f"By the clock it is '1/{round(rows_a_week)} rows'" in weekly
    assert "1/day" not in rare
    assert "By the clock" not in rare  # no number to copy where nothing was asked per time
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Watch("last-value", budget="1/100 rows").fit(uneven)
        gaps = Series(np.delete(rows, slice(500, 700), axis=0), timestamps=np.delete(regular, slice(500, 700)))
        Watch("last-value", budget="1/hour").fit(gaps)


def test_a_channel_that_sets_the_threshold_alone_is_named():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 4))
    assert not any(
        "set the threshold" in note for note in Watch("prism", budget="1/500 rows").fit(rows).calibration.notes
    )
    rows[:, 3] = np.repeat(rng.normal(0.0, 80.0, 40), 100) + rng.normal(size=4000)  # a set-point that somebody moves
    (note,) = [
        one for one in Watch("prism", budget="1/500 rows").fit(rows).calibration.notes if "set the threshold" in one
    ]
    assert note.startswith("3 makes ")
    assert "--drop 3" in note

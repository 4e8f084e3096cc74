"""Results as they are told: tables in words, sentences, plain values, pictures."""

import copy
import json
import math
from html import escape

import numpy as np
import pytest
from matplotlib.figure import Figure

from tisat import metrics
from tisat.metrics.audit import SweepPoint
from tisat.metrics.evaluation import WARNINGS, Row
from tisat.metrics.statistics import Interval

Y = np.array([0, 0, 0, 1, 1, 0, 0, 0, 1, 0])
S = np.array([3, 1, 4, 1, 5, 9, 2, 6, 4, np.nan])


@pytest.fixture
def account():
    return metrics.audit(Y, S, delta_max=2, threshold=4.0, n_simulations=1)


def test_a_result_prints_its_parts_and_notebooks_show_what_it_prints(account):
    alarms = metrics.evaluate_alarms(Y, S >= 4, delta_max=2, n_simulations=1)
    assert str(alarms).startswith(str(alarms.counts))
    for row in alarms.rows:
        assert row.name in str(alarms)
    assert str(account) == "".join(f"* {sentence}\n" for sentence in account.verdict) + f"\n{account.evaluation}"
    for result in (alarms, account, account.evaluation, account.evaluation.curve):
        assert result._repr_html_() == f"<pre>{escape(str(result))}</pre>"


def test_a_picture_is_drawn_where_one_says(account):
    axes = Figure().subplots(3)
    for result, axis in zip((account, account.evaluation, account.evaluation.curve), axes, strict=True):
        assert result.plot(axis) is axis
        assert axis.lines


@pytest.mark.parametrize(
    ("pooled", "said"),
    [
        (math.nan, "VUS-PR is undefined here."),
        (0.47, "VUS-PR 0.470 is below the best trivial baseline (random, 0.500)."),
        (0.49, "VUS-PR 0.490 is not told apart from the best trivial baseline (random, 0.500)."),
        (0.51, "VUS-PR 0.510 is not told apart from the best trivial baseline (random, 0.500)."),
        (
            0.75,
            "VUS-PR 0.750 is higher than the best trivial baseline (random, 0.500); whether that is luck, its interval says (tisat.metrics.comparison.compare).",
        ),
    ],
)
def test_a_row_says_where_it_lies_beside_the_best_baseline(pooled, said):
    row = Row("VUS-PR", pooled, pooled, 0.5, 0.5, "random")
    assert row.verdict == said
    assert row.warning == WARNINGS["VUS-PR"]
    assert Row("SPD", pooled, pooled, 0.5, 0.5, "random").warning == ""


@pytest.mark.parametrize(
    ("low", "high", "enough", "said"),
    [
        (0.6, 0.9, True, "SPD 0.750 [0.600, 0.900] is above the best trivial baseline (random, 0.500); chance-corrected it is 0.500."),
        (0.4, 1.0, True, "SPD 0.750 [0.400, 1.000] is not told apart from the best trivial baseline (random, 0.500)."),
        (math.nan, math.nan, False, "SPD 0.750 is not told apart from the best trivial baseline (random, 0.500): there are too few events."),
    ],
)  # fmt: skip
def test_a_row_is_above_a_baseline_only_where_its_interval_excludes_it(low, high, enough, said):
    assert Row("SPD", 0.75, 0.75, 0.5, 0.5, "random", Interval(0.75, low, high, 0.1, enough=enough)).verdict == said
    below = Row("SPD", 0.25, 0.25, 0.5, 0.5, "random", Interval(0.25, 0.2, 0.3, 0.1)).verdict
    assert below == "SPD 0.250 [0.200, 0.300] is below the best trivial baseline (random, 0.500)."


def test_an_account_as_plain_values(account):
    account = account.with_intervals({"SPD": Interval(0.5, 0.25, 0.75, 0.1)})
    scores = {one["name"]: one for one in account.to_dict()["scores"]}
    assert (scores["SPD"]["low"], scores["SPD"]["high"]) == (0.25, 0.75)
    assert "low" not in scores["PATE"]
    told = json.loads(json.dumps(account.to_dict()))
    evaluation = account.evaluation
    assert (told["n_series"], told["n_rows"], told["n_events"], told["delta_max"]) == (1, 10, 2, "2")
    assert told["verdict"] == list(account.verdict)
    assert [(one["name"], one["pooled"], one["beware"]) for one in told["scores"]] == [
        (row.name, pytest.approx(row.pooled, nan_ok=True), row.warning) for row in evaluation.rows
    ]
    assert set(told["baselines"]) == set(evaluation.curve.baselines.named)
    assert [one["corrected"] for one in told["sweep"]] == [point.corrected for point in account.sweep]
    assert (told["random_baseline"]["f1"], told["best_random_baseline"]["p"]) == (
        account.random_baseline.f1,
        account.best_random_baseline_probability,
    )
    assert (told["threshold"], told["threshold_source"], told["unknown_share"]) == (4.0, "given", 0.1)
    assert told["missed_events"] == []
    assert [(one["start"], one["delay"], one["time"]) for one in told["detected_events"]] == [
        (3, 1.0, ""),
        (8, 0.0, ""),
    ]
    assert [(one["time_step"], one["time"]) for one in told["false_alarms"]] == [(2, ""), (7, "")]
    assert SweepPoint(2, 0.75, 0.75, 0.5, "random").corrected == 0.5


def test_a_score_is_its_pooled_value_and_keeps_its_series_when_copied():
    score = metrics.Score.of(0.5, [0.25, math.nan])
    assert type(score.pooled) is float
    assert score.pooled == 0.5
    for copied in (copy.copy(score), copy.deepcopy(score)):
        assert repr(copied) == repr(score)


@pytest.mark.parametrize(
    ("stamps", "buffer"), [([0, 1, 2, 3, 4, 5, 6, 7, 8, 20], 3), ([0, 9, 18, 27, 36, 45, 54, 63, 72, 82], 1)]
)
def test_in_irregular_time_the_buffer_is_the_typical_number_of_time_steps(stamps, buffer):
    found = metrics.evaluate(Y, S, delta_max="3s", timestamps=np.array(stamps, dtype=float), n_simulations=1)
    assert found["VUS-PR"].pooled == metrics.vus_pr(Y, S, max_buffer=buffer)

"""Detectors side by side on normal rows: the same rows, faults and budget for all; what cannot be fitted is said."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import Ridge

import tisat
from tisat.cli import main
from tisat.datasets.synthetic import KINDS, make_plant
from tisat.detectors import Mahalanobis
from tisat.detectors.compared import ComparedDetector, DetectorComparison
from tisat.errors import ParameterError, SeriesError


@pytest.fixture(scope="module")
def normal():
    return make_plant(n_train=4000, n_channels=4).train


@pytest.fixture(scope="module")
def found(normal):
    return tisat.compare(normal, ["last-value", "mahalanobis", "random-guess"], budget="1/500 rows", n_faults=14)


def test_every_detector_meets_the_same_faults(found):
    assert {one.faults for one in found.detectors} == {14}
    for one in found.detectors:
        assert set(one.by_kind) <= set(KINDS)
        assert one.found == sum(hit for hit, _ in one.by_kind.values())
        assert one.allowed == pytest.approx(4.0)
        assert one.fit_seconds > 0
        assert one.row_microseconds > 0
    by_name = {one.detector: one for one in found.detectors}
    assert by_name["mahalanobis"].found > by_name["random-guess"].found


def test_most_found_comes_first_and_the_answer_names_it(found):
    assert [one.found for one in found.detectors] == sorted((one.found for one in found.detectors), reverse=True)
    assert found.detectors[0].detector in found.answer
    assert "budget 1/500 rows" in found.answer
    columns, rows = found.table()
    assert all(len(row) == len(columns) for row in rows)
    assert "mahalanobis" in str(found)
    assert "<table>" in found._repr_html_()
    assert len(found.plot().axes) == 2


def test_alarms_that_are_raised_anyway_find_nothing(normal):
    alarmed = np.array(normal.values)
    constant = tisat.compare(np.tile(alarmed[:1], (400, 1)), ["last-value"], budget="1/100 rows", n_faults=1)
    assert constant.detectors[0].false_alarms == 0


def test_what_cannot_be_fitted_is_said_beside_the_others(normal):
    short = tisat.compare(normal[:500], ["prism", "last-value"], budget="1/50 rows", n_faults=2, tail=0.8)
    by_name = {one.detector: one for one in short.detectors}
    assert "usable rows" in by_name["prism"].trouble
    assert not by_name["last-value"].trouble


def test_missing_values_stay_missing(normal):
    values = np.array(normal.values)
    values[2500:2600, 1] = np.nan
    assert tisat.compare(values, ["prism"], budget="1/500 rows", n_faults=3).detectors[0].faults == 3


def test_an_unknown_name_is_refused_before_anything_is_fitted(normal):
    with pytest.raises(ParameterError, match="Did you mean 'isolation-forest'"):
        tisat.compare(normal, ["mahalanobis", "iforest"])
    with pytest.raises(ParameterError, match="must be a list"):
        tisat.compare(normal, "prism")
    with pytest.raises(SeriesError, match="60 rows"):
        tisat.compare(normal[:50], ["last-value"])


@pytest.mark.parametrize(
    ("detector", "sentence"),
    [
        (Ridge(), r"Got Ridge\(\) instead; tisat\.detectors\.from_forecaster\(Ridge\(\)\) makes one"),
        (IsolationForest(), r"from_sklearn\(IsolationForest\(\)\) makes one"),
        (Mahalanobis, r"Got the class Mahalanobis instead; give an object of it, such as Mahalanobis\(\)"),
        (tisat.Watch("ewma"), r"Got a Watch instead; give its detector"),
        (tisat.Pipeline([("detector", Mahalanobis())]), r"Got a Pipeline instead; give its detector and rows"),
        (3, r"Got 3 instead; tisat\.detectors\.from_function"),
    ],
)
def test_what_is_no_detector_is_refused_with_what_makes_one(normal, detector, sentence):
    with pytest.raises(ParameterError, match=sentence):
        tisat.compare(normal, ["mahalanobis", detector])


def test_detectors_may_have_names_of_yours(normal):
    found = tisat.compare(normal, {"mine": Mahalanobis(window=3), "ewma": "ewma"}, budget="1/500 rows", n_faults=3)
    assert {one.detector for one in found.detectors} == {"mine", "ewma"}


def test_several_series_are_refused_as_such(normal):
    with pytest.raises(SeriesError, match=r"must be one series\. Got 2 instead"):
        tisat.compare([normal, normal], ["ewma"])


def test_the_first_detector_does_not_pay_for_what_all_share(normal, monkeypatch):
    fitted = []
    plain = tisat.Watch.fit
    monkeypatch.setattr(tisat.Watch, "fit", lambda self, *a, **k: (fitted.append(len(a[0])), plain(self, *a, **k))[1])
    tisat.compare(normal, ["ewma"], budget="1/500 rows", n_faults=1)
    assert fitted == [600, 2000]


def test_the_answer_claims_no_contest_of_one(normal):
    one = ComparedDetector("ewma", allowed=4.0, budget="met", found=3, faults=7)
    alone = DetectorComparison("plant", "1/day", 100, 100, (one,))
    assert "ewma found 3 of 7 injected faults." in alone.answer
    none = DetectorComparison("plant", "1/day", 100, 100, (replace(one, found=0),))
    assert none.answer.endswith("No injected fault was found.")


def test_the_answer_says_which_detectors_it_leaves_out_and_whether_the_best_met_the_budget():
    def answer(*results):
        compared = tuple(
            ComparedDetector(name, budget=budget, found=found, faults=7) for name, budget, found in results
        )
        return DetectorComparison("", "1 in 500 rows", 100, 100, compared)

    beyond = "exceeded beyond chance"
    none_met = answer(("prism", beyond, 6), ("ewma", "exceeded", 4))
    assert none_met.answer.endswith("prism found most: 6 of 7 injected faults, but no detector met the budget.")
    assert "tail=0.25" in str(none_met)
    one_met = answer(("prism", beyond, 6), ("ewma", "met", 4))
    assert one_met.answer.endswith(
        "Of those that did not exceed it beyond chance, ewma found most: 4 of 7 injected faults."
    )
    assert "tail" not in one_met.note
    by_chance = answer(("prism", "exceeded", 6), ("ewma", "met", 4))
    assert by_chance.answer.endswith("prism found most: 6 of 7 injected faults, but exceeded the budget.")


def test_the_verb_prints_the_same(normal, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savetxt("normal.csv", normal.values, delimiter=",", header="a,b,c,d", comments="")
    asked = [
        "compare",
        "normal.csv",
        "--detector",
        "last-value",
        "--budget",
        "1/500 rows",
        "--faults",
        "7",
        "--picture",
        "c.svg",
    ]
    with pytest.raises(SystemExit) as done:
        main([*asked, "--json"])
    assert done.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["detectors"][0]["faults"] == 7
    assert (tmp_path / "c.svg").stat().st_size > 1000
    with pytest.raises(SystemExit) as again:
        main(asked)
    assert again.value.code == 1
    assert "--overwrite" in capsys.readouterr().err


def test_rows_with_injected_faults_keep_their_time_zone():
    clock = pd.date_range("2026-03-20", periods=1200, freq="5min", tz="Europe/Berlin")
    rows = np.random.default_rng(0).normal(size=(1200, 2))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*no time zone.*")
        found = tisat.compare(
            pd.DataFrame(rows, columns=["a", "b"], index=clock), ["ewma"], budget="1/200 rows", n_faults=3
        )
    assert "ewma" in str(found)


def test_faults_are_found_at_a_loose_budget_too():
    """An alarm lasts 50 rows and more: at one in 144 rows it hid the next fault, and 5 of 21 were found where 1/week found 20."""
    rng = np.random.default_rng(5)
    clock = pd.date_range("2026-05-01", periods=4000, freq="10min")
    day = np.sin(2 * np.pi * (np.arange(4000) - 42) / 144)
    spreads = {"load": (50, 12, 1.0), "temp": (20, 4, 0.3), "flow": (8, 2, 0.2)}
    rows = {name: level + swing * day + rng.normal(0, noise, 4000) for name, (level, swing, noise) in spreads.items()}
    frame = pd.DataFrame(rows, index=clock)
    loose, strict = (
        {one.detector: one for one in tisat.compare(frame, ["prism", "random-guess"], budget=budget).detectors}
        for budget in ("1/day", "1/week")
    )
    assert strict["prism"].found >= 17
    assert loose["prism"].found >= 0.6 * strict["prism"].found
    assert loose["random-guess"].found == strict["random-guess"].found == 0  # its alarms are there without the faults


def test_a_single_channel_has_no_broken_correlation(normal):
    found = tisat.compare(normal.select(normal.channels[:1]), ["ewma"], budget="1/500 rows", n_faults=14).detectors[0]
    assert found.faults == 14
    assert set(found.by_kind) == set(KINDS) - {"broken correlation"}

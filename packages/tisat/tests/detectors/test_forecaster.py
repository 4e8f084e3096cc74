"""Any forecaster as a detector: under every contract test with models of scikit-learn and statsforecast."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor

import tisat
from tisat.datasets.synthetic import make_plant
from tisat.detectors import Traits, from_forecaster
from tisat.detectors.forecaster import ForecasterDetector
from tisat.errors import ArtefactError, InputError, ParameterError
from tisat.testing.contracts import CONTRACTS, contracts_for
from tisat.testing.subject import Subject


class Band:
    """A model of one's own: the range of each window, a little wider, for an interval."""

    def fit(self, parts):
        self.rows = sum(map(len, parts))
        return self

    def predict(self, windows):
        middle, half = windows[:, -1], 0.1 + 0.2 * windows.std(axis=1)
        return middle - half, middle + half


class OfSklearn(ForecasterDetector):
    """A ridge regression of lags."""

    @classmethod
    def _test_params(cls):
        return {"model": Ridge(), "window": 5}


class OfOwn(ForecasterDetector):
    """An interval."""

    @classmethod
    def _test_params(cls):
        return {"model": Band(), "window": 5}


class OfStatsforecast(ForecasterDetector):
    """A seasonal naive model."""

    traits: ClassVar[Traits] = replace(ForecasterDetector.traits, rounding=1e-5)  # it computes in float32

    @classmethod
    def _test_params(cls):
        models = pytest.importorskip("statsforecast.models")
        return {"model": models.SeasonalNaive(season_length=3), "window": 8}


SUBJECTS: dict[type, Subject] = {}


@pytest.mark.parametrize("contract", [name for name in CONTRACTS if name != "saved_and_loaded_is_the_same"])
@pytest.mark.parametrize("cls", [OfSklearn, OfOwn, pytest.param(OfStatsforecast, marks=pytest.mark.slow)])
def test_contract(cls, contract):
    if contract in contracts_for(cls):
        CONTRACTS[contract](SUBJECTS.setdefault(cls, Subject(cls)))


def test_only_saving_is_exempt(tmp_path):
    assert set(ForecasterDetector.traits.contract_exemptions) == {"saved_and_loaded_is_the_same"}
    watch = tisat.Watch(from_forecaster(Ridge(), window=5), budget="1/50 rows").fit(np.sin(np.arange(400) / 7.0))
    with pytest.raises(ArtefactError, match="made of Ridge cannot be saved"):
        watch.save(tmp_path / "m.tisat")
    assert not (tmp_path / "m.tisat").exists()


def test_a_gradient_boosting_of_one_channel_finds_a_fault_within_its_budget():
    rng = np.random.default_rng(0)
    wave = np.sin(np.arange(3500) / 9.0) + 0.05 * rng.normal(size=3500)
    wave[3000:3010] += 1.5
    watch = tisat.Watch(from_forecaster(HistGradientBoostingRegressor(max_iter=20), window=12), budget="1/500 rows")
    found = watch.fit(wave[:2500]).alarms(wave[2500:])
    assert any(500 <= one.raised < 512 for one in found)
    assert len(found) <= 6


def test_an_interval_names_the_bound_that_was_crossed():
    detector = from_forecaster(Band(), window=5).fit(np.sin(np.arange(600) / 9.0))
    rows = np.sin(np.arange(60) / 9.0)
    rows[40] += 9.0
    points = detector.points(rows)
    assert points[40, 0] > 10 * np.nanmax(np.abs(points[:40]))
    reason = detector.explain(rows[40:41], points[40])
    _, upper = (
        one * detector.scale_ + detector.center_
        for one in Band().predict(detector._standardise(rows[:, None])[None, 35:40])
    )
    assert reason.expected[0] == pytest.approx(upper[0, 0])


@pytest.mark.slow
def test_statsforecast_gives_an_interval():
    models = pytest.importorskip("statsforecast.models")
    plant = make_plant(n_train=600, n_test=1200, n_channels=2, n_faults=1, kinds=("level shift",), size=30)
    detector = from_forecaster(models.SeasonalNaive(season_length=2), window=30, level=80).fit(plant.train)
    start = plant.faults[0].start
    assert int(np.nanargmax(detector.decision_function(plant.test))) in range(start, plant.faults[0].stop + 3)


def test_a_regressor_of_one_target_is_fitted_to_each_channel():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    rows[1:, 1] += 2 * rows[:-1, 0]
    both = from_forecaster(HistGradientBoostingRegressor(max_iter=20), window=3).fit(rows)
    alone = from_forecaster(MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=20)), window=3).fit(rows)
    np.testing.assert_array_equal(both.decision_function(rows), alone.decision_function(rows))


class Gaps(Band):
    """No forecast after a large value."""

    def predict(self, windows):
        return np.where(np.abs(windows[:, -1:, 0]) > 2.0, np.nan, windows[:, -1])


def test_a_row_without_a_forecast_has_no_score():
    rows = np.random.default_rng(0).normal(size=(400, 2))
    watch = tisat.Watch(from_forecaster(Gaps(), window=5), budget="1/50 rows").fit(rows)
    large = np.abs(watch.detector._standardise(rows)[:-1, 0]) > 2.0
    missing = np.append(True, large)
    missing[:5] = True
    assert missing[5:].any()
    monitor = watch.monitor()
    ways = watch.detector.decision_function(rows), [one.score for one in monitor.extend(rows)]
    monitor = watch.monitor()
    for scores in (*ways, [monitor.update(row).score for row in rows]):
        np.testing.assert_array_equal(np.isnan(scores), missing)
    assert watch.alarms(rows).tally.judged == 400 - missing.sum()


def test_forecasts_of_which_none_is_known_and_bounds_in_the_other_order_are_refused():
    class Silent(Band):
        def predict(self, windows):
            return np.full(windows[:, -1].shape, np.nan)

    class Swapped(Band):
        def predict(self, windows):
            return super().predict(windows)[::-1]

    class Crossing(Band):  # as quantiles may, now and then
        def predict(self, windows):
            low, high = super().predict(windows)
            return low, np.where(windows[:, 0] > 0.9, low - 0.01, high)

    wave = np.sin(np.arange(300) / 7.0)
    with pytest.raises(InputError, match=r"Silent must be numbers\. Got NaN for every training row"):
        from_forecaster(Silent(), window=5).fit(wave)
    with pytest.raises(InputError, match=r"must be a pair \(lower, upper\)\. Got a lower one above .* in 100% of"):
        from_forecaster(Swapped(), window=5).fit(wave)
    assert np.isfinite(from_forecaster(Crossing(), window=5).fit(wave).decision_function(wave)[5:]).all()


def test_what_is_no_forecaster_is_refused_at_once():
    class Regressor:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return X[:, 0]

    for model, got in (
        (object(), "Got <object"),
        (Regressor(), r"Got Regressor, whose fit takes \(X, y\); derive it from sklearn\.base\.RegressorMixin"),
        (Band, r"Got the class Band instead; give an object of it, such as Band\(\)"),
        (Ridge, "Got the class Ridge"),
        (IsolationForest(), r"Got IsolationForest\(\), which tells outliers; tisat\.detectors\.from_sklearn"),
    ):
        with pytest.raises(ParameterError, match=f"an object with fit.parts. and predict.windows.. {got}"):
            from_forecaster(model, window=5)


def test_what_is_no_forecaster_is_refused():
    with pytest.raises(ParameterError, match="must be a regressor of scikit-learn"):
        from_forecaster(RandomForestClassifier()).fit(np.arange(100.0))
    with pytest.raises(ParameterError, match="must be a regressor of scikit-learn"):
        from_forecaster(object()).fit(np.arange(100.0))
    with pytest.raises(ParameterError, match="must be None but for models of statsforecast"):
        from_forecaster(Ridge(), level=80).fit(np.arange(100.0))

    class Wrong(Band):
        def predict(self, windows):
            return np.zeros((len(windows), 7))

    with pytest.raises(InputError, match="one value for each channel"):
        from_forecaster(Wrong(), window=4).fit(np.arange(100.0))


def test_a_detector_of_tisat_is_not_adapted():
    with pytest.raises(ParameterError, match="a detector of tisat: give it as it is"):
        tisat.detectors.from_sklearn(tisat.detectors.IsolationForest())

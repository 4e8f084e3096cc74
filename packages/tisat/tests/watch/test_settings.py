"""The parameters of a watch follow scikit-learn's conventions."""

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from tisat import Watch
from tisat.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")
ROWS = np.random.default_rng(0).normal(size=(1200, 2))


def test_scikit_learn_clones_a_watch_and_the_clone_is_not_fitted():
    from sklearn.base import clone

    watch = Watch("pca", period="1 min", counters=[], rearm="6h").fit(ROWS)
    copied = clone(watch)
    assert repr(copied) == repr(Watch("pca"))  # the default budget is chosen with the data, not stored by fit
    assert (copied.period, copied.given_counters, copied.rearm) == (60.0, [], "6h")
    assert copied.detector is not watch.detector
    assert not hasattr(copied.detector, "normal_")


def test_parameters_are_read_and_set_by_name_those_of_detector_and_rule_too():
    watch = Watch("pca", budget="1/100 rows").fit(ROWS)
    assert set(watch.get_params(deep=False)) == set(Watch._get_param_names())
    assert watch.get_params()["detector__window"] == watch.detector.window
    assert watch.set_params(budget="1/300 rows").calibration.target == 300.0
    assert watch.set_params(detector__window=3, control=False).get_params()["detector__window"] == 3
    assert not watch.control
    with pytest.raises(ParameterError, match=r"must be among budget, .*Got 'bugdet' instead\. Did you mean 'budget'"):
        watch.set_params(bugdet="1/day")


def test_a_budget_that_says_no_rate_is_refused_at_once():
    with pytest.raises(ParameterError, match=r"The budget of false alarms must be .* Got 'often' instead\.") as caught:
        Watch(budget="often")
    assert caught.value.parameter == "budget"
    assert Watch(budget="1/day").budget == "1/day"  # whether there is a clock is known with the data


def test_a_parameter_of_the_detector_given_to_the_watch_is_sent_there():
    with pytest.raises(TypeError, match=r"Got 'window' instead\. .*Watch\(tisat\.make\('pca', window=\.\.\.\)\)"):
        Watch("pca", window=5)
    with pytest.raises(TypeError, match="Did you mean 'budget'"):
        Watch(bugdet="1/day")


def test_a_watch_is_the_last_step_of_a_pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.random.default_rng(0).normal(size=(1500, 2))
    pipeline = make_pipeline(StandardScaler(), Watch("last-value", budget="1/200 rows")).fit(rows[:1000])
    later = np.array(rows[1000:])
    later[200:230] += 30.0
    watch, scaled = pipeline[-1], pipeline[:-1].transform(later)
    np.testing.assert_array_equal(pipeline.decision_function(later), watch.score(scaled))
    assert pipeline.predict(later)[205]
    assert not pipeline.predict(later)[:200].any()
    assert Watch("last-value").fit(rows, None).calibration.threshold > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"detector": IsolationForest()}, r"detector of Watch must be a name .*from_sklearn\(IsolationForest\(\)\) makes one"),
        ({"contaminated": 0.1}, "'contaminated' parameter of Watch must be True or False"),
    ],
)  # fmt: skip
def test_what_is_no_detector_or_no_flag_is_refused_by_fit(settings, said):
    with pytest.raises(ParameterError, match=said):
        Watch(**settings).fit(np.random.default_rng(0).normal(size=(500, 2)))

"""scikit-learn's compatibility: its own checks over detectors, the names it looks for, a pipeline that also raises alarms."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.exceptions
from sklearn.base import clone, is_outlier_detector
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import tisat
from tisat import Pipeline, Series, registry
from tisat.detectors import LastValue, Mahalanobis
from tisat.errors import NotFittedError, ParameterError, SeriesError

# scikit-learn's checks that cannot hold here, and why. Everything else must pass. docs/2-scores.md has the same list.
SIGN = "predict is 1 and 0 here, and higher = more anomalous"
TIME = "rows are a series: their order matters, and a row is scored by its past"
EXCEPTIONS = {
    "check_outliers_fit_predict": SIGN,
    "check_outliers_train": SIGN,
    "check_methods_sample_order_invariance": TIME,
    "check_methods_subset_invariance": TIME,
    "check_fit1d": "one channel may come flat",
    "check_fit2d_predict1d": "a flat array is one channel, so the sentence is about the number of channels",
    "check_n_features_in_after_fitting": "refused too, in words of our own: 'must have the 4 channels it was fitted on'",
    "check_dtype_object": "refused too, in words of our own: 'must be numbers'",
    "check_estimators_empty_data_messages": "refused too, in words of our own: 'must have shape (T, C) with C >= 1'",
    "check_fit2d_1sample": "refused too, in words of our own: 'at least 3 usable rows'",
    "check_fit2d_1feature": "ten rows are fewer than a window",
    "check_classifier_data_not_an_array": "twelve rows are fewer than a window",
}
CHECKED = ("mahalanobis", "last-value", "ewma", "pca", "isolation-forest", "ecod", "linear-mean")
QUICK = {"isolation-forest": {"n_estimators": 5}, "linear-mean": {"window": 3}}


@pytest.mark.parametrize("name", CHECKED)
def test_scikit_learn_checks_pass_but_for_the_listed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(tisat.make(name, **QUICK.get(name, {})), on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert {key: failed[key] for key in failed if key not in EXCEPTIONS} == {}
    assert sum(one["status"] == "passed" for one in found) >= 30


ROWS = np.random.default_rng(1).normal(size=(600, 3))
FRAME = pd.DataFrame(
    ROWS, columns=["flow", "heat", "power"], index=pd.date_range("2026-03-01", periods=600, freq="min", name="time")
)


@pytest.mark.parametrize("name", registry.names())
def test_every_detector_is_an_outlier_detector(name):
    cls = registry.resolve(name)
    detector = cls(**cls._test_params())
    assert is_outlier_detector(detector)
    for attribute in ("threshold_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(detector, attribute)


def test_names_of_scikit_learn():
    detector = LastValue().fit(FRAME)
    assert detector.n_features_in_ == 3
    assert detector.feature_names_in_.tolist() == ["flow", "heat", "power"]
    np.testing.assert_array_equal(detector.score_samples(FRAME), -detector.decision_function(FRAME))
    np.testing.assert_array_equal(LastValue().fit_predict(FRAME), detector.predict(FRAME))
    np.testing.assert_array_equal(
        detector.predict(FRAME), np.nan_to_num(detector.decision_function(FRAME)) > detector.normal_level()
    )
    assert not hasattr(LastValue().fit(ROWS), "feature_names_in_")
    for caught in (sklearn.exceptions.NotFittedError, NotFittedError):
        with pytest.raises(caught, match="must be fitted"):
            LastValue().predict(ROWS)


def test_tensors_are_taken_and_sparse_and_complex_rows_refused():
    import scipy.sparse

    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.asarray(ROWS, dtype=dtype)

    np.testing.assert_array_equal(LastValue().fit(Tensor()).normal_, LastValue().fit(ROWS).normal_)
    with pytest.raises(SeriesError, match=r"sparse data is not supported. Give it as .toarray\(\)"):
        LastValue().fit(scipy.sparse.csr_array(ROWS))
    with pytest.raises(SeriesError, match="Complex data not supported"):
        LastValue().fit(ROWS.astype(complex))


def pipe(*steps):
    return Pipeline([*steps, ("detector", Mahalanobis(window=2))])


def test_a_pipeline_raises_alarms_with_the_clock_of_the_data():
    faulty = FRAME.copy()
    faulty.iloc[400:420, 1] += 25.0
    pipeline = pipe(("scale", StandardScaler())).fit(FRAME)
    alarms = pipeline.alarms(faulty, false_alarms="1/2h", rule="threshold")
    assert "2026-03-01T06:40:00" in [alarm.raised_time for alarm in alarms]
    contributing = next(alarm for alarm in alarms if alarm.raised == 400)
    assert next(iter(contributing.channels)) == "heat"
    scaled = StandardScaler().fit(ROWS).transform(ROWS)
    direct = Mahalanobis(window=2).fit(scaled).decision_function(scaled)
    np.testing.assert_allclose(pipeline.decision_function(FRAME), direct)
    np.testing.assert_array_equal(pipeline.score_samples(FRAME), -pipeline.decision_function(FRAME))
    np.testing.assert_array_equal(pipeline.predict(FRAME), pipeline.detector.predict(pipeline.prepare(FRAME)))


@pytest.mark.parametrize("kind", ["default", "pandas", "polars"])
def test_a_pipeline_lives_with_set_output(kind):
    pipeline = pipe(("fill", SimpleImputer()), ("scale", RobustScaler())).set_output(transform=kind)
    prepared = pipeline.fit(FRAME).prepare(FRAME)
    assert prepared.channels == ("flow", "heat", "power")
    assert prepared.period == 60.0
    assert pipeline.detector.feature_names_in_.tolist() == ["flow", "heat", "power"]


def test_a_pipeline_selects_columns_and_takes_several_series_and_options_of_fit():
    chosen = ColumnTransformer([("both", "passthrough", ["flow", "power"])], verbose_feature_names_out=False)
    pipeline = pipe(("choose", chosen)).fit([FRAME[:300], FRAME[300:]], detector__holdout=0.25)
    assert pipeline.detector.channels_ == ("flow", "power")
    assert pipeline.detector.normal_source_ == "held-out tail"
    assert len(pipeline.fit_predict(FRAME)) == 600
    assert pipe(("none", "passthrough")).fit(ROWS).detector.n_features_in_ == 3


def test_a_pipeline_is_searched_and_cloned():
    y = np.zeros(600, dtype=int)
    rows = ROWS.copy()
    y[550:570] = 1
    rows[550:570] += 4.0
    score = make_scorer(lambda y, s: roc_auc_score(y, np.nan_to_num(s)), response_method="decision_function")
    half = [(np.arange(300), np.arange(300, 600))]
    search = GridSearchCV(pipe(("scale", StandardScaler())), {"detector__window": [1, 2, 5]}, scoring=score, cv=half)
    search.fit(rows, y)
    assert search.best_score_ > 0.9
    assert clone(search.best_estimator_).get_params()["detector__window"] in (1, 2, 5)


def test_a_pipeline_refuses_what_it_cannot_do():
    with pytest.raises(ParameterError, match="last step of a tisat Pipeline must be a detector"):
        Pipeline([("a", StandardScaler()), ("b", StandardScaler())]).fit(ROWS)
    with pytest.raises(ParameterError, match=r"must begin with 'detector__'. Got 'holdout'"):
        pipe(("a", StandardScaler())).fit(ROWS, holdout=0)
    with pytest.raises(SeriesError, match="FunctionTransformer of a Pipeline must give a row for each row"):
        pipe(("half", FunctionTransformer(lambda rows: rows[::2]))).fit(ROWS)
    assert isinstance(pipe(("a", StandardScaler())).fit(Series(ROWS)).prepare(ROWS), Series)

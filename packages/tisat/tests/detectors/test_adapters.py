"""Adapters: polarity, causality, one line each, and what can be saved."""

import warnings

import numpy as np
import pytest
from sklearn.covariance import EllipticEnvelope
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

import tisat
from tisat.detectors import from_function, from_pyod, from_sklearn
from tisat.detectors.adapter import ESTIMATORS, Adapter
from tisat.detectors.loading import load
from tisat.errors import ArtefactError, InputError, ParameterError

TRAIN = np.random.default_rng(0).standard_normal((300, 3)) * [1.0, 10.0, 0.1]
TEST = np.array([[0.0, 0.0, 0.0], [8.0, 80.0, -0.8]])


@pytest.mark.parametrize(
    "estimator",
    [EllipticEnvelope(), GaussianMixture(2), OneClassSVM(nu=0.1), LocalOutlierFactor(novelty=True)],
    ids=repr,
)
def test_scikit_learn_in_one_line_with_the_sign_turned(estimator, tmp_path):
    detector = from_sklearn(estimator).fit(TRAIN)
    near, far = detector.decision_function(TEST)
    assert near < detector.normal_level() < far
    detector.save(tmp_path / "model.tisat")
    again = load(tmp_path / "model.tisat")
    assert repr(again) == repr(detector)
    np.testing.assert_array_equal(again.decision_function(TRAIN), detector.decision_function(TRAIN))


def test_agrees_with_the_direct_call():
    detector = from_sklearn(GaussianMixture(3, random_state=1), standardise=False, window=2).fit(TRAIN, holdout=0)
    rows = np.hstack([TRAIN[:-1], TRAIN[1:]])
    direct = GaussianMixture(3, random_state=1).fit(rows)
    np.testing.assert_allclose(detector.decision_function(TRAIN)[1:], -direct.score_samples(rows), rtol=1e-12)


@pytest.mark.slow  # HBOS compiles itself on first use
def test_pyod_in_one_line(tmp_path):
    hbos = pytest.importorskip("pyod.models.hbos").HBOS
    detector = from_pyod(hbos(n_bins=8)).fit(TRAIN, holdout=0)
    assert repr(detector) == "Adapter(estimator='pyod:HBOS', params={'n_bins': 8})"
    direct = hbos(n_bins=8).fit((TRAIN - TRAIN.mean(axis=0)) / TRAIN.std(axis=0))
    np.testing.assert_allclose(detector.decision_function(TRAIN), direct.decision_scores_, rtol=1e-9)
    detector.save(tmp_path / "model.tisat")
    np.testing.assert_array_equal(
        load(tmp_path / "model.tisat").decision_function(TEST), detector.decision_function(TEST)
    )


def test_an_estimator_that_ranks_a_batch_is_made_causal():
    """PyOD's ECOD gives a row another score in other company; through the adapter it does not."""
    ecod = pytest.importorskip("pyod.models.ecod").ECOD
    direct = ecod().fit(TRAIN)
    crowd = np.vstack([TEST[:1], np.full((200, 3), 50.0)])
    assert direct.decision_function(crowd)[0] != direct.decision_function(TEST[:1])[0]
    with pytest.warns(UserWarning, match="depend on the other rows"):
        detector = from_pyod(ecod()).fit(TRAIN)
    assert detector.decision_function(crowd)[0] == detector.decision_function(TEST[:1])[0]


@pytest.mark.slow
def test_every_estimator_of_the_list_can_be_built_and_fitted():
    pytest.importorskip("pyod")
    for name in ESTIMATORS:
        params = {"novelty": True} if name == "sklearn:LocalOutlierFactor" else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detector = Adapter(name, params=params).fit(TRAIN[:120])
        near, far = detector.decision_function(TEST)
        assert near < far, name


class Home:
    """An estimator of the user's own, with scikit-learn's methods."""

    def get_params(self, deep=True):
        return {}

    def fit(self, rows):
        self.mean = rows.mean(axis=0)
        return self

    def score_samples(self, rows):
        return -np.abs(rows - self.mean).sum(axis=1)


def test_an_object_of_ones_own_works_but_cannot_be_saved(tmp_path):
    detector = from_sklearn(Home()).fit(TRAIN)
    assert detector.decision_function(TEST)[1] > detector.normal_level()
    with pytest.raises(ArtefactError, match="can be saved where its estimator is one of"):
        detector.save(tmp_path / "model.tisat")


def test_a_file_can_only_name_listed_estimators():
    with pytest.raises(ParameterError, match="must be one of"):
        Adapter("os:system").fit(TRAIN)


def test_lof_without_novelty_is_refused():
    with pytest.raises(ParameterError, match="novelty=True"):
        from_sklearn(LocalOutlierFactor()).fit(TRAIN)


# ------------------------------------------------------------------------------------------------------ functions


def jumps(values):
    return np.abs(np.diff(values, axis=0, prepend=values[:1])).max(axis=1)


@pytest.mark.parametrize("wrap", [from_sklearn, from_pyod])
def test_a_class_is_refused_at_once(wrap):
    with pytest.raises(ParameterError, match=r"must be an object with fit\. Got the class OneClassSVM instead"):
        wrap(OneClassSVM)


def test_a_function_goes_through_the_alarm_layer():
    normal = np.random.default_rng(1).standard_normal((4000, 2))
    detector = from_function(jumps, context=1).fit(normal)
    np.testing.assert_allclose(detector.decision_function(normal)[1:], jumps(normal)[1:])
    monitor = detector.monitor(false_alarms="1/50 rows", rule="threshold")
    verdicts = [monitor.update(row) for row in np.vstack([normal[:50], np.full((1, 2), 40.0)])]
    assert verdicts[-1].active


def test_a_function_that_looks_ahead_is_refused_unless_it_is_given_windows():
    def centred(values):
        return np.abs(values - values.mean(axis=0)).max(axis=1)

    with pytest.raises(ParameterError, match="must not look ahead"):
        from_function(centred).fit(TRAIN)
    detector = from_function(centred, context=20).fit(TRAIN)
    whole, prefix = detector.decision_function(TRAIN), detector.decision_function(TRAIN[:100])
    np.testing.assert_array_equal(whole[:100], prefix)
    assert np.isnan(whole[:20]).all()


def test_functions_of_the_wrong_shape_and_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="one score a row"):
        from_function(lambda values: values.sum()).fit(TRAIN)
    with pytest.raises(ArtefactError, match="cannot be saved"):
        from_function(jumps).fit(TRAIN).save(tmp_path / "model.tisat")
    with pytest.raises(ParameterError, match="context"):
        from_function(jumps).fit(TRAIN)._stream()


def test_adapters_are_where_users_look_for_them():
    assert tisat.detectors.from_pyod is from_pyod
    assert "from_function" in dir(tisat.detectors)

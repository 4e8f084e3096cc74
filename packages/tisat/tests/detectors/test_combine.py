"""Several detectors as one: the contract tests are in tests/contract; here is what only an ensemble can get wrong."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import tisat
from tisat.detectors import Combine, LastValue, Mahalanobis, from_forecaster, from_function
from tisat.errors import ArtefactError, CalibrationWarning, ParameterError
from tisat.persistence.estimator import detector_from, document_of
from tisat.watch import Watch


class FromOutside(LastValue):
    """Not registered, with a constructor of its own."""

    def __init__(self, *, limit):
        self.limit = limit


ROWS = np.sin(np.arange(1500)[:, None] / 20 + [0.0, 1.0]) + 0.1 * np.random.default_rng(0).normal(size=(1500, 2))


def test_units_of_members_do_not_matter():
    plain = tisat.combine("last-value", ("mahalanobis", {"window": 2})).fit(ROWS)
    views = plain.score_points(plain.points(ROWS)).views
    assert views.shape == (1500, 2)
    known = views[~np.isnan(views).any(axis=1)]
    np.testing.assert_allclose(np.median(known, axis=0), -1.0, atol=0.2)
    np.testing.assert_allclose(np.quantile(known, 0.99, axis=0), 0.0, atol=0.35)
    expected = np.log1p(np.maximum(views + 1, 0)).sum(axis=1)
    np.testing.assert_allclose(plain.decision_function(ROWS), expected)
    loudest = tisat.combine("last-value", ("mahalanobis", {"window": 2}), how="max").fit(ROWS)
    np.testing.assert_allclose(loudest.decision_function(ROWS), np.maximum(views + 1, 0).max(axis=1))


def test_each_member_is_heard_and_named():
    detector = tisat.combine("last-value", ("mahalanobis", {"window": 1})).fit(ROWS)
    faulty = ROWS.copy()
    faulty[700, 0] += 5.0  # a jump: the forecaster's
    points = detector.points(faulty)
    assert detector.explain(faulty[700], points[700]).kind == "forecast error"
    assert detector.explain(faulty[700], points[700]).ranking()[0] == 0


def test_a_member_alone_is_itself_up_to_units():
    alone = Mahalanobis(window=2).fit(ROWS, holdout=0)
    inside = Combine(members=(("mahalanobis", {"window": 2}),), how="max").fit(ROWS, holdout=0)
    a, b = alone.decision_function(ROWS), inside.decision_function(ROWS)
    known = ~np.isnan(a)
    above = known & (b > 0)
    assert np.corrcoef(a[above], b[above])[0, 1] == pytest.approx(1.0)
    np.testing.assert_array_equal(np.isnan(b), ~known)


def test_it_is_watched_saved_and_read_back(tmp_path):
    with pytest.warns(CalibrationWarning):
        watch = Watch(tisat.combine("ewma", "pca"), budget="1/2000 rows").fit(ROWS)  # a member with unbounded memory
    watch.save(tmp_path / "m.tisat")
    again = Watch.load(tmp_path / "m.tisat")
    faulty = ROWS.copy()
    faulty[900:910] += 4.0
    assert [a.raised for a in again.alarms(faulty)] == [a.raised for a in watch.alarms(faulty)]
    monitor = again.monitor()
    raised = [t for t, row in enumerate(faulty) if monitor.update(row).raised]
    assert raised == [a.raised for a in watch.alarms(faulty)]


def test_members_that_do_not_fit_are_refused(tmp_path):
    for members, said in (
        ((), "1 to 20"),
        ("prism", "tuple"),
        ((3,), "must be a name"),
        (("no-such",), "must be one that `tisat detectors` lists"),
        ((("pca", {"windw": 3}),), "windw"),
    ):
        with pytest.raises(ParameterError, match=said):
            Combine(members=members).fit(ROWS)
    with pytest.raises(ParameterError, match="must be given one by one"):
        tisat.combine(["pca", "ewma"])
    one, other = (tisat.combine(name).fit(ROWS) for name in ("pca", "ewma"))
    document, tensors = document_of(one)
    document["params"]["members"] = ["ewma"]
    with pytest.raises(ArtefactError, match="must be what its parameters name"):
        detector_from(Combine, document, tensors, path="x")
    assert other.score_points(other.normal_).views.shape[1] == 1


@pytest.mark.parametrize(
    "other",
    [
        from_forecaster(Ridge(), window=3),
        from_function(lambda v: np.abs(v).max(axis=1), context=2),
        FromOutside(limit=2.0),
    ],
)
def test_a_member_of_no_registered_class_is_taken_as_it_is_and_saved_only_with_its_own_words(other, tmp_path):
    both = clone(tisat.combine("mahalanobis", other))
    assert both.get_params()["members"][0] == "mahalanobis"
    assert repr(both.members[1]) == repr(other)
    watch = Watch(both, budget="1/100 rows").fit(ROWS)
    assert not hasattr(other, "normal_"), "a copy is fitted"
    faulty = ROWS.copy()
    faulty[900:910] += 4.0
    monitor = watch.monitor()
    raised = [t for t, row in enumerate(faulty) if monitor.update(row).raised]
    assert raised
    assert raised == [a.raised for a in watch.alarms(faulty)]
    with pytest.raises((ArtefactError, ParameterError)) as alone:
        other.fit(ROWS).save(tmp_path / "m.tisat")
    with pytest.raises(type(alone.value), match=re.escape(str(alone.value))):
        watch.save(tmp_path / "m.tisat")


def test_dear_members_are_not_fitted_five_times():
    assert tisat.combine("pca", "ewma").fit(ROWS).normal_source_ == "cross-fitted"
    assert tisat.combine("pca", "isolation-forest").fit(ROWS).normal_source_ in ("cross-fitted", "held-out tail")


def test_what_members_decide_once_holds_for_the_models_of_all_folds():
    """Where a pump switches, prism takes mode views or not: once, as it does alone, or the points of the folds differ in width."""
    rng, n = np.random.default_rng(0), 2500
    edges = np.cumsum(rng.integers(20, 130, size=100))
    on = np.where(np.arange(n) < n // 4, np.searchsorted(edges, np.arange(n)) % 2, 0).astype(float)
    load = np.sin(2 * np.pi * np.arange(n) / 1440)
    rows = np.stack([on, on * (20 + 5 * load), 3 * on * (1 + 0.3 * load), 5 + 2 * load], axis=1)
    rows[:, 1:] += rng.normal(size=(n, 3)) * [0.5, 0.05, 0.1]
    fitted = tisat.combine("prism", "mahalanobis").fit(rows)
    assert fitted.normal_source_ == "cross-fitted"

"""Several detectors as one: the contract tests are in tests/contract; here is what only an ensemble can get wrong."""

import numpy as np
import pytest

import tisat
from tisat.detectors import Combine, Mahalanobis
from tisat.errors import ArtefactError, CalibrationWarning, ParameterError
from tisat.persistence.estimator import detector_from, document_of
from tisat.watch import Watch

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
    one, other = (tisat.combine(name).fit(ROWS) for name in ("pca", "ewma"))
    document, tensors = document_of(one)
    document["params"]["members"] = ["ewma"]
    with pytest.raises(ArtefactError, match="must be what its parameters name"):
        detector_from(Combine, document, tensors, path="x")
    assert other.score_points(other.normal_).views.shape[1] == 1


def test_dear_members_are_not_fitted_five_times():
    assert tisat.combine("pca", "ewma").fit(ROWS).normal_source_ == "cross-fitted"
    assert tisat.combine("pca", "isolation-forest").fit(ROWS).normal_source_ in ("cross-fitted", "held-out tail")

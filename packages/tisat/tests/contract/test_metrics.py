"""Every contract test of a metric on every metric; and every public name of tisat.metrics is sorted into one of the lists below."""

import math

import numpy as np
import pytest

from tisat import metrics

# Higher is better, from 0 to 1, every threshold looked at.
THRESHOLD_FREE = {
    "spd_score": lambda y, s: metrics.spd_score(y, s, delta_max=5),
    "spd_curve": lambda y, s: metrics.spd_curve(y, s, delta_max=5).score,
    "best_event_f1": lambda y, s: metrics.best_event_f1(y, s, delta_max=5),
    "best_instance_f1": metrics.best_instance_f1,
    "best_adjusted_f1": metrics.best_adjusted_f1,
    "best_pa_k_f1": lambda y, s: metrics.best_pa_k_f1(y, s, k=20),
    "pa_k_auc": metrics.pa_k_auc,
    "vus_pr": lambda y, s: metrics.vus_pr(y, s, max_buffer=4),
    "vus_roc": lambda y, s: metrics.vus_roc(y, s, max_buffer=4),
    "auc_roc": metrics.auc_roc,
    "auc_pr": metrics.auc_pr,
    "pate": lambda y, s: metrics.pate(y, s, max_buffer=4),
    "nab_score": metrics.nab_score,
}
# The same at one threshold.
AT_A_THRESHOLD = {
    "instance_precision_recall": metrics.instance_precision_recall,
    "adjusted_precision_recall": metrics.adjusted_precision_recall,
    "pa_k_precision_recall": lambda y, s, threshold: metrics.pa_k_precision_recall(y, s, threshold=threshold, k=20),
    "range_precision_recall": metrics.range_precision_recall,
    "affiliation_precision_recall": metrics.affiliation_precision_recall,
    "alarm_precision": lambda y, s, threshold: metrics.alarm_precision(y, s, threshold=threshold, delta_max=5),
}
# Those for which a score that is high at the onset alone is perfect; the others want the whole event, and get it.
ONSET_IS_ENOUGH = {"spd_score", "spd_curve", "best_event_f1", "best_adjusted_f1", "nab_score"}
# Not scores of scores: counts, delays, baseline scores, random baselines, results, tables, and alarms given by other means.
OTHER = {
    "AlarmCounts", "AlarmEvaluation", "Audit", "Evaluation", "Baselines", "PrecisionRecall", "SPDCurve", "Score", "audit",
    "average_detection_delay", "best_random_guess", "chance_corrected", "count_alarms", "count_at_threshold", "count_raises",
    "detection_delay", "evaluate", "evaluate_alarms", "baselines", "random_guess", "random_guess_simulated", "spd_curve_of_active",
    "spd_curve_of_raises", "spd_score_of_active", "spd_score_of_raises",
}  # fmt: skip


def number(result):
    return result.f1 if isinstance(result, metrics.PrecisionRecall) else float(result)


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(11)
    labels, scores = [], []
    for _ in range(4):
        y = np.zeros(120, dtype=int)
        for start in rng.choice(100, 3, replace=False):
            y[start : start + int(rng.integers(1, 12))] = 1
        labels.append(y)
        scores.append(np.round(rng.random(120) + 0.5 * y * rng.random(120), 2))
    return labels, scores


def test_no_metric_was_forgotten():
    assert set(metrics.__all__) == set(THRESHOLD_FREE) | set(AT_A_THRESHOLD) | OTHER


@pytest.mark.filterwarnings("ignore:y_true has no event")
@pytest.mark.parametrize("name", THRESHOLD_FREE)
def test_contracts_of_threshold_free_metrics(series, name):
    metric = THRESHOLD_FREE[name]
    labels, scores = series
    kept = [array.copy() for array in (*labels, *scores)]
    value = number(metric(labels, scores))
    assert 0 < value < 1
    assert all(np.array_equal(a, b) for a, b in zip(kept, (*labels, *scores), strict=True))  # the input is untouched
    assert number(metric(labels, [np.exp(3 * s) for s in scores])) == pytest.approx(value)  # only the order matters
    assert number(metric(labels[::-1], scores[::-1])) == pytest.approx(value)  # the order of series does not
    assert number(metric(labels[0], scores[0])) == number(metric([labels[0]], [scores[0]]))  # a list of one is one
    assert number(metric([y.tolist() for y in labels], [s.tolist() for s in scores])) == value  # lists are arrays
    mean = metric(labels, scores).per_series_mean
    each = [number(metric(y, s)) for y, s in zip(labels, scores, strict=True)]
    assert number(mean) == pytest.approx(np.mean(each))
    perfect = [
        (np.diff(y, prepend=0) == 1).astype(float) if name in ONSET_IS_ENOUGH else y.astype(float) for y in labels
    ]
    best = number(metric(labels, perfect))
    assert best == pytest.approx(1) if not name.startswith("vus") else best > 0.75  # its buffers are never wholly found
    assert best > value
    assert math.isnan(number(metric([0, 0, 0], [1, 2, 3])))  # no event: undefined, not 0


@pytest.mark.parametrize("name", AT_A_THRESHOLD)
def test_contracts_of_metrics_at_a_threshold(series, name):
    metric = AT_A_THRESHOLD[name]
    labels, scores = series
    value = number(metric(labels, scores, threshold=0.95))
    assert 0 < value < 1
    assert number(metric(labels[::-1], scores[::-1], threshold=0.95)) == pytest.approx(value)
    assert number(metric(labels, [2 * s for s in scores], threshold=1.9)) == pytest.approx(value)
    assert number(metric(labels[0], scores[0], threshold=0.95)) == number(
        metric([labels[0]], [scores[0]], threshold=0.95)
    )
    assert number(metric(labels, [y.astype(float) for y in labels], threshold=1)) == pytest.approx(1)
    silent = number(metric(labels, scores, threshold=99))
    assert silent == 0 or math.isnan(silent)
    warm_up = [np.where(np.arange(len(s)) < 10, np.nan, s) for s in scores]
    quiet = [np.where(np.arange(len(s)) < 10, -1.0, s) for s in scores]
    assert number(metric(labels, warm_up, threshold=0.95)) == number(
        metric(labels, quiet, threshold=0.95)
    )  # NaN never alarms


@pytest.mark.parametrize("name", sorted(set(metrics.__all__) - {"AlarmCounts"}))
def test_the_adjusted_scores_open_with_their_warning_and_every_name_has_a_docstring(name):
    doc = getattr(metrics, name).__doc__
    assert doc
    if name in ("auc_roc", "auc_pr", "vus_roc", "pate", "nab_score"):
        assert "Beware: " in doc
    if "adjusted" in name or ("pa_k_" in name and name != "pa_k_auc"):
        assert "random guessing wins" in doc.partition("\n")[0]

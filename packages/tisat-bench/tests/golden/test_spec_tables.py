"""Figures computed on the real labels of the benchmarks, and figures worked out by hand.

The tables are those of sections 2 and 3 of the specification (SPD of an alarm that is always on; adjusted scores of random guessing with
p = 0.01), and Table I of Doshi, Abudalou, Yilmaz, "Reward Once, Penalize Once", for SWaT. They need the label files: TISAT_DATA.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from tisat import metrics
from tisat.events import events_from_labels
from tisat_bench import datasets

# labels: (series, T, events, anomalous %, precision, recall, F1 of p = 0.01 in percent)
RANDOM_GUESS = {
    "smd": (28, 708_420, 327, 4.16, 78.73, 85.38, 81.92),
    "msl": (27, 73_729, 36, 10.53, 91.23, 88.37, 89.78),
    "smap": (54, 435_826, 68, 12.84, 93.50, 97.60, 95.50),
    "swat": (1, 449_919, 35, 12.14, 93.22, 99.48, 96.25),
    "psm": (1, 87_841, 72, 27.76, 97.40, 97.53, 97.47),
}
# SPD of always-on in percent at delta_max 10, 100, 500, 1000, 5000
ALWAYS_ON = {
    "smd": (0.5, 4.7, 22.6, 41.8, 84.7),
    "msl": (0.5, 5.2, 22.0, 36.7, 57.1),
    "smap": (0.2, 1.8, 8.3, 15.6, 46.3),
    "swat": (0.1, 0.9, 4.3, 8.4, 36.1),
    "psm": (1.1, 10.7, 42.9, 66.1, 98.6),
}
# pooled / per-series mean at delta_max 100, from the quality study of the specification, 3 decimals
DETERMINISTIC_BASELINES = {
    "msl": {"always_on": (0.052, 0.061), "on_off": (0.081, 0.092)},
    "smap": {"always_on": (0.018, 0.018), "on_off": (0.031, 0.031)},
}


@pytest.fixture(scope="module")
def labels():
    folder = os.environ.get("TISAT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("TISAT_DATA does not name a folder with the data sets")
    return {name: list(datasets.labels(name, folder).values()) for name in RANDOM_GUESS}


@pytest.mark.data
@pytest.mark.parametrize("name", RANDOM_GUESS)
def test_random_guess_on_real_labels(labels, name):
    many = labels[name]
    n_series, length, n_events, percent, *scores = RANDOM_GUESS[name]
    assert (len(many), sum(map(len, many)), sum(len(events_from_labels(y)) for y in many)) == (
        n_series,
        length,
        n_events,
    )
    assert round(100 * sum(int(y.sum()) for y in many) / length, 2) == percent
    found = metrics.random_guess(many, 0.01)
    assert [round(100 * value, 2) for value in (found.precision, found.recall, found.f1)] == scores
    thrown = metrics.random_guess_simulated(many, 0.01, n_simulations=20)
    assert [100 * thrown.precision, 100 * thrown.recall, 100 * thrown.f1] == pytest.approx(scores, abs=1.5)


@pytest.mark.data
def test_swat_agrees_with_the_paper_to_a_hundredth(labels):
    found = metrics.random_guess(labels["swat"], 0.01)
    assert [100 * found.precision, 100 * found.recall, 100 * found.f1] == pytest.approx(
        [93.21, 99.47, 96.24], abs=0.015
    )


@pytest.mark.data
@pytest.mark.parametrize("name", ALWAYS_ON)
def test_always_on_under_spd(labels, name):
    many = labels[name]
    constant = [np.zeros(len(y)) for y in many]
    found = [100 * metrics.spd_score(many, constant, delta_max=d) for d in (10, 100, 500, 1000, 5000)]
    assert [round(value, 1) for value in found] == list(ALWAYS_ON[name])


@pytest.mark.data
@pytest.mark.parametrize("name", DETERMINISTIC_BASELINES)
def test_the_other_baselines(labels, name):
    baselines = metrics.baselines(labels[name], 100, n_simulations=1)
    for baseline, (pooled, mean) in DETERMINISTIC_BASELINES[name].items():
        score = getattr(baselines, baseline)
        assert (round(float(score), 3), round(score.per_series_mean, 3)) == (pooled, mean)


def test_a_curve_worked_out_by_hand():
    """Two events, delta_max 2, T = 12.

    Windows: event [2, 4) has rows 2 3 4; event [7, 8) has 7 8 9; outside are 0 1 5 6 10 11.
    h = 5: only row 8: delays 2 (missed) and 1, NADD 3/4, TP 1, FP 0.  Area (1 - 3/4) * 1 = 1/4.
    h = 4: also 11: the same delays, FP 1; NADD does not fall, no area.
    h = 3: also 2 and 5: delays 0 and 1, NADD 1/4, TP 2, FP 2 (5 and 11).  Area (3/4 - 1/4) * 2/4 = 1/4.
    h = 1: everything: raised at 0 2 4 6 8 10, of which 0 6 10 are outside: NADD 0, TP 2, FP 3.  Area 1/4 * 2/5 = 1/10.
    """
    y_true = [0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0]
    scores = [1, 1, 3, 1, 1, 3, 1, 1, 5, 1, 1, 4]
    curve = metrics.spd_curve(y_true, scores, delta_max=2)
    assert curve.thresholds.tolist() == [5, 3, 1]
    assert curve.nadd.tolist() == [0.75, 0.25, 0]
    assert list(zip(curve.true_alarms.tolist(), curve.false_alarms.tolist(), strict=True)) == [(1, 0), (2, 2), (2, 3)]
    assert curve.score == pytest.approx(1 / 4 + 1 / 4 + 1 / 10)


def test_range_based_worked_out_by_hand():
    """Tatbul et al. 2018, section 4: one event of 4 rows, touched twice, halves what it earns; front bias weighs 4 3 2 1."""
    y_true, alarms = [0, 1, 1, 1, 1, 0], [0, 1, 0, 1, 0, 0]
    flat = metrics.range_precision_recall(y_true, alarms, threshold=1)
    assert (flat.precision, flat.recall) == (1.0, 0.25)
    front = metrics.range_precision_recall(y_true, alarms, threshold=1, bias="front", cardinality="one")
    assert front.recall == pytest.approx((4 + 2) / 10)
    touched = metrics.range_precision_recall(y_true, alarms, threshold=1, existence=1.0)
    assert touched.recall == 1.0


def test_affiliation_of_an_alarm_that_is_always_on():
    """Huet et al. 2022: uniform alarms over a zone with an event share w have precision w + (1 - w)^2 / 2 for a central event.

    Inside the event the probability is 1; outside it runs evenly from 1 - w down to 0 when both sides are equally long.
    """
    y_true = [0] * 4 + [1] * 2 + [0] * 4
    found = metrics.affiliation_precision_recall(y_true, [1] * 10, threshold=1)
    w = 0.2
    assert found.precision == pytest.approx(w + (1 - w) ** 2 / 2)
    assert found.recall == 1.0

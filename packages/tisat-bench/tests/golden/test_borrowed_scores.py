"""Scores of other papers against values that do not come from this package."""

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tisat import metrics

# 40 rows, two events; numpy.random.default_rng(42), rounded to two places.
Y = [0] * 12 + [1] * 5 + [0] * 13 + [1] * 4 + [0] * 6
S = [0.77, 0.44, 0.86, 0.7, 0.09, 0.98, 0.76, 0.79, 0.13, 0.45, 0.37, 0.93, 1.04, 1.16, 0.8, 0.62, 0.78, 0.06, 0.83, 0.63,
     0.76, 0.35, 0.97, 0.89, 0.78, 0.19, 0.47, 0.04, 0.15, 0.68, 0.85, 1.17, 0.75, 0.49, 0.47, 0.19, 0.13, 0.48, 0.23, 0.67]  # fmt: skip


def test_pate_is_what_the_authors_program_prints():
    # PATE(y, s, e_buffer=5, d_buffer=5, drop_intermediate=False, Big_Data=False) of github.com/Raminghorbanii/PATE
    assert metrics.pate(Y, S, max_buffer=5) == pytest.approx(0.7085827077247966, abs=1e-12)


def test_areas_are_scikit_learns():
    assert metrics.auc_roc(Y, S) == pytest.approx(roc_auc_score(Y, S))
    assert metrics.auc_pr(Y, S) == pytest.approx(average_precision_score(Y, S))
    assert metrics.vus_roc(Y[:30], S[:30], max_buffer=0) == pytest.approx(roc_auc_score(Y[:30], S[:30]))  # one event


def test_nab_has_the_published_constants():
    # scaledSigmoid of the benchmark: 0.98661 at the left edge, 0.84828 half-way, 0 at the right edge, -0.98661 one length later
    y, half = [0, 0, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 9, 0, 0, 0, 0, 0]
    assert metrics.nab_score(y, half, threshold=9) == pytest.approx((0.84828 / 0.98661 + 1) / 2, abs=1e-5)
    late = [0, 0, 9, 0, 0, 0, 0, 0, 9, 0]  # three rows after the end, of a window four long: one length
    assert metrics.nab_score(y, late, threshold=9) == pytest.approx(1 - 0.11 * 0.98661 / 2, abs=1e-5)
    early = [9, 0, 9, 0, 0, 0, 0, 0, 0, 0]  # before any window: wholly false
    assert metrics.nab_score(y, early, threshold=9) == pytest.approx(1 - 0.11 / 2)
    assert metrics.nab_score(y, np.zeros(10), threshold=1) == 0
    assert metrics.nab_score(y, np.ones(10), threshold=1, profile="low-fp") < metrics.nab_score(
        y, np.ones(10), threshold=1
    )


def test_unknown_scores_come_last():
    y, s = [0, 1, 1, 0], [math.nan, 2.0, math.nan, 1.0]
    assert metrics.auc_roc(y, s) == pytest.approx(roc_auc_score(y, [0, 2, 0, 1]))
    assert math.isnan(metrics.auc_roc([1, 1], [1, 2]))

"""VUS-PR and VUS-ROC beside TSB-AD's program, which is read from a checkout: nothing of it is in this repository.

    TISAT_REFERENCES=folder python -m pytest -m data -s packages/tisat-bench/tests/parity/test_vus_of_tsb_ad.py

``folder`` holds a checkout named TSB-AD (TheDatumOrg). Skipped without it.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from tisat.metrics import vus_pr, vus_roc

pytestmark = pytest.mark.data


@pytest.fixture
def program():
    file = Path(os.environ.get("TISAT_REFERENCES", "")) / "TSB-AD" / "TSB_AD" / "evaluation" / "basic_metrics.py"
    if not file.is_file():
        pytest.skip("no checkout of TSB-AD in TISAT_REFERENCES")
    spec = importlib.util.spec_from_file_location("tsb_ad_metrics", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.basic_metricor().RangeAUC_volume_opt


def random_series(seed):
    rng = np.random.default_rng(seed)
    labels = np.zeros(int(rng.integers(40, 500)), dtype=int)
    for _ in range(rng.integers(1, 6)):
        start = rng.integers(0, len(labels))
        labels[start : start + rng.integers(1, 25)] = 1
    scores = rng.random(len(labels)) + 0.5 * labels * rng.random(len(labels))
    return labels, np.round(scores, 1) if seed % 2 else scores, int(rng.integers(0, 30))


@pytest.mark.parametrize("seed", range(20))
def test_random_series_have_the_figures_of_the_program(program, seed):
    labels, scores, buffer = random_series(seed)
    for number in (250, len(labels)):
        *_, roc, precision = program(labels, scores, buffer, number)
        exact = None if number == len(labels) else number
        assert vus_pr(labels, scores, max_buffer=buffer, thresholds=exact) == pytest.approx(precision, abs=1e-9)
        assert vus_roc(labels, scores, max_buffer=buffer, thresholds=exact) == pytest.approx(roc, abs=1e-9)


@pytest.mark.parametrize("channel", ["C-1", "T-12"])
def test_telemetry_has_the_figures_of_the_program(program, channel):
    from tisat_bench.datasets import load

    test = load("msl", entities=[channel]).entities[0].test
    labels, scores = test.labels.astype(int), np.abs(np.diff(test.values[:, 0], prepend=test.values[0, 0]))
    *_, roc, precision = program(labels, scores, 60, 250)
    assert vus_pr(labels, scores, max_buffer=60, thresholds=250) == pytest.approx(precision, abs=1e-9)
    assert vus_roc(labels, scores, max_buffer=60, thresholds=250) == pytest.approx(roc, abs=1e-9)

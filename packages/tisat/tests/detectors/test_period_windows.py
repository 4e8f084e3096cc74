"""nearest-neighbors with windows of the data's own period, and its scores of a whole file."""

import numpy as np
import pytest

from tisat.detectors import load, make
from tisat.errors import ParameterError


def wave(rows, period=40, seed=0, channels=1):
    rng = np.random.default_rng(seed)
    clock = np.arange(rows)[:, None] + 7 * np.arange(channels)
    return np.sin(2 * np.pi * clock / period) + 0.02 * rng.standard_normal((rows, channels))


def shapes(values, length, c):
    return np.array(
        [values[t : t + length, c] - values[t : t + length, c].mean() for t in range(len(values) - length + 1)]
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_windows_of_the_period_are_compared_by_channel_and_without_their_mean(channels):
    train, rows = wave(400, channels=channels), wave(120, seed=1, channels=channels)
    rows[60:70] = 0.3
    if channels > 1:
        train[:, -1] = 2.0  # never moves in training, and moves later
    detector = make("nearest-neighbors", window="period", max_windows=None).fit(train)
    length = detector._length()
    assert length in (39, 40, 41)
    spread = (detector._standardise(np.ones((1, channels))) - detector._standardise(np.zeros((1, channels))))[0]
    squares = sum(
        ((shapes(rows, length, c)[:, None] - shapes(train, length, c)[None]) ** 2).sum(axis=2).min(axis=1)
        * spread[c] ** 2
        for c in range(channels)
    )
    scores = detector.decision_function(rows)
    np.testing.assert_allclose(scores[length - 1 :], np.sqrt(squares), rtol=1e-6)
    centred = detector.centred_scores(rows)
    for t in (0, 5, 50, 119):
        inside = [scores[u] for u in range(t, min(t + length, 120)) if u >= length - 1]
        assert centred[t] == pytest.approx(np.mean(inside))
    assert np.isfinite(centred).all()


def test_a_level_that_moves_is_no_new_shape():
    train = wave(2000)
    detector = make("nearest-neighbors", window="period").fit(train)
    moved, broken = wave(400, seed=2) + 5.0, wave(400, seed=2)
    broken[200:220] = 0.0
    assert np.nanmax(detector.decision_function(moved)) < detector.decision_function(broken)[220]


def test_the_period_survives_the_file_and_another_fit(tmp_path):
    detector = make("nearest-neighbors", window="period").fit(wave(1000, channels=2))
    detector.save(tmp_path / "model")
    again = load(tmp_path / "model")
    rows = wave(300, seed=3, channels=2)
    np.testing.assert_array_equal(again.decision_function(rows), detector.decision_function(rows))
    detector.fit(wave(1000, period=25, channels=2))
    assert np.isfinite(detector.decision_function(rows)[30:]).all()


@pytest.mark.parametrize("window", ["day", 0, 2.5])
def test_other_windows_are_refused(window):
    with pytest.raises(ParameterError, match="'window' parameter of NearestNeighbors must be an integer >= 1"):
        make("nearest-neighbors", window=window).fit(wave(100))

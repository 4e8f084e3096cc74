"""The reasons of mahalanobis are what the other channels of a row say, not the training mean."""

import numpy as np
import pytest

from tisat.detectors import Mahalanobis


def plant(rows, seed):
    """Five channels that follow one load, each with a noise of a twentieth of it."""
    rng = np.random.default_rng(seed)
    load = 10.0 + 4.0 * np.sin(np.arange(rows) / 40.0)
    return load[:, None] * np.arange(1.0, 6.0) + 0.5 * rng.normal(size=(rows, 5)) * np.arange(1.0, 6.0)


@pytest.mark.parametrize("channel", range(5))
def test_the_channel_that_is_off_is_named_with_what_the_others_say(channel, tmp_path):
    from tisat import load

    detector, rows = Mahalanobis(window=4).fit(plant(3000, 0)), plant(300, 1)
    healthy = rows[200, channel]
    rows[200:240, channel] += 4.0 * (channel + 1)
    detector.save(tmp_path / "m.tisat")
    for one in (detector, load(tmp_path / "m.tisat")):
        why = one.explain(rows[210], one.points(rows)[210])
        assert int(why.ranking()[0]) == channel
        assert why.channels[channel] > 0.5
        assert abs(why.expected[channel] - (rows[210, channel] - 4.0 * (channel + 1))) < 2.0 * (channel + 1)
    assert healthy > 0


def test_rows_that_break_no_relation_are_explained_as_before():
    detector, rows = Mahalanobis(window=4).fit(plant(3000, 0)), plant(300, 1)
    points = detector.points(rows)
    usual = [np.array_equal(detector.explain(rows[k], points[k]).expected, detector.usual_[0]) for k in range(10, 210)]
    assert np.mean(usual) > 0.9

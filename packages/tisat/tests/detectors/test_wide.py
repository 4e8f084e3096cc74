"""Wide data: what is found by blocks of products is what the whole matrix gives."""

import numpy as np

from tisat.detectors.prism import neighbour


def test_directions_of_wide_windows_hold_the_variance_of_the_exact_ones():
    rng = np.random.default_rng(0)
    width = neighbour.WIDE + 200
    factors = rng.normal(size=(800, 4)) * [9.0, 6.0, 4.0, 3.0]
    centred = factors @ rng.normal(size=(4, width)) + rng.normal(size=(800, width))
    centred -= centred.mean(axis=0)
    exact = np.linalg.svd(centred, full_matrices=False)[2][:30].T
    for rows in (centred, centred.astype(np.float32)):
        found = neighbour.principal(rows, 30)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found.T @ found, np.eye(30), atol=1e-9)
        held = np.linalg.norm(centred @ found) ** 2 / np.linalg.norm(centred @ exact) ** 2
        assert 0.999 < held <= 1.0 + 1e-9


def test_one_answer_about_many_windows_is_that_about_each():
    from tisat import Watch

    rows = np.random.default_rng(1).normal(size=(900, 3)).cumsum(axis=0)
    detector = Watch(budget="1/100 rows").fit(rows).detector
    length = detector._context() + 1
    windows = np.stack([rows[start : start + length] for start in (0, 7, 300, 500)])
    windows[1, -3, 1] = np.nan
    alone = np.concatenate([detector._answers(one[None]) for one in windows])
    np.testing.assert_allclose(detector._answers(windows), alone, rtol=1e-9, atol=1e-9)

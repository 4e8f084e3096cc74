"""Machines that are unlike in one channel are noticed, whatever the other channels are."""

from __future__ import annotations

import numpy as np

from tisat.batch.likeness import likeness
from tisat.series import Series


def fleet(step):
    rng = np.random.default_rng(5)
    return [
        Series(np.column_stack([rng.normal(100.0 + step * k, 8.0, 600), rng.normal(size=(600, 6))])) for k in range(12)
    ]


def test_channels_that_are_alike_do_not_hide_one_that_is_not():
    assert likeness(fleet(10.0)).unlike
    assert not likeness(fleet(0.0)).unlike

"""Seeds become generators here and are passed down.

Nothing in the package touches a global one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tisat.utils.validation import check_integer

Seed: TypeAlias = int | np.random.Generator | None


def generator(seed: Seed, *, whose: str = "tisat") -> np.random.Generator:
    """A numpy generator from an integer, a generator (returned as it is) or None (fresh entropy).

    Examples
    --------
    >>> generator(3).integers(10) == generator(3).integers(10)
    np.True_
    """
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    also = ", a numpy Generator or None"
    return np.random.default_rng(check_integer(seed, "random_state", whose, minimum=0, also=also))

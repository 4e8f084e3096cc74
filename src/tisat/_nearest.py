"""Keeping the smallest few of many numbers, compiled: what every search for neighbours does in its innermost loop."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tisat._compiled import compiled
from tisat._types import Integers


@compiled()
def insert(values: npt.NDArray[Any], owners: Integers, value: float, owner: int) -> None:  # pragma: no cover - compiled
    """Put ``value`` in its place among ascending ``values``, with its ``owner``; the largest goes. It must be below the last."""
    slot = len(values) - 1
    while slot > 0 and values[slot - 1] > value:
        values[slot] = values[slot - 1]
        owners[slot] = owners[slot - 1]
        slot -= 1
    values[slot] = value
    owners[slot] = owner

"""What continues after a restart: a few arrays and counts, each under its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt


class Stateful:
    """Something whose whole memory is arrays of its own and whole numbers."""

    _kept: ClassVar[tuple[str, ...]]  # their names; the attributes have an underscore before

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to go on after a restart."""
        return {name: np.array(getattr(self, f"_{name}")) for name in self._kept}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        for name in self._kept:
            held = getattr(self, f"_{name}")
            if isinstance(held, int):
                setattr(self, f"_{name}", int(state[name]))
            else:
                held[...] = state[name]

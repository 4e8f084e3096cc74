"""Find the stack level of the user's line, for warnings."""

from __future__ import annotations

import sys
from types import FrameType

PACKAGES = ("tisat", "tisat_serve", "tisat_bench")


def caller_level() -> int:
    """The ``stacklevel`` of :func:`warnings.warn` at which the first line outside our packages stands."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in PACKAGES:
        frame, level = frame.f_back, level + 1
    return level

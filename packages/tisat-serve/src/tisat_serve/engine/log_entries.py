"""The kinds of entries of the log: everything that changes a monitor is one of them."""

from __future__ import annotations

ROW = 0  # [ROW, entity, time, offset, values]; with one more value where it is not to be learned from
RELEASE = 1  # [RELEASE, entity]: the end of a reorder window
LABEL = 2  # [LABEL, entity, row, word, model]
ADOPT = 3  # [ADOPT, entity, calibration]
ACCEPT = 4  # [ACCEPT, entity, row, model]: the level of an alarm's channels is the new normal

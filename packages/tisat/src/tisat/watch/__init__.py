"""From rows to alarms: one object owns detector, rule, budget, calibration, sampling period, names and file.

* :class:`Watch`: fit it, ask it for ``alarms(series)``, make monitors and fleets of it, save it as one file;
* :class:`Monitor`: one entity, row by row; the same alarms as the whole series;
* :class:`Fleet`: many entities, whose rows are scored together, with a result for each;
* :mod:`tisat.watch.text_stream`: rows as text in, results as JSON lines out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tisat.utils.lazy import lazily

if TYPE_CHECKING:
    from tisat.watch.fleet import Fleet as Fleet
    from tisat.watch.monitor import Monitor as Monitor
    from tisat.watch.row_result import RowResult as RowResult
    from tisat.watch.watch import Watch as Watch

__all__, __getattr__, __dir__ = lazily(
    __name__, {"fleet": ("Fleet",), "monitor": ("Monitor",), "row_result": ("RowResult",), "watch": ("Watch",)}
)

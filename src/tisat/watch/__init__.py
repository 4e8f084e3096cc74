"""From rows to alarms: one object owns detector, rule, budget, calibration, sampling period, names and file.

* :class:`Watch`: fit it, ask it for ``alarms(series)``, make monitors and fleets of it, save it as one file;
* :class:`Monitor`: one entity, row by row; the same alarms as the whole series;
* :class:`Fleet`: many entities, whose rows are scored together and judged apart;
* :mod:`tisat.watch.lines`: rows as text in, verdicts as JSON lines out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tisat.watch.fleet import Fleet as Fleet
    from tisat.watch.monitor import Monitor as Monitor
    from tisat.watch.verdict import Verdict as Verdict
    from tisat.watch.watch import Watch as Watch

_NAMES = {"Fleet": "fleet", "Monitor": "monitor", "Verdict": "verdict", "Watch": "watch"}

__all__ = ["Fleet", "Monitor", "Verdict", "Watch"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'tisat.watch' has no attribute {name!r}")
    value = getattr(import_module(f"tisat.watch.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Time-series anomaly detection with an alarm budget, and with scores that a coin cannot win.

The flow, and the rooms it passes through::

    series (T, C)    tisat.series, tisat.datasets     where numbers come from
      -> scores      tisat.detectors                  fit, decision_function; higher = more anomalous
      -> evidence    tisat.sequential                 distance to nominal points, less its nominal level
      -> statistic   tisat.sequential                 evidence accumulated over time
      -> alarms      tisat.watch                      raised at a threshold that follows from a false-alarm budget
      -> evaluation  tisat.metrics                    each event rewarded once, each false alarm penalised once

Names are imported when they are first used, so ``import tisat`` is quick and never loads torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tisat._version import __version__

if TYPE_CHECKING:
    from tisat import benchmark as benchmark
    from tisat import checks as checks
    from tisat import datasets as datasets
    from tisat import detectors as detectors
    from tisat import metrics as metrics
    from tisat import registry as registry
    from tisat import sequential as sequential
    from tisat import watch as watch
    from tisat.base import Detector as Detector
    from tisat.base import load as load
    from tisat.detectors import make as make
    from tisat.detectors.combine import combine as combine
    from tisat.detectors.tisat import TiSAT as TiSAT
    from tisat.metrics import spd_score as spd_score
    from tisat.pipeline import Pipeline as Pipeline
    from tisat.report.showing import show_anomalies as show_anomalies
    from tisat.sequential.alarms import Alarm as Alarm
    from tisat.sequential.alarms import Alarms as Alarms
    from tisat.sequential.alarms import raise_alarms as raise_alarms
    from tisat.series import Series as Series
    from tisat.suggestions import suggest as suggest
    from tisat.watch.fleet import Fleet as Fleet
    from tisat.watch.monitor import Monitor as Monitor
    from tisat.watch.watch import Watch as Watch

# name -> "module" or "module:attribute"
_NAMES = {
    "Alarm": "tisat.sequential.alarms:Alarm",
    "Alarms": "tisat.sequential.alarms:Alarms",
    "Detector": "tisat.base:Detector",
    "Fleet": "tisat.watch.fleet:Fleet",
    "Monitor": "tisat.watch.monitor:Monitor",
    "Pipeline": "tisat.pipeline:Pipeline",
    "Series": "tisat.series:Series",
    "TiSAT": "tisat.detectors.tisat:TiSAT",
    "Watch": "tisat.watch.watch:Watch",
    "benchmark": "tisat.benchmark",
    "checks": "tisat.checks",
    "combine": "tisat.detectors.combine:combine",
    "datasets": "tisat.datasets",
    "detectors": "tisat.detectors",
    "load": "tisat.base:load",
    "make": "tisat.detectors:make",
    "metrics": "tisat.metrics",
    "raise_alarms": "tisat.sequential.alarms:raise_alarms",
    "registry": "tisat.registry",
    "sequential": "tisat.sequential",
    "show_anomalies": "tisat.report.showing:show_anomalies",
    "spd_score": "tisat.metrics:spd_score",
    "suggest": "tisat.suggestions:suggest",
    "watch": "tisat.watch",
}

__all__ = ["__version__", *_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'tisat' has no attribute {name!r}")
    module, _, attribute = _NAMES[name].partition(":")
    value = import_module(module)
    value = getattr(value, attribute) if attribute else value
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

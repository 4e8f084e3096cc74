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
    from tisat import datasets as datasets
    from tisat import detectors as detectors
    from tisat import metrics as metrics
    from tisat import registry as registry
    from tisat import sequential as sequential
    from tisat.base import Detector as Detector
    from tisat.base import load as load
    from tisat.detectors.tisat import TiSAT as TiSAT
    from tisat.metrics import spd_score as spd_score
    from tisat.series import Series as Series

# name -> "module" or "module:attribute"
_NAMES = {
    "Detector": "tisat.base:Detector",
    "Series": "tisat.series:Series",
    "TiSAT": "tisat.detectors.tisat:TiSAT",
    "datasets": "tisat.datasets",
    "detectors": "tisat.detectors",
    "load": "tisat.base:load",
    "registry": "tisat.registry",
    "metrics": "tisat.metrics",
    "sequential": "tisat.sequential",
    "spd_score": "tisat.metrics:spd_score",
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

"""Series -> scores. One file for each detector; :mod:`tisat.registry` is the only list.

Every detector is fitted on nominal data and gives, for each instant, a score: higher = more anomalous, NaN while it
warms up, never depending on later instants. ``from tisat.detectors import RandomGuess`` imports only that one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tisat import registry
from tisat.base import Detector, load

ADAPTERS = {"from_function": "function", "from_pyod": "adapter", "from_sklearn": "adapter"}  # name -> module

__all__ = ["Detector", "load", "make"]


def make(name: str, **params: Any) -> Detector:
    """A detector by its registered name.

    Examples
    --------
    >>> make("random-guess", random_state=3)
    RandomGuess(random_state=3)
    """
    detector: Detector = registry.resolve(name)(**params)
    return detector


def __getattr__(name: str) -> Any:
    if name in ADAPTERS:
        return getattr(import_module(f"tisat.detectors.{ADAPTERS[name]}"), name)
    for registered, target in registry.DETECTORS.items():
        if target.startswith("tisat.detectors.") and target.endswith(f":{name}"):
            return registry.resolve(registered)
    raise AttributeError(f"module 'tisat.detectors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *ADAPTERS, *(target.partition(":")[2] for target in registry.DETECTORS.values())])

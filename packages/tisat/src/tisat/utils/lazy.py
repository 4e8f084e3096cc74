"""Packages whose names are imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping
        The names that each of its modules gives, by the module's name within the package; under ``""`` those that are modules.

    Examples
    --------
    >>> names, get, _ = lazily("tisat", {"": ["errors"], "events": ["labels_from_events"]})
    >>> names, get("errors").__name__, get("labels_from_events").__name__
    (['errors', 'labels_from_events'], 'tisat.errors', 'labels_from_events')
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = home_of[name]
        found = getattr(import_module(f"{package}.{home}"), name) if home else import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, found)
        return found

    names = sorted(home_of)
    return names, get, lambda: sorted({*names, *getattr(sys.modules[package], "__all__", ())})

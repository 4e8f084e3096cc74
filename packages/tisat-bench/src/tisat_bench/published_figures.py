"""Figures printed elsewhere, to be shown beside ours: read from a JSON file that an experiment names.

The file has ``name`` (the word for the columns), ``source``, ``datasets``, and ``spd`` and ``adjusted`` with a ``caption`` and
``systems``: one figure, or precision, recall and F1, for each data set. This module knows no publication.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tisat.errors import InputError
from tisat.utils.tables import DASH
from tisat.utils.types import JsonDict, JsonMap

SHAPES = {"spd": 1, "adjusted": 3}  # numbers a data set


def read_printed(path: Path) -> JsonDict:
    """The file as it is, once it is known to be whole."""
    try:
        document: JsonDict = json.loads(path.read_text(encoding="utf-8"))
        datasets = document["datasets"]
        whole = all(isinstance(document[key], str) for key in ("name", "source")) and isinstance(datasets, list)
        for kind, numbers in SHAPES.items():
            for row in document[kind]["systems"].values():
                whole = whole and len(row) == len(datasets)
                whole = whole and all(len(cell) == numbers if numbers > 1 else cell == float(cell) for cell in row)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise InputError(
            f"The file of printed figures {str(path)!r} must be JSON with name, source, datasets, spd and adjusted, a figure "
            "(spd) or three (adjusted) for each data set. It is not."
        )
    return document


class Printed:
    """Figures published elsewhere for one kind of table; empty without a file."""

    def __init__(self, document: JsonMap | None, kind: str) -> None:
        self.name = "" if document is None else str(document["name"])
        self.header = self.name if SHAPES[kind] == 1 else f"{self.name} F1"
        self._datasets: list[str] = [] if document is None else list(document["datasets"])
        self._systems: JsonMap = {} if document is None else document[kind]["systems"]

    def __bool__(self) -> bool:
        return bool(self.name)

    def covers(self, dataset: str) -> bool:
        """Whether anything was printed of a data set."""
        return dataset in self._datasets

    def value(self, system: str, dataset: str) -> Any:
        """The figure or figures in percent; None where there is none."""
        if system not in self._systems or dataset not in self._datasets:
            return None
        return self._systems[system][self._datasets.index(dataset)]

    def cell(self, system: str, dataset: str) -> str:
        """The figure, or the last of several, as a table shows it."""
        found = self.value(system, dataset)
        return DASH if found is None else f"{found[-1] if isinstance(found, list) else found:.1f}"

    def absent(self, datasets: list[str]) -> list[str]:
        """Data sets that were printed and that we do not have, where we have any of the others: their columns stand alone."""
        known = set(self._datasets) & set(datasets)
        return [name for name in self._datasets if name not in datasets] if known else []

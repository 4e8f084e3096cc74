"""Names that files of format version 1 (tisat 0.1 and 0.2) have, and those they are read as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")

PLAIN = {
    "nominal": "normal",
    "nominal_source_": "normal_source_",
    "instants": "time_steps",
    "realised": "observed",
    "vouched": "supported",
}
ARRAYS = {"nominal_": "normal_", "nominal_breaks_": "normal_breaks_"}


def rename_keys(value: object) -> object:
    """Rename the keys of a JSON value, at any depth.

    Examples
    --------
    >>> rename_keys({"calibration": {"vouched": 3.0, "alarms": [{"instants": 2}]}})
    {'calibration': {'supported': 3.0, 'alarms': [{'time_steps': 2}]}}
    """
    if isinstance(value, dict):
        return {PLAIN.get(key, key): rename_keys(inner) for key, inner in value.items()}
    return [rename_keys(inner) for inner in value] if isinstance(value, list) else value


def rename_arrays(arrays: Mapping[str, Value]) -> dict[str, Value]:
    """Rename arrays, also those of the members of a combination, whose names end in a dot and the array's own."""
    renamed = {}
    for name, array in arrays.items():
        head, dot, own = name.rpartition(".")
        renamed[f"{head}{dot}{ARRAYS.get(own, own)}"] = array
    return renamed

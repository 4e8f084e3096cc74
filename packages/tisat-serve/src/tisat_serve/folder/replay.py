"""Replay rows through a service without sinks: the alarms it would have raised.

The engine runs on a folder that is thrown away; no message is sent, and the folder the rows come from is only read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tisat.series import Series
from tisat.watch.watch import Watch
from tisat_serve.engine.engine import Engine, Limits
from tisat_serve.engine.group import Group
from tisat_serve.folder.archive import nanoseconds, taken_rows
from tisat_serve.store import Store, file_in, opened
from tisat_serve.structs import AlarmInfo, Row
from tisat_serve.views.fleet_view import FleetView

TOGETHER = 2000  # rows judged in one transaction


def stored_rows(
    folder: Path, *, match: str = "*", start: float | None = None, stop: float | None = None
) -> Iterator[Row]:
    """The rows that a service has kept, of the entities of a pattern, in order of time for each."""
    with opened(file_in(folder)) as store:
        names = store.execute(
            "SELECT id, name, dates FROM entities WHERE name GLOB ? ORDER BY name", (match,)
        ).fetchall()
        for number, name, dates in names:
            for times, values, _ in taken_rows(store, number, *nanoseconds(start, stop)):
                for at, row in zip(times, values, strict=True):
                    yield Row(name, [*_plain(row)], int(at) if dates else float(at) * 1e-9)


def rows_of_series(found: Iterable[Series]) -> Iterator[Row]:
    """The rows of series, each an entity by its name."""
    for series in found:
        times = np.arange(len(series), dtype=np.float64) if series.timestamps is None else series.timestamps
        if times.dtype.kind == "M":
            times = times.astype("datetime64[ns]").astype(np.int64)
        for at, values in zip(times.tolist(), series.values, strict=True):
            yield Row(series.name, dict(zip(series.channels, _plain(values), strict=True)), at)


def _plain(values: Any) -> list[float | None]:
    return [None if value != value else float(value) for value in values]


def replay(watch: Watch, rows: Iterable[Row]) -> tuple[list[AlarmInfo], dict[str, int]]:
    """The alarms a service with this watch raises on rows, in order of time, and what became of the rows."""
    with tempfile.TemporaryDirectory(prefix="tisat-replay-") as folder, Store(folder) as store:
        engine = Engine(store, [Group("main", watch)], limits=Limits(entities=1_000_000))
        engine.clock = lambda: 0.0
        waiting = iter(rows)
        while batch := list(islice(waiting, TOGETHER)):
            engine.ingest(batch)
        view = FleetView(engine)
        alarms = sorted(view.alarms(limit=10_000), key=lambda one: (one.raised, one.entity))
        return alarms, dict(engine.counts)

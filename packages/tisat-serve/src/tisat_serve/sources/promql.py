"""Rows from any Prometheus API by query: the same queries fit a model from history, go on live, and fetch the gap after a restart.

The query does rates, sums and alignment; every answer is on one grid of time, so a row is simply what the queries say at a moment.
The position is kept in the store; rows that were fetched twice are duplicates and change nothing.
"""

from __future__ import annotations

import json
import math
import time as clocks
import urllib.error
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import numpy as np

from tisat.errors import InputError, TisatError
from tisat.series import Series
from tisat_serve import http_client as http
from tisat_serve.service import Service
from tisat_serve.structs import Row
from tisat_serve.worker import ThreadedPart

TIMEOUT = 30.0
STEPS = 2000  # steps asked for at once; Prometheus gives 11,000 at most
LARGEST = 256 << 20  # bytes of one answer
RETRY = 5.0
VISIBLE = 10  # steps for which an answer that is still empty is asked for again


class _Result(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Result]


class _Answer(msgspec.Struct):
    status: str
    data: _Data


_decode = msgspec.json.Decoder(_Answer).decode


@dataclass
class PromQL(ThreadedPart):
    """Queries against a Prometheus API; a :class:`tisat_serve.service.Part`.

    ``queries`` maps a channel to its query; with the one key ``"*"`` the label ``channel`` of the result names the channel.
    ``entity`` is the label (or labels, with commas) that names the entity. ``step``, ``offset`` and ``backfill`` are seconds: the grid,
    how long to wait for late scrapes, and how far back a first start looks.
    """

    patience: ClassVar[float] = TIMEOUT + 5.0

    name: str
    url: str
    queries: dict[str, str]
    entity: str = "instance"
    channel: str = "__name__"
    step: float = 15.0
    offset: float = 0.0
    backfill: float = 0.0
    group: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    ca: str | None = None

    def __post_init__(self) -> None:
        super().__init__()
        http.check_address(self.url, "The url of a PromQL source")
        http.check_authority(self.ca)
        self.shown = http.without_credentials(self.url)
        if not self.queries:
            raise InputError("A PromQL source must have at least one query: channel = 'query'. Got none.")
        if not 0.1 <= self.step <= 86400:
            raise InputError(f"The step of a PromQL source must be 0.1 to 86400 seconds. Got {self.step:g}.")
        self.cycles = self.failed = self.rows = 0
        self.took = self.behind = 0.0

    # ------------------------------------------------------------------ asking

    def ask(self, query: str, start: float, stop: float) -> list[_Result]:
        """The answer of ``query_range`` on our grid."""
        data = urllib.parse.urlencode(
            {"query": query, "start": f"{start:.3f}", "end": f"{stop:.3f}", "step": f"{self.step:g}"}
        ).encode()
        address = f"{self.url.rstrip('/')}/api/v1/query_range"
        try:
            body = http.ask(address, self.headers, data, timeout=TIMEOUT, most=LARGEST + 1, ca=self.ca)
        except urllib.error.HTTPError as error:
            raise InputError(
                f"The query {query[:200]!r} must be one {self.shown} can answer. It says: {_error_text(error)}"
            ) from None
        except OSError as error:
            raise InputError(
                f"The Prometheus API at {self.shown} must answer. It does not: {getattr(error, 'reason', error)}."
            ) from None
        if len(body) > LARGEST:
            raise InputError(
                f"An answer of {self.shown} must not be larger than {LARGEST} bytes. It is; ask for fewer series."
            )
        try:
            return _decode(body).data.result
        except msgspec.DecodeError as error:
            raise InputError(
                f"The API at {self.shown} must answer as Prometheus does. It does not: {str(error)[:200]}."
            ) from None

    def rows_between(self, start: float, stop: float) -> list[tuple[float, str, dict[str, float | None]]]:
        """Rows ``(time, entity, values by channel)`` on the grid in ``[start, stop]``, in order of time."""
        table: dict[tuple[float, str], dict[str, float | None]] = {}
        for channel, query in self.queries.items():
            for series in self.ask(query, start, stop):
                who = self._entity(series.metric)
                name = series.metric.get(self.channel, "value") if channel == "*" else channel
                for at, text in series.values:
                    value = float(text)
                    table.setdefault((at, who), {})[name] = value if math.isfinite(value) else None
        return [(at, who, values) for (at, who), values in sorted(table.items())]

    def _entity(self, metric: dict[str, str]) -> str:
        parts = [metric.get(label.strip(), "") for label in self.entity.split(",")]
        return "/".join(part for part in parts if part) or "all"

    def grid(self, at: float) -> float:
        """The last moment of the grid at or before a time."""
        return math.floor(at / self.step + 1e-9) * self.step

    def parts(self, start: float, stop: float) -> Iterator[tuple[float, float]]:
        """A stretch in parts the server can answer."""
        begin = start
        while begin <= stop + 1e-6:
            end = min(begin + (STEPS - 1) * self.step, stop)
            yield begin, end
            begin = end + self.step

    def history(self, seconds: float, *, now: float | None = None) -> list[Series]:
        """Query the past as one series per entity, to fit a model on."""
        stop = self.grid((clocks.time() if now is None else now) - self.offset)
        rows_of: dict[str, list[tuple[float, dict[str, float | None]]]] = {}
        channels: dict[str, None] = dict.fromkeys(channel for channel in self.queries if channel != "*")
        for begin, end in self.parts(self.grid(stop - seconds), stop):
            for at, who, values in self.rows_between(begin, end):
                rows_of.setdefault(who, []).append((at, values))
                channels.update(dict.fromkeys(values))
        names = tuple(channels)
        if not rows_of:
            raise InputError(
                f"The queries must have answers in the last {seconds:g} seconds. {self.shown} has none; look at them there."
            )
        series = []
        for who, rows in rows_of.items():
            table = np.array([[_number_or_nan(values.get(name)) for name in names] for _, values in rows])
            times = np.array([round(at * 1e3) for at, _ in rows], dtype="datetime64[ms]").astype("datetime64[ns]")
            series.append(Series(table, timestamps=times, channels=names, name=who))
        return series

    # ------------------------------------------------------------------ living

    def report(self) -> dict[str, float]:
        """Cycles, failures, how long the last one took, how far behind it is."""
        return {
            "cycles": self.cycles,
            "failed": self.failed,
            "rows": self.rows,
            "cycle_seconds": self.took,
            "behind_seconds": self.behind,
        }

    def _run(self) -> None:
        while not self._end.is_set():
            wait = RETRY
            try:
                wait = self.cycle(self._service)
                self.error = ""
            except (TisatError, ValueError, OSError) as error:
                self.failed += 1
                self._trouble(str(error))
            self._end.wait(max(wait, 0.05))

    def cycle(self, service: Service) -> float:
        """Fetch what is new, judge it, remember how far we are.

        Seconds until there is more.
        """
        begin = clocks.perf_counter()
        store, key = service.engine.store, f"source:{self.name}"
        now = clocks.time()
        stop = self.grid(now - self.offset)
        kept = store.meta(key)
        last = float(json.loads(kept)) if kept else self.grid(stop - self.backfill) - self.step
        for first, end in self.parts(last + self.step, stop):
            found = self.rows_between(first, end)
            rows = [Row(who, {**values}, at, self.group) for at, who, values in found]
            if end >= stop:  # what is not there yet may be in a moment: ask for it again
                end = max(found[-1][0] if found else last, min(end, stop - VISIBLE * self.step))
            for place in range(0, len(rows), 2000):
                service.ingest(rows[place : place + 2000])
            with store.writing() as write:
                write.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(end)))
            self.rows += len(rows)
            if self._end.is_set():
                break
        self.cycles += 1
        self.took = clocks.perf_counter() - begin
        self.behind = max(clocks.time() - self.offset - stop, 0.0)
        return stop + self.step + self.offset - clocks.time()


def _number_or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _error_text(error: urllib.error.HTTPError) -> str:
    if error.code < 400:  # a redirect: what it says is about another address
        return f"{error.code} {error.reason}"
    try:
        found: Any = json.loads(error.read(100_000))
        return str(found.get("error", found))[:300]
    except (ValueError, AttributeError):
        return f"{error.code} {error.reason}"

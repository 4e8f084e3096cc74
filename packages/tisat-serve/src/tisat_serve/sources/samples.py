"""Rows made of single samples: entity, channel, time, value.

Each entity has a grid of time and a watermark.

A row is closed when every channel of the model has its sample and the row before it is closed, or when the entity's newest sample is ``lateness`` further on; its
missing channels are then missing values. A sample far ahead of all others of its entity waits for one of a later row that confirms it, as
rows do (:mod:`tisat.watch.clock`): one wrong time closes nothing. What came is on the disk before the sender is answered: batches are kept until all their
rows are closed, and read again after a restart; a row that is made twice is a duplicate and changes nothing.
"""

from __future__ import annotations

import fnmatch
import threading
import time as clocks
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tisat.errors import TisatError
from tisat.gap_filling import FAR, MOST_WAITING
from tisat.io.timestamps import say
from tisat_serve.structs import Row
from tisat_serve.worker import ThreadedPart

MOST_OPEN = 10_000  # open rows of one entity
COUNTERS = ("_total", "_count", "_sum", "_bucket")  # they only ever grow: a rate is wanted, not they
_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[tuple[str, str, int, float]]).decode


class Sample(NamedTuple):
    """One value of one channel of one entity."""

    entity: str
    channel: str
    at: int  # nanoseconds
    value: float


class _Ahead:
    """Samples of one row far ahead of all others of an entity, which wait to be confirmed."""

    def __init__(self, cell: int, batch: int, replaced: int) -> None:
        self.cell, self.batch, self.replaced = cell, batch, replaced
        self.samples: list[Sample] = []


class Assembler:
    """Makes rows of samples; knows no store and no network.

    Parameters
    ----------
    channels : iterable of str
        Those of the model; others are counted and left out.
    step, lateness : float
        Seconds: the grid, and how much further on the newest sample must be before a row is closed incomplete.

    Examples
    --------
    >>> maker = Assembler(("a", "b"), step=10.0, lateness=20.0)
    >>> maker.add([Sample("m", "a", 1_000_000_000, 1.0), Sample("m", "b", 4_000_000_000, 2.0)])
    [('m', 0, {'a': 1.0, 'b': 2.0})]
    >>> maker.add([Sample("m", "a", 11_000_000_000, 3.0), Sample("m", "a", 31_000_000_000, 5.0)])
    [('m', 10000000000, {'a': 3.0})]
    """

    def __init__(self, channels: Iterable[str], *, step: float, lateness: float) -> None:
        self.channels = frozenset(channels)
        self.step, self.lateness = max(int(step * 1e9), 1), int(lateness * 1e9)
        self._open: dict[str, dict[int, dict[str, tuple[int, float]]]] = {}
        self._batches: dict[str, dict[int, int]] = {}  # of each open row: the first batch it has something of
        self._ahead: dict[str, _Ahead] = {}
        self._single: set[str] = set()  # entities of which samples of one row alone have come
        self._closed: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        self._touched: dict[str, float] = {}
        self.unknown = self.late = self.samples = self.unconfirmed = 0

    def add(self, samples: Iterable[Sample], batch: int = 0) -> list[tuple[str, int, dict[str, float]]]:
        """Take samples of a batch.

        The rows that are closed by them: entity, time, values by channel.
        """
        touched: dict[str, None] = {}
        now = clocks.monotonic()
        for sample in samples:
            self.samples += 1
            if sample.channel not in self.channels:
                self.unknown += 1
                continue
            for believed in self._believed(sample, batch):
                self._put(believed, batch)
                touched[sample.entity] = None
            self._touched[sample.entity] = now
        return [row for entity in touched for row in self._close(entity, self._newest[entity] - self.lateness)]

    def _believed(self, sample: Sample, batch: int) -> list[Sample]:
        """The samples to be taken now: this one; none where it waits.

        Samples that waited come with it where it confirms them.
        """
        entity, cell = sample.entity, sample.at // self.step * self.step
        newest, far = self._newest.get(entity), int(FAR) * self.step
        if newest is None:
            self._single.add(entity)
        elif entity in self._single and cell != newest:
            self._single.discard(entity)
            if newest - cell > far:  # the very first was far ahead of all others: it was wrong, not they
                self.unconfirmed += sum(map(len, self._open.pop(entity, {}).values()))
                self._batches.pop(entity, None)
                self._newest[entity] = cell
                self._closed.pop(entity, None)
        if newest is None or cell - self._newest[entity] <= far:
            if newest is not None and cell > self._newest[entity]:
                self._drop(entity)  # it goes on as before: what waits was wrong
            return [sample]
        waiting = self._ahead.get(entity)
        if waiting is not None and 0 < cell - waiting.cell <= far:
            del self._ahead[entity]
            return [*waiting.samples, sample]
        if waiting is None or cell != waiting.cell:
            self._drop(entity)
            replaced = 0 if waiting is None else waiting.replaced + 1
            if replaced >= MOST_WAITING:  # none follows closely on another: the grid is too fine, not the clock wrong
                return [sample]
            waiting = self._ahead[entity] = _Ahead(cell, batch, replaced)
        waiting.samples.append(sample)
        return []

    def _drop(self, entity: str) -> None:
        waiting = self._ahead.pop(entity, None)
        self.unconfirmed += 0 if waiting is None else len(waiting.samples)

    def _put(self, sample: Sample, batch: int) -> None:
        entity, channel, at, value = sample
        cell = at // self.step * self.step
        if cell <= self._closed.get(entity, -(2**63)):
            self.late += 1
            return
        known = self._open.setdefault(entity, {}).setdefault(cell, {})
        if channel not in known or known[channel][0] <= at:
            known[channel] = (at, value)
        self._batches.setdefault(entity, {}).setdefault(cell, batch)
        self._newest[entity] = max(self._newest.get(entity, cell), cell)

    def _close(self, entity: str, mark: int) -> list[tuple[str, int, dict[str, float]]]:
        rows = self._open.get(entity, {})
        complete_rows = []
        for cell in sorted(rows):
            whole = len(rows[cell]) == len(self.channels)
            follows = cell - self._closed.get(entity, cell - self.step) == self.step  # none between can still come
            if not (cell <= mark or (whole and follows) or len(rows) > MOST_OPEN):
                break
            values = {channel: pair[1] for channel, pair in rows.pop(cell).items()}
            self._batches[entity].pop(cell, None)
            self._closed[entity] = cell
            complete_rows.append((entity, cell, values))
        return complete_rows

    def idle(self, seconds: float) -> list[tuple[str, int, dict[str, float]]]:
        """Close the rows of entities of which nothing has come for so long."""
        past = clocks.monotonic() - seconds
        for entity in [one for one in self._ahead if self._touched.get(one, 0.0) < past]:
            self._drop(entity)
        quiet = [entity for entity, rows in self._open.items() if rows and self._touched.get(entity, 0.0) < past]
        return [row for entity in quiet for row in self._close(entity, 2**63)]

    @property
    def oldest(self) -> int | None:
        """The oldest batch that an open row, or a sample that waits, has something of."""
        open_rows = [batch for rows in self._batches.values() for batch in rows.values()]
        return min([*open_rows, *(one.batch for one in self._ahead.values())], default=None)


@dataclass
class Samples(ThreadedPart):
    """Pushed samples of one group; a :class:`tisat_serve.service.Part`.

    ``entity`` names the label (or labels, with commas) that is the entity, ``match`` the patterns labels must fit, ``rename`` the channel
    of a metric's name where they differ.
    """

    name: str
    group: str = ""
    entity: str = "instance"
    step: float | None = None
    lateness: float | None = None
    match: dict[str, str] = field(default_factory=dict)
    rename: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._routes: dict[object, tuple[str, str] | None] = {}
        self._unsent: list[tuple[str, int, dict[str, float]]] = []  # rows that were closed and not taken yet
        self.batches = self.counters = 0

    def _begin(self) -> None:
        """Read what was kept."""
        groups, store = self._service.engine.groups, self._service.engine.store
        home = groups[self.group] if self.group in groups else next(iter(groups.values()))
        step = self.step or home.watch.period or 15.0
        self._home = home
        self.assembler = Assembler(
            home.watch.channels, step=step, lateness=2 * step if self.lateness is None else self.lateness
        )
        self._patience = 3 * (step + (2 * step if self.lateness is None else self.lateness))
        with store.writing() as write:
            write.execute(
                "CREATE TABLE IF NOT EXISTS samples (id INTEGER PRIMARY KEY, source TEXT NOT NULL, newest INTEGER NOT NULL, body BLOB NOT NULL)"
            )
        for batch, body in store.read("SELECT id, body FROM samples WHERE source = ? ORDER BY id", (self.name,)):
            self._send(self.assembler.add([Sample(*one) for one in _decode(body)], batch))
            self.batches += 1

    def report(self) -> dict[str, float]:
        """Samples taken, those of channels the model does not know, too late, or far ahead and never confirmed."""
        assembler = self.assembler
        return {
            "samples": assembler.samples,
            "unknown": assembler.unknown,
            "late": assembler.late,
            "unconfirmed": assembler.unconfirmed,
            "batches": self.batches,
            "counters": self.counters,
        }

    def route(self, key: object, labels: Mapping[str, str], metric: str, field_: str = "") -> tuple[str, str] | None:
        """Entity and channel of a series by its labels; None where it is not ours.

        Remembered by ``key``.
        """
        if key in self._routes:
            return self._routes[key]
        if len(self._routes) > 500_000:
            self._routes.clear()
        self._routes[key] = found = self._find_route(labels, metric, field_)
        return found

    def _find_route(self, labels: Mapping[str, str], metric: str, field_: str) -> tuple[str, str] | None:
        if not all(fnmatch.fnmatchcase(labels.get(label, ""), pattern) for label, pattern in self.match.items()):
            return None
        parts = [labels.get(label.strip(), "") for label in self.entity.split(",")]
        entity = "/".join(part for part in parts if part)
        if not entity:
            return None
        names = [f"{metric}_{field_}", field_, metric] if field_ else [metric]
        channel = next(
            (self.rename.get(name, name) for name in names if self.rename.get(name, name) in self._home.known), None
        )
        if channel is None:
            self.counters += metric.endswith(COUNTERS)
            return None
        return entity, channel

    def take(self, samples: list[Sample]) -> int:
        """Keep samples, make rows of them, judge those that are whole; the number of rows.

        On the disk when it returns.
        """
        if not samples:
            return 0
        store = self._service.engine.store
        newest = max(sample.at for sample in samples)
        with self._lock:
            with store.writing() as write:
                values = (self.name, newest, _encode(samples))
                batch = int(write.execute("INSERT INTO samples VALUES (NULL, ?, ?, ?)", values).lastrowid or 0)
            self.batches += 1
            return self._send(self.assembler.add(samples, batch))

    def _send(self, rows: list[tuple[str, int, dict[str, float]]]) -> int:
        """Judge rows; those that are not taken now (busy, or the disk is full) are kept and go first next time."""
        self._unsent += rows
        if self._unsent:
            home = self._home.name
            self._service.ingest([Row(entity, dict(values), _date(at), home) for entity, at, values in self._unsent])
        sent, self._unsent = len(self._unsent), []
        return sent

    def _run(self) -> None:
        while not self._end.wait(1.0):
            try:
                self.tidy()
                self.error = ""
            except TisatError as error:  # in a moment again
                self._trouble(str(error))

    def tidy(self) -> None:
        """Judge the rows of entities that have fallen silent, and forget samples whose rows were judged."""
        with self._lock:
            self._send(self.assembler.idle(self._patience))
            oldest = self.assembler.oldest
            floor = 2**63 - 1 if oldest is None else oldest
            if self.batches:
                with self._service.engine.store.writing() as write:
                    write.execute("DELETE FROM samples WHERE source = ? AND id < ?", (self.name, floor))
                self.batches = 0 if oldest is None else self.batches


def _date(at: int) -> str:
    """A time that is read as a date, however early."""
    return str(say(at, 0, dates=True))

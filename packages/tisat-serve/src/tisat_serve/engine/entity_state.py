"""State of one entity between two saves: held rows and unsaved results."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tisat.io.timestamps import Moment
from tisat.utils.types import AnyArray, Integers
from tisat.watch.row_result import RowResult
from tisat_serve.engine.row_encoding import ACCEPTED, CODES, STATUSES, Body, Brief, pack_body, pack_brief, stamps_of

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarm
    from tisat_serve.store import Record

Held: TypeAlias = tuple[int, int, int | None, bytes, bool]  # time, seq, offset, values, whether to learn from it
MOST_HELD = 10_000  # rows of one entity that wait in its reorder window at most


@dataclass(slots=True, eq=False)
class EntityState:
    """One entity.

    ``seq`` is the last entry of the log that touched it, ``saved`` the last one that is in its state on the disk.
    """

    id: int
    name: str
    group: str
    dates: bool
    calibration: int
    received: float  # when its last row came, by the clock of this machine
    heard: float  # the same by a clock that never steps: silence is counted by it
    enrolled: float = field(init=False)
    seq: int = 0
    saved: int = 0
    held: list[Held] = field(default_factory=list)  # a heap
    newest: int = -(2**63)  # largest time seen
    at: int | None = None  # time of the last judged row
    status: str = "waiting"
    ratio: float = float("nan")
    now: float = float("nan")
    threshold: float = float("nan")
    late: int = 0
    refused: int = 0
    quiet: str | None = None  # id of the alarm about its silence
    alarm: Alarm | None = None  # that is on, as it was last put into the book
    due: bool = False  # it waits to be saved
    # What is not in the history yet, packed as it comes: half of what lists of numbers take.
    times: array[int] = field(init=False)
    row: array[int] = field(init=False)
    seqs: array[int] = field(init=False)
    statistic: array[float] = field(init=False)
    score: array[float] = field(init=False)
    evidence: array[float] = field(init=False)
    thresholds: array[float] = field(init=False)
    statuses: array[int] = field(init=False)
    active: array[int] = field(init=False)
    values: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.enrolled = self.received
        self.forget()

    def forget(self) -> None:
        """The results are in the history: begin a new stretch."""
        self.times, self.row, self.seqs = array("q"), array("q"), array("q")
        self.statistic, self.score, self.evidence = array("d"), array("d"), array("d")
        self.statuses, self.active, self.thresholds = array("B"), array("B"), array("d")
        self.values = bytearray()

    @property
    def unsaved(self) -> bool:
        """Whether the log still holds something of it that its state does not."""
        return self.seq > self.saved

    def moment(self, at: int, offset: int | None = 0) -> Moment:
        """A time of its rows as its clock says it."""
        return Moment(dates=True, value=at, offset=offset) if self.dates else Moment(dates=False, value=at * 1e-9)

    def stamps(self, times: Integers) -> AnyArray:
        """The same of many, as a series has them."""
        return stamps_of(times, dates=self.dates)

    def hold(self, row: Held, window: int) -> list[Held]:
        """Take a row into the reorder window; those that leave it, in order of time."""
        heapq.heappush(self.held, row)
        self.newest = max(self.newest, row[0])
        free = []
        while self.held and (self.held[0][0] <= self.newest - window or len(self.held) > MOST_HELD):
            free.append(heapq.heappop(self.held))
        return free

    def release(self) -> list[Held]:
        """All rows of the reorder window, in order of time."""
        return [heapq.heappop(self.held) for _ in range(len(self.held))]

    def add(self, verdict: RowResult, at: int, values: bytes, seq: int) -> None:
        """Remember a result."""
        code = CODES[verdict.status]
        self.times.append(at)
        self.statistic.append(verdict.statistic)
        self.statuses.append(code)
        self.active.append(verdict.active)
        self.thresholds.append(verdict.threshold)
        self.values += values
        self.score.append(verdict.score)
        self.evidence.append(verdict.evidence)
        self.row.append(verdict.row)
        self.seqs.append(seq)
        if code < ACCEPTED:
            self.at, self.now = at, verdict.statistic
            self.status = "alarm" if verdict.state != "calm" else verdict.status  # an ongoing alarm is not calm
            self.threshold = verdict.threshold
            self.ratio = verdict.statistic / verdict.threshold if verdict.threshold > 0 else float("nan")
        elif verdict.status in ("late", "duplicate"):
            self.late += 1
        else:
            self.refused += 1

    def recall(self, brief: Brief) -> None:
        """How it stood at the end of its history."""
        taken = np.flatnonzero(brief.status < ACCEPTED)
        if len(taken):
            last = taken[-1]
            self.at, self.now = int(brief.times[last]), float(brief.statistic[last])
            self.status = "alarm" if brief.active[last] else STATUSES[brief.status[last]]
            threshold = float(brief.threshold[last])
            self.ratio = self.now / threshold if threshold > 0 else float("nan")

    def brief(self) -> Brief:
        """The unsaved results."""
        return Brief(
            np.array(self.times, dtype=np.int64),
            np.array(self.statistic, dtype=np.float64),
            np.array(self.statuses, dtype=np.uint8),
            np.array(self.active, dtype=np.uint8),
            np.array(self.thresholds, dtype=np.float64),
        )

    def body(self, channels: int = -1) -> Body:
        """The rest of it."""
        values = np.frombuffer(bytes(self.values), np.float64).reshape(len(self.times), channels)
        return Body(
            values,
            np.array(self.score, dtype=np.float64),
            np.array(self.evidence, dtype=np.float64),
            np.array(self.row, dtype=np.int64),
            np.array(self.seqs, dtype=np.int64),
        )

    def piece(self) -> Record | None:
        """The new piece of history as the table takes it; None where there is nothing."""
        if not self.times:
            return None
        brief = self.brief()
        taken = brief.status < ACCEPTED
        known = taken & ~np.isnan(brief.statistic) & (brief.threshold > 0)
        peak = float((brief.statistic[known] / brief.threshold[known]).max()) if known.any() else None
        return (
            self.id, int(brief.times.min()), int(brief.times.max()), len(brief.times), int((brief.status == 0).sum()),
            int((brief.status == CODES["unusable"]).sum()), peak, self.threshold, pack_brief(brief), pack_body(self.body()),
        )  # fmt: skip

"""The engine in a thread of its own: requests wait in a bounded queue and are written and judged together.

Many requests become one transaction (group commit). What does not fit into the queue is turned away at once, so memory
stays flat under any load.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time as clocks
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from tisat.errors import TisatError
from tisat_serve.cluster.peers import Peers
from tisat_serve.engine.engine import Engine
from tisat_serve.feedback.operator import OperatorFeedback
from tisat_serve.feedback.refits import Schedule
from tisat_serve.folder.forgetting import forget_old
from tisat_serve.store import Mark, StoreFullError
from tisat_serve.structs import LedgerLine, Outcome, Row
from tisat_serve.views.fleet_view import FleetView

TEND = 1.0  # seconds between two looks at silent entities, held rows and the log's end
LEDGER_AGE = 30.0
FORGET = 600.0  # seconds between two removals of old history


Work = tuple[Sequence[Row], "Future[list[Outcome]]", "Mark | None"]


class BusyError(TisatError, RuntimeError):
    """More rows wait than the service takes; ``after`` is how many seconds to wait."""

    def __init__(self, message: str, after: int) -> None:
        super().__init__(message)
        self.after = after


class Part(Protocol):
    """A source or a sink that lives as long as the service."""

    name: str

    def start(self, service: Service) -> None:
        """Begin."""

    def stop(self) -> None:
        """End, and wait for it."""

    def report(self) -> dict[str, float]:
        """Figures for /metrics, by name."""

    @property
    def error(self) -> str:
        """The present problem; empty where there is none."""


@dataclass
class Settings:
    """Limits of the front."""

    rows_waiting: int = 20_000
    rows_at_once: int = 4_000
    body_bytes: int = 16 << 20
    rows_in_request: int = 10_000
    host: str = "127.0.0.1"  # where we listen
    url: str = ""  # where people reach the console: links in messages, the allowed origin
    peers: tuple[str, ...] = ()  # other shards that the console shows too


class Service:
    """A running watch.

    Parameters
    ----------
    engine : Engine
    settings : Settings, optional
    parts : sequence of Part
        Sources and sinks.
    """

    def __init__(self, engine: Engine, settings: Settings | None = None, *, parts: Sequence[Part] = ()) -> None:
        self.engine, self.settings, self.parts = engine, settings or Settings(), list(parts)
        self.view = FleetView(engine)
        self.feedback = OperatorFeedback(engine, self.view)
        self.schedule = Schedule()
        self.peers = Peers(self)
        self.started = engine.clock()
        self.waiting = 0  # rows in the queue
        self.rate = 2000.0  # rows a second, as it went lately
        self.turned_away = 0
        self.fatal: Callable[[], None] = lambda: None  # what to do when nothing can be judged any more
        self.renew: Callable[[str, str | None], None] | None = None  # reads a certificate again, where there is one
        self.say: Callable[[str], None] = lambda sentence: None  # the command line puts itself here
        self.observe: Callable[[str, float], None] = lambda name, value: None  # /metrics puts itself here
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._ledger: tuple[float, LedgerLine] | None = None
        self.broken: str = ""  # why the judging thread died

    @property
    def ready(self) -> bool:
        """Whether rows are taken now."""
        return (
            self._thread is not None and self._thread.is_alive() and not self._stopping and not self.engine.store.full
        )

    def start(self) -> Service:
        """Begin to take rows."""
        self._thread = threading.Thread(target=self._run, name="tisat-judge", daemon=True)
        self._thread.start()
        for part in self.parts:
            part.start(self)
        self.schedule.start(self)
        return self

    def stop(self) -> None:
        """Finish what waits, save everything."""
        self.schedule.stop()
        for part in self.parts:
            part.stop()
        self._stopping = True
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(60.0)
        self.engine.close()

    @property
    def problems(self) -> list[str]:
        """Present problems, one sentence each."""
        found = [f"{part.name}: {part.error}" for part in self.parts if part.error]
        if self.engine.store.full:
            found.append("The disk is full: rows are refused until there is room.")
        return found + ([self.broken] if self.broken else [])

    # ------------------------------------------------------------------ figures that cost too much to read at every scrape

    def store_counts(self) -> list[tuple[tuple[str], int]]:
        """Alarms by sort."""
        found = self.engine.store.read("SELECT sort, count(*) FROM alarms GROUP BY sort")
        return [((sort,), count) for sort, count in found]

    def ledger_line(self) -> LedgerLine:
        """The fleet's ledger, at most half a minute old."""
        now = clocks.monotonic()
        if self._ledger is None or now - self._ledger[0] > LEDGER_AGE:
            self._ledger = (now, self.view.ledger().fleet)
        return self._ledger[1]

    # ------------------------------------------------------------------ rows in

    def submit(self, rows: Sequence[Row], mark: Mark | None = None) -> Future[list[Outcome]]:
        """Rows that are to be judged.

        The outcomes come when the rows are on the disk and judged.
        """
        if self._stopping or (self._thread is not None and not self._thread.is_alive()):
            raise self._stopping_error()
        with self._lock:
            self.check_room(len(rows))
            self.waiting += len(rows)
        future: Future[list[Outcome]] = Future()
        self._queue.put((rows, future, mark))
        return future

    def check_room(self, rows: int) -> None:
        """Refuse so many rows where too many wait already."""
        with self._lock:
            if self.waiting and self.waiting + rows > self.settings.rows_waiting:
                self.turned_away += rows
                after = max(1, min(60, round(self.waiting / max(self.rate, 1.0))))
                raise BusyError(
                    f"No more than {self.settings.rows_waiting} rows may wait. {self.waiting} do; send again in {after} seconds.",
                    after,
                )

    def ingest(self, rows: Sequence[Row], mark: Mark | None = None) -> list[Outcome]:
        """Like :meth:`submit`, and wait."""
        return self.submit(rows, mark).result()

    def _run(self) -> None:
        tended = forgotten = clocks.monotonic()
        try:
            while True:
                work = self._gather()
                if work:
                    self._score(work)
                else:
                    self.engine.save_while_idle()
                with contextlib.suppress(StoreFullError):  # rows are refused until there is room
                    self.engine.switch_next_entity()
                    if clocks.monotonic() - tended > TEND:
                        tended = clocks.monotonic()
                        self.engine.run_maintenance()
                    if clocks.monotonic() - forgotten > FORGET:
                        forgotten = clocks.monotonic()
                        forget_old(self.engine)
                if self._stopping and self._queue.empty():
                    return
        except BaseException as error:
            self.broken = f"The judging thread must go on. It stopped: {type(error).__name__}: {error}."
            self.say(self.broken)
            self.fatal()
            raise
        finally:
            self._drain()

    def _drain(self) -> None:
        while not self._queue.empty():
            item = self._queue.get()
            if item is not None:
                item[1].set_exception(self._stopping_error())

    def _stopping_error(self) -> BusyError:
        return BusyError(self.broken or "The service must be running to take rows. It is stopping.", 5)

    def _gather(self) -> list[Work]:
        """Take waiting requests from the queue, up to the rows scored at once."""
        work = []
        count = 0
        try:
            item = self._queue.get(timeout=TEND / 2)
            while item is not None:
                work.append(item)
                if item[2] is not None:
                    break  # it is the last of its transaction
                count += len(item[0])
                if count >= self.settings.rows_at_once:
                    break
                item = self._queue.get_nowait()
        except queue.Empty:
            pass
        return work

    def _score(self, work: list[Work]) -> None:
        begin = clocks.perf_counter()
        rows = sum(len(one) for one, _, _ in work)
        try:
            marked = next((mark for _, _, mark in work if mark is not None), None)
            answers = self.engine.ingest_many([one for one, _, _ in work], marked)
        except Exception as error:
            for _, future, _ in work:
                future.set_exception(error)
            if not isinstance(error, TisatError):
                raise
        else:
            for (_, future, _), answer in zip(work, answers, strict=True):
                future.set_result(answer)
        finally:
            with self._lock:
                self.waiting -= rows
        self.engine.settle(most=4)  # a few at a time: who waits for an answer must not wait for states
        took = clocks.perf_counter() - begin
        self.rate = 0.9 * self.rate + 0.1 * rows / max(took, 1e-6)
        self.observe("judge_seconds", took)
        self.observe("rows_together", float(rows))

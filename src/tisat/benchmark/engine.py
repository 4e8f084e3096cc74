"""Engines: many tasks in, outcomes out as they are finished. Inline for tests and debugging, local for processes.

Every engine calls the same ``run_task`` with one thread, so all give the same scores to the bit on one machine. An engine
does not know stores, experiments or metrics. Ray's is :mod:`tisat.benchmark.engine_ray`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Protocol

from tisat._validation import check_integer, check_real
from tisat.benchmark.run import Outcome, lost_task, run_from
from tisat.benchmark.sources import Source
from tisat.benchmark.task import Task
from tisat.benchmark.threads import environment_for_workers

Started = Callable[[Task], None]


def ignore(task: Task) -> None:
    """Tell nobody."""


class Engine(Protocol):
    """Runs tasks."""

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in the order they finish; closing the iterator stops the work."""


@dataclass(frozen=True)
class InlineEngine:
    """One task after the other in this process."""

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in order."""
        for task in tasks:
            started(task)
            yield run_from(task, sources[task.dataset])


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)  # the driver was killed: nobody is left to take the result


READY = "ready"  # what a worker says first


def _work(pipe: Connection, sources: Mapping[str, Source], parent: int) -> None:
    """A worker's life: take a task, run it, send the outcome; until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    pipe.send(READY)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        if task is None:
            return
        pipe.send(run_from(task, sources[task.dataset]))


@dataclass
class _Worker:
    """One process and the task it is at."""

    process: SpawnProcess
    pipe: Connection
    task: Task | None = None
    timeout: float = float("inf")
    ready: bool = False  # it has started: only then the clock of its task runs
    deadline: float = float("inf")

    def give(self, task: Task, timeout: float) -> None:
        self.task, self.timeout = task, timeout
        self.deadline = time.monotonic() + timeout if self.ready else float("inf")
        self.pipe.send(task)

    def start_clock(self) -> None:
        self.ready = True
        self.deadline = time.monotonic() + self.timeout

    def stop(self) -> None:
        self.pipe.close()
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(5.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@dataclass(frozen=True)
class LocalEngine:
    """Processes on this machine, one thread each.

    A worker that dies (out of memory, a crash in compiled code) or runs past ``timeout`` makes its task a failed row, and another
    worker takes its place.

    Parameters
    ----------
    jobs : int
        How many at once.
    timeout : float, optional
        Seconds a task may take; the start of its worker does not count.
    """

    jobs: int = 1
    timeout: float | None = None
    _limit: float = field(init=False, repr=False, default=float("inf"))

    def __post_init__(self) -> None:
        check_integer(self.jobs, "jobs", "LocalEngine", minimum=1)
        if self.timeout is not None:
            object.__setattr__(self, "_limit", check_real(self.timeout, "timeout", "LocalEngine", above=0.0))

    def _hire(self, sources: Mapping[str, Source]) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        with environment_for_workers():
            process = context.Process(target=_work, args=(theirs, dict(sources), os.getpid()), daemon=True)
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in the order they finish."""
        waiting: deque[Task] = deque(tasks)
        workers: list[_Worker] = []
        try:
            while waiting or any(worker.task for worker in workers):
                while waiting and len(workers) < self.jobs:
                    workers.append(self._hire(sources))
                for worker in workers:
                    if worker.task is None and waiting:
                        task = waiting.popleft()
                        worker.give(task, self._limit)
                        started(task)
                for gone, outcome in self._collect(workers):
                    if gone is not None:
                        workers.remove(gone)
                        gone.stop()
                    yield outcome
        finally:
            for worker in workers:
                worker.stop()

    def _collect(self, workers: Sequence[_Worker]) -> Iterator[tuple[_Worker | None, Outcome]]:
        """Outcomes that are ready, each with the worker that must go, if it must."""
        busy = {worker.pipe: worker for worker in workers if worker.task is not None}
        first = min(worker.deadline for worker in busy.values())
        ready = wait(list(busy), timeout=None if first == float("inf") else max(first - time.monotonic(), 0.0))
        for pipe in ready:
            worker = busy[pipe]  # type: ignore[index]
            task = worker.task
            assert task is not None
            try:
                answer = worker.pipe.recv()
                if answer == READY:
                    worker.start_clock()
                    continue
                worker.task = None
                yield None, answer
            except (EOFError, ConnectionResetError):
                worker.task = None
                worker.process.join(5.0)
                yield worker, lost_task(task, f"WorkerDied: the process ended with exit code {worker.process.exitcode}")
        now = time.monotonic()
        for worker in busy.values():
            if worker.task is not None and worker.deadline <= now:
                task, worker.task = worker.task, None
                yield worker, lost_task(task, f"Timeout: the task took longer than {self.timeout:g} seconds")

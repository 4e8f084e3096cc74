"""Processes on this machine, one thread each, that survive one another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from tisat.batch.engines import Item, Job, Result, ignore
from tisat.batch.threads import environment_for_workers
from tisat.utils.validation import check_integer, check_real

READY = "ready"  # what a worker says when it has started


def _exit_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)  # the driver was killed: nobody is left to take the result


def _work(pipe: Connection, job: Job[Any, Any], parent: int) -> None:
    """A worker's life: take an item, do the job, send the result; until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    pipe.send(READY)
    while True:
        try:
            (item,) = pipe.recv()
        except (EOFError, TypeError):
            return
        pipe.send((job(item),))


@dataclass
class _Worker:
    """One process and the item it is at, in a tuple of one."""

    process: SpawnProcess
    pipe: Connection
    item: tuple[Any] | None = None
    ready: bool = False
    deadline: float = float("inf")

    def assign(self, item: Any, limit: float) -> None:
        self.item = (item,)
        if self.ready:
            self.deadline = time.monotonic() + limit
        self.pipe.send((item,))

    def mark_ready(self, limit: float) -> None:
        """It has started: now its clock runs."""
        self.ready, self.deadline = True, time.monotonic() + limit

    def stop(self) -> None:
        self.pipe.close()
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(5.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@dataclass(frozen=True)
class Local:
    """Processes on this machine, one thread each.

    A worker that dies (out of memory, a crash in compiled code) or runs past ``timeout`` makes its item a lost one, and another
    worker takes its place.

    Parameters
    ----------
    jobs : int
        How many at once.
    timeout : float, optional
        Seconds an item may take; the start of a worker does not count.
    """

    jobs: int = 1
    timeout: float | None = None
    _limit: float = field(init=False, repr=False, default=float("inf"))

    def __post_init__(self) -> None:
        whose = type(self).__name__
        check_integer(self.jobs, "jobs", whose, minimum=1)
        if self.timeout is not None:
            object.__setattr__(self, "_limit", check_real(self.timeout, "timeout", whose, above=0.0))

    def _start_worker(self, job: Job[Any, Any]) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        with environment_for_workers():
            process = context.Process(target=_work, args=(theirs, job, os.getpid()), daemon=True)
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def each(
        self, job: Job[Item, Result], items: Iterable[Item], *, started: Callable[[Item], None] = ignore
    ) -> Iterator[Result]:
        """The result of every item, in the order they finish."""
        waiting: deque[Item] = deque(items)
        workers: list[_Worker] = []
        results: list[Result] = []
        try:
            while waiting or results or any(worker.item for worker in workers):
                while waiting and len(workers) < self.jobs:
                    workers.append(self._start_worker(job))
                for worker in workers:
                    if worker.item is None and waiting:
                        item = waiting.popleft()
                        worker.assign(item, self._limit)
                        started(item)
                yield from results  # when the workers have something to do: what is done with a result may take long
                results, busy = [], [worker for worker in workers if worker.item is not None]
                for gone, result in self._collect(job, busy) if busy else ():
                    if gone is not None:
                        workers.remove(gone)
                        gone.stop()
                    results.append(result)
        finally:
            for worker in workers:
                worker.stop()

    def _collect(self, job: Job[Item, Result], workers: Sequence[_Worker]) -> Iterator[tuple[_Worker | None, Result]]:
        """Results of busy workers that are there, each with the worker that must go, if it must."""
        busy: dict[object, _Worker] = {worker.pipe: worker for worker in workers}
        first = min(worker.deadline for worker in workers)
        ready = wait(
            [worker.pipe for worker in busy.values()],
            timeout=None if first == float("inf") else max(first - time.monotonic(), 0.0),
        )
        for pipe in ready:
            worker = busy[pipe]
            assert worker.item is not None
            try:
                message = worker.pipe.recv()
            except (EOFError, ConnectionResetError):
                (item,), worker.item = worker.item, None
                worker.process.join(5.0)
                yield worker, job.lost(item, f"WorkerDied: the process ended with exit code {worker.process.exitcode}")
                continue
            if message == READY:
                worker.mark_ready(self._limit)
                continue
            worker.item, worker.deadline = None, float("inf")
            yield None, message[0]
        now = time.monotonic()
        for worker in busy.values():
            if worker.item is not None and worker.deadline <= now:
                (item,), worker.item = worker.item, None
                yield worker, job.lost(item, f"Timeout: it took longer than {self.timeout:g} seconds")

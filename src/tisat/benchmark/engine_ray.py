"""RayEngine: the same tasks on a Ray cluster, the same scores to the bit.

Each entity's series are put into Ray's object store once; a node that needs them pulls them once, however many tasks run
there, so nodes need no data files. A task whose worker or node is lost is run again elsewhere. Imported only when asked for: Ray is
the ``ray`` extra. It does not know stores; the driver writes.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tisat._extras import require
from tisat._validation import check_integer
from tisat.benchmark.engine import Started, ignore
from tisat.benchmark.run import Outcome, lost_task, run_task
from tisat.benchmark.sources import Source
from tisat.benchmark.task import Task
from tisat.benchmark.threads import thread_environment
from tisat.series import Series

RETRIES = 3  # how often a task is started again after its worker or node is lost


def _run(task: Task, pair: tuple[Series, Series]) -> Outcome:
    return run_task(task, *pair)


@dataclass(frozen=True)
class RayEngine:
    """Tasks on a Ray cluster, each with one core and one thread.

    Parameters
    ----------
    address : str, optional
        Of the cluster, such as ``"auto"`` or ``"10.0.0.1:6379"``; None starts one on this machine and stops it afterwards.
    jobs : int, optional
        Cores of the cluster that is started here; all by default. A cluster that is already there brings its own.
    retries : int
        How often a task is started again after its worker or node is lost.
    """

    address: str | None = None
    jobs: int | None = None
    retries: int = RETRIES

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_integer(self.jobs, "jobs", "RayEngine", minimum=1)
        check_integer(self.retries, "retries", "RayEngine", minimum=0)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        ray = require("ray", whose="The ray engine")
        if ray.is_initialized():
            yield ray
            return
        own = {"num_cpus": self.jobs} if self.address is None else {}
        ray.init(
            address=self.address or "local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": thread_environment()},
            **own,
        )
        try:
            yield ray
        finally:
            ray.shutdown()

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in the order they finish."""
        waiting: deque[Task] = deque(tasks)
        if not waiting:
            return
        with self._connected() as ray:
            remote = ray.remote(num_cpus=1, max_retries=self.retries, runtime_env={"env_vars": thread_environment()})(
                _run
            )
            shared: dict[tuple[str, str], Any] = {}
            running: dict[Any, Task] = {}
            try:
                while waiting or running:
                    # Two tasks a core are handed out, so that none waits for the driver and data of later ones is not yet put.
                    room = max(2 * int(ray.cluster_resources().get("CPU", 1)), 2) - len(running)
                    for _ in range(min(room, len(waiting))):
                        task = waiting.popleft()
                        key = (task.dataset, task.entity)
                        if key not in shared:
                            shared[key] = ray.put(sources[task.dataset].pair(task.entity))
                        running[remote.remote(task, shared[key])] = task
                        started(task)
                    (ready,), _ = ray.wait(list(running), num_returns=1)
                    task = running.pop(ready)
                    yield _fetch(ray, ready, task, self.retries)
            finally:
                for reference in running:
                    ray.cancel(reference, force=True)


def _fetch(ray: Any, reference: Any, task: Task, retries: int) -> Outcome:
    """The outcome behind a reference, or the row that says the cluster lost it."""
    errors = (ray.exceptions.RaySystemError, ray.exceptions.RayTaskError, ray.exceptions.WorkerCrashedError)
    lost = (
        ray.exceptions.NodeDiedError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.ObjectLostError,
        ray.exceptions.TaskCancelledError,
    )
    try:
        outcome: Outcome = ray.get(reference)
    except (*errors, *lost) as error:
        return lost_task(task, f"WorkerDied: {type(error).__name__} after {retries} retries")
    return outcome

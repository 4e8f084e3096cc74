"""A Ray cluster. An item whose worker or node is lost is run again elsewhere. Imported only when asked for: the ``ray`` extra.

A job may have ``share(item) -> (key, value)`` and ``with_shared(item, value)``: the value is then put into Ray's object store once
for each key, and a node that needs it pulls it once, so that nodes need no data files.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tisat.batch.engines import Item, Job, Result, ignore
from tisat.batch.threads import thread_environment
from tisat.utils.extras import require
from tisat.utils.validation import check_integer

RETRIES = 3  # how often an item is started again after its worker or node is lost


def _call(job: Any, item: Any) -> Any:
    return job(item)


def _call_with(job: Any, item: Any, value: object) -> Any:
    return job.with_shared(item, value)


@dataclass(frozen=True)
class Cluster:
    """Items on a Ray cluster, each with one core and one thread.

    Parameters
    ----------
    address : str, optional
        Of the cluster, such as ``"auto"`` or ``"10.0.0.1:6379"``; None starts one on this machine and stops it afterwards.
    jobs : int, optional
        Cores of the cluster that is started here; all by default. A cluster that is already there brings its own.
    retries : int
        How often an item is started again after its worker or node is lost.
    """

    address: str | None = None
    jobs: int | None = None
    retries: int = RETRIES

    def __post_init__(self) -> None:
        whose = type(self).__name__
        if self.jobs is not None:
            check_integer(self.jobs, "jobs", whose, minimum=1)
        check_integer(self.retries, "retries", whose, minimum=0)

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

    def each(
        self, job: Job[Item, Result], items: Iterable[Item], *, started: Callable[[Item], None] = ignore
    ) -> Iterator[Result]:
        """The result of every item, in the order they finish."""
        waiting: deque[Item] = deque(items)
        if not waiting:
            return
        share = getattr(job, "share", None)
        with self._connected() as ray:
            options = {"num_cpus": 1, "max_retries": self.retries, "runtime_env": {"env_vars": thread_environment()}}
            remote = ray.remote(**options)(_call if share is None else _call_with)
            the_job = ray.put(job) if share is None else ray.put(_without_data(job))
            shared: dict[Any, Any] = {}
            running: dict[Any, Item] = {}
            try:
                while waiting or running:
                    # Two items a core are handed out, so that none waits for the driver and data of later ones is not yet put.
                    room = max(2 * int(ray.cluster_resources().get("CPU", 1)), 2) - len(running)
                    for _ in range(min(room, len(waiting))):
                        item = waiting.popleft()
                        if share is None:
                            reference = remote.remote(the_job, item)
                        else:
                            key, value = share(item)
                            if key not in shared:
                                shared[key] = ray.put(value())
                            reference = remote.remote(the_job, item, shared[key])
                        running[reference] = item
                        started(item)
                    (ready,), _ = ray.wait(list(running), num_returns=1)
                    yield self._fetch(ray, ready, running.pop(ready), job)
            finally:
                for reference in running:
                    ray.cancel(reference, force=True)

    def _fetch(self, ray: Any, reference: Any, item: Item, job: Job[Item, Result]) -> Result:
        """The result behind a reference, or what says that the cluster lost it."""
        errors = (ray.exceptions.RaySystemError, ray.exceptions.RayTaskError, ray.exceptions.WorkerCrashedError)
        lost = (
            ray.exceptions.NodeDiedError,
            ray.exceptions.OutOfMemoryError,
            ray.exceptions.ObjectLostError,
            ray.exceptions.TaskCancelledError,
        )
        try:
            found: Result = ray.get(reference)
        except (*errors, *lost) as error:
            return job.lost(item, f"WorkerDied: {type(error).__name__} after {self.retries} retries")
        return found


def _without_data(job: Any) -> Any:
    """The job as it travels, where what it needs is shared apart."""
    return job.light()

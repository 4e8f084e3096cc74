"""The driver: an experiment's tasks that are not in the store yet go to an engine, and every outcome into the store.

It resumes by itself: what the store holds is not run again, and a network's training continues after its last epoch. It does not know what the scores are good for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tisat.batch.engines import Engine
from tisat.series import Series
from tisat_bench.sources import Source
from tisat_bench.store import Store
from tisat_bench.task import Task
from tisat_bench.task_run import Outcome, lost_task, run_from, run_task


@dataclass(frozen=True)
class TaskJob:
    """Fit and score a task with the series of its data set: a job for the engines of :mod:`tisat.batch.engines`."""

    sources: Mapping[str, Source]
    store: Store | None = None  # keeps the checkpoints of networks

    def __call__(self, task: Task) -> Outcome:
        """The outcome of a task; what it raises is a failed row."""
        checkpoint = None if self.store is None else self.store.checkpoint(task)
        return run_from(task, self.sources[task.dataset], checkpoint=checkpoint)

    def lost(self, task: Task, why: str) -> Outcome:
        """The row of a task whose worker did not live to write one."""
        return lost_task(task, why)

    # ------------------------------------------------------------------ on a cluster, nodes have no data files

    def share(self, task: Task) -> tuple[tuple[str, str], Callable[[], tuple[Series, Series]]]:
        """The series of a task's entity, under a key of their own."""
        return (task.dataset, task.entity), lambda: self.sources[task.dataset].pair(task.entity)

    def light(self) -> TaskJob:
        """The same without the sources."""
        return TaskJob({})

    def with_shared(self, task: Task, pair: tuple[Series, Series]) -> Outcome:
        """The outcome of a task whose series came apart."""
        return run_task(task, *pair)


@dataclass
class Progress:
    """How far a run has come."""

    total: int  # tasks of the experiment
    stored: int  # done in an earlier run
    done: int = 0  # in this run, well
    failed: list[Outcome] = field(default_factory=list)  # in this run
    running: dict[str, Task] = field(default_factory=dict)  # by hash
    began: float = field(default_factory=time.monotonic)
    interrupted: bool = False

    @property
    def left(self) -> int:
        """Tasks that have no outcome yet."""
        return self.total - self.stored - self.done - len(self.failed)

    @property
    def seconds_left(self) -> float:
        """The time left if the rest goes as the part of this run did.

        NaN before the first outcome.
        """
        finished = self.done + len(self.failed)
        return (time.monotonic() - self.began) / finished * self.left if finished else float("nan")

    def __str__(self) -> str:
        parts = [f"{self.stored + self.done} of {self.total} tasks done"]
        if self.stored:
            parts.append(f"{self.stored} of them earlier")
        if self.failed:
            parts.append(f"{len(self.failed)} failed")
        if self.left:
            parts.append(f"{self.left} left")
        return ", ".join(parts)


Watcher = Callable[[Progress], None]


def _unwatched(progress: Progress) -> None:
    return


def pending(tasks: Iterable[Task], store: Store, *, retry_failed: bool = False) -> tuple[list[Task], list[Task]]:
    """The tasks without duplicates, and those of them that the store has no good row for."""
    unique = list({task.id: task for task in tasks}.values())
    rows = store.rows()
    good = ("done",) if retry_failed else ("done", "failed")
    return unique, [task for task in unique if rows.get(task.id, {}).get("status") not in good]


def drive(
    tasks: Sequence[Task],
    sources: Mapping[str, Source],
    store: Store,
    engine: Engine,
    *,
    retry_failed: bool = False,
    watch: Watcher = _unwatched,
) -> Progress:
    """Run what is missing; Ctrl-C stops cleanly and what is done stays done.

    Parameters
    ----------
    tasks : sequence of Task
    sources : mapping from data set to Source
    store : Store
    engine : tisat.batch.engines.Engine
    retry_failed : bool
        Run again what failed before.
    watch : callable
        Told of every start and every outcome.

    Returns
    -------
    Progress
        With ``interrupted`` set after Ctrl-C.
    """
    with store.writing():
        unique, missing = pending(tasks, store, retry_failed=retry_failed)
        progress = Progress(total=len(unique), stored=len(unique) - len(missing))

        def started(task: Task) -> None:
            progress.running[task.id] = task
            watch(progress)

        waiting = Counter(task.training_id for task in missing)
        try:
            for outcome in engine.each(TaskJob(dict(sources), store), missing, started=started):
                store.put(outcome)
                progress.running.pop(outcome.task.id, None)
                if outcome.failed:  # its checkpoint stays: it may have been given up in the middle of its training
                    progress.failed.append(outcome)
                else:
                    progress.done += 1
                    waiting[outcome.task.training_id] -= 1
                    if not waiting[outcome.task.training_id]:
                        store.checkpoint(outcome.task).unlink(missing_ok=True)
                watch(progress)
        except KeyboardInterrupt:
            progress.interrupted = True
        progress.running.clear()
    return progress

"""The benchmark's job for the engines of :mod:`tisat.engines`: fit and score one task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from tisat.benchmark.run import Outcome, lost_task, run_from, run_task
from tisat.benchmark.sources import Source
from tisat.benchmark.task import Task
from tisat.engines import Inline, ignore
from tisat.engines.local import Local
from tisat.series import Series

Started = Callable[[Task], None]


class Engine(Protocol):
    """Runs tasks."""

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in the order they finish; closing the iterator stops the work."""


@dataclass(frozen=True)
class TaskJob:
    """Fit and score a task with the series of its data set."""

    sources: Mapping[str, Source]

    def __call__(self, task: Task) -> Outcome:
        """The outcome of a task; what it raises is a failed row."""
        return run_from(task, self.sources[task.dataset])

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


class InlineEngine(Inline):
    """One task after the other in this process."""

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in order."""
        return self.each(TaskJob(sources), tasks, started=started)


@dataclass(frozen=True)
class LocalEngine(Local):
    """Tasks in processes of this machine; see :class:`tisat.engines.local.Local`."""

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in the order they finish."""
        return self.each(TaskJob(dict(sources)), tasks, started=started)

"""RayEngine: the same tasks on a Ray cluster, the same scores to the bit. Imported only when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tisat.benchmark.engine import Started, TaskJob
from tisat.benchmark.run import Outcome
from tisat.benchmark.sources import Source
from tisat.benchmark.task import Task
from tisat.engines import ignore
from tisat.engines.cluster import Cluster


@dataclass(frozen=True)
class RayEngine(Cluster):
    """Tasks on a Ray cluster; see :class:`tisat.engines.cluster.Cluster`."""

    def run(
        self, tasks: Iterable[Task], sources: Mapping[str, Source], *, started: Started = ignore
    ) -> Iterator[Outcome]:
        """The outcome of every task, in the order they finish."""
        return self.each(TaskJob(sources), tasks, started=started)

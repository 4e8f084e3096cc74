"""Engines: many items in, results out as they are finished. Inline, in processes of this machine, or on a Ray cluster.

A job says what is done with an item, and what stands for an item whose worker was lost. Every engine calls the same job with one
thread, so all give the same bits on one machine. An engine knows no detectors, files or stores. Ray's is
:mod:`tisat.batch.ray_engine`, imported only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from tisat.errors import ParameterError

__all__ = ["NAMES", "Engine", "Inline", "Item", "ItemIn", "Job", "Result", "ResultOut", "ignore", "make_engine"]

Item = TypeVar("Item")
Result = TypeVar("Result")
ItemIn = TypeVar("ItemIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)
NAMES = ("local", "inline", "ray")


class Job(Protocol[ItemIn, ResultOut]):
    """The work on one item; it can be sent to another process."""

    def __call__(self, item: ItemIn, /) -> ResultOut:
        """The result of one item. It must not raise: a failure is a result."""

    def lost(self, item: ItemIn, why: str, /) -> ResultOut:
        """The result of an item whose worker died."""


class Engine(Protocol):
    """Runs a job over items."""

    def each(
        self, job: Job[Item, Result], items: Iterable[Item], *, started: Callable[[Item], None]
    ) -> Iterator[Result]:
        """The result of every item, in the order they finish; closing the iterator stops the work."""


def ignore(item: object) -> None:
    """Do nothing."""


class Inline:
    """One item after the other in this process."""

    def each(
        self, job: Job[Item, Result], items: Iterable[Item], *, started: Callable[[Item], None] = ignore
    ) -> Iterator[Result]:
        """The result of every item, in order."""
        from tisat.batch.threads import one_thread

        for item in items:
            started(item)
            with one_thread():  # as in every other engine: sums are added in the same order
                result = job(item)
            yield result


def make_engine(name: str, *, jobs: int = 1, address: str | None = None) -> Engine:
    """An engine by its name.

    Parameters
    ----------
    name : str
        ``local`` (processes of this machine), ``inline`` (this process) or ``ray`` (a cluster).
    jobs : int
        Items at once.
    address : str, optional
        Of the Ray cluster; one is started on this machine where it is not given.

    Examples
    --------
    >>> type(make_engine("local", jobs=2)).__name__, type(make_engine("local")).__name__
    ('Local', 'Inline')
    """
    if name not in NAMES:
        raise ParameterError(f"The engine must be one of {', '.join(NAMES)}. Got {name!r} instead.")
    if name == "ray":
        from tisat.batch.ray_engine import Cluster

        return Cluster(address=address, jobs=jobs if address is None else None)
    if address is not None:
        raise ParameterError(f"--address is of a Ray cluster: it must come with --engine ray. Got {name!r} instead.")
    if name == "inline" or jobs == 1:
        return Inline()
    from tisat.batch.process_engine import Local

    return Local(jobs=jobs)

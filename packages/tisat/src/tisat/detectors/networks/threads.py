"""How many threads torch computes a network with: one, unless the network is large.

A small network's operations last microseconds. Threads that share them wait for each other longer than they compute, and
on a busy machine they wait spinning: ``tisat demo`` took 50 minutes with two threads where one took 78 seconds. One thread
also adds sums in the same order on every machine. This module does not know what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

LARGE = 1_000_000  # parameters from which sharing an operation pays


@contextmanager
def threads_for(network: torch.nn.Module) -> Iterator[None]:
    """One torch thread inside for a small network, as many as before for a large one.

    What it was afterwards.

    Examples
    --------
    >>> with threads_for(torch.nn.Linear(3, 3)):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if before == 1 or sum(parameter.numel() for parameter in network.parameters()) >= LARGE:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

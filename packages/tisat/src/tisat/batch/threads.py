"""One thread a worker, so that two jobs on two cores do not fight, and sums are added in the same order everywhere.

Environment variables work only before numpy is imported, so a worker's are set before it is started; the libraries that
can be told later are told too. This module does not know processes or tasks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


def thread_environment() -> dict[str, str]:
    """The environment variables of a worker with one thread."""
    return dict.fromkeys(VARIABLES, "1")


@contextmanager
def environment_for_workers() -> Iterator[None]:
    """Processes started inside inherit :func:`thread_environment`; the present process gets its own back."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(thread_environment())
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def one_thread() -> Iterator[None]:
    """The libraries that are loaded use one thread inside, and as many as before afterwards."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 1
    with threadpool_limits(1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)

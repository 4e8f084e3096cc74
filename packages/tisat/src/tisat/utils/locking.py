"""One writer at a time: a lock on a file that dies with its process, on every system."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


def _grab(file: IO[Any]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def locked(path: Path, refusal: Exception) -> Iterator[None]:
    """Hold the lock file ``path``; raise ``refusal`` where another process holds it."""
    with path.open("w") as file:
        try:
            _grab(file)
        except OSError:
            raise refusal from None
        yield

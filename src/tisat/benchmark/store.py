"""Results on disk: one log of rows that only grows, and one file of arrays a task.

The arrays are written first, whole or not at all, then the row is appended in one write and flushed; the row is what makes
a result exist. Killed at any moment, a store loses the task in flight and nothing else: a half-written last line is
skipped by readers and closed by the next writer. One writer at a time, held by a lock that dies with its process; readers need none.
A later row of the same task replaces an earlier one in what is read, but both stay in the log. Nothing here is a pickle.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat._lock import locked
from tisat.artefact import write_bytes
from tisat.benchmark.run import Outcome
from tisat.errors import InputError

LOG = "rows.jsonl"
ARRAYS = "scores"
LOCK = "lock"
IDENTIFIER = re.compile(r"[0-9a-f]{16}")


class Store:
    """A folder of results.

    Parameters
    ----------
    folder : path
        Made where it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.rows()
    {}
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        (self.folder / ARRAYS).mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store for writing; a second writer is told so instead of mixing its rows in."""
        refusal = InputError(
            f"The store {str(self.folder)!r} must have one writer at a time. Another run is writing to it."
        )
        with locked(self.folder / LOCK, refusal):
            yield

    def put(self, outcome: Outcome) -> None:
        """Add a result: its arrays, then its row."""
        if not outcome.failed:
            buffer = io.BytesIO()
            arrays: dict[str, Any] = dict(outcome.arrays)  # float64 only: nothing that would be pickled
            np.savez_compressed(buffer, **arrays)
            write_bytes(self._arrays(outcome.task.id), buffer.getvalue())
        line = (json.dumps(outcome.row, sort_keys=True, allow_nan=False) + "\n").encode()
        handle = os.open(self.folder / LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = b"\n" + line  # the last writer was killed in the middle of its row
            os.write(handle, line)
            os.fsync(handle)
        finally:
            os.close(handle)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The latest row of every task, by its hash, in the order of the log."""
        log = self.folder / LOG
        found: dict[str, dict[str, Any]] = {}
        if not log.is_file():
            return found
        for line in log.read_bytes().split(b"\n"):
            try:
                row = json.loads(line)
            except ValueError:
                continue  # empty, or cut off by a kill: the task is run again
            if isinstance(row, dict) and isinstance(row.get("id"), str) and IDENTIFIER.fullmatch(row["id"]):
                found[row["id"]] = row
        return found

    def arrays(self, identifier: str) -> dict[str, npt.NDArray[np.float64]]:
        """The arrays of a task that is done."""
        file = self._arrays(identifier)
        if not file.is_file():
            raise InputError(
                f"The store {str(self.folder)!r} must hold the scores of task {identifier}. There is no such file."
            )
        with np.load(file, allow_pickle=False) as opened:
            return {name: opened[name] for name in opened.files}

    def _arrays(self, identifier: str) -> Path:
        return self.folder / ARRAYS / f"{identifier}.npz"

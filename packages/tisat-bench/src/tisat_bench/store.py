"""Results on disk: one log of rows that only grows, and one file of arrays a task.

The arrays are written first, whole or not at all, then the row is appended in one write and flushed; the row is what makes
a result exist. Killed at any moment, a store loses the task in flight (of a network, the epoch in flight) and nothing else: a half-written last line is
skipped by readers and closed by the next writer. One writer at a time, held by a lock that dies with its process; readers need none.
A later row of the same task replaces an earlier one in what is read, but both stay in the log. Nothing here is a pickle.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tisat.errors import InputError
from tisat.persistence.model_file import write_bytes
from tisat.utils.locking import locked
from tisat.utils.types import Array, JsonDict
from tisat_bench.task import Task
from tisat_bench.task_run import Outcome

LOG = "rows.jsonl"
ARRAYS = "scores"
CHECKPOINTS = "checkpoints"
LOCK = "lock"
NUMBERS = ("fit_seconds", "score_seconds", "peak_bytes")  # of a row that is done
IDENTIFIER = re.compile(r"[0-9a-f]{16}")


def checksum(content: bytes) -> str:
    """By which arrays are told from those of another task, or from damaged ones."""
    return hashlib.sha256(content).hexdigest()


def read_arrays(content: bytes) -> dict[str, Array] | None:
    """The arrays of an npz file; None where it is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as opened:
            return {name: opened[name] for name in opened.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        return None


def _whole(row: object) -> bool:
    """Whether a line of the log is a result with everything that is asked of it."""
    return (
        isinstance(row, dict)
        and isinstance(row.get("id"), str)
        and IDENTIFIER.fullmatch(row["id"]) is not None
        and isinstance(row.get("task"), dict)
        and isinstance(row.get("machine"), dict | str)
        and row.get("status") in ("done", "failed")
        and (row["status"] == "failed" or all(isinstance(row.get(name), int | float) for name in NUMBERS))
    )


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
        self._seen, self._sums = -1, dict[str, str]()

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store for writing.

        A second writer is told so instead of mixing its rows in.
        """
        refusal = InputError(
            f"The store {str(self.folder)!r} must have one writer at a time. Another run is writing to it."
        )
        with locked(self.folder / LOCK, refusal):
            yield

    def put(self, outcome: Outcome) -> None:
        """Add a result: its arrays, then its row."""
        row = dict(outcome.row)
        if not outcome.failed:
            buffer = io.BytesIO()
            arrays: JsonDict = dict(outcome.arrays)  # float64 only: nothing that would be pickled
            np.savez_compressed(buffer, **arrays)
            write_bytes(self._arrays(outcome.task.id), buffer.getvalue())
            row["checksum"] = checksum(buffer.getvalue())
        line = (json.dumps(row, sort_keys=True, allow_nan=False) + "\n").encode()
        handle = os.open(self.folder / LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = b"\n" + line  # the last writer was killed in the middle of its row
            while line:  # a short write is no write: a full disk says so at the next attempt
                line = line[os.write(handle, line) :]
            os.fsync(handle)
        finally:
            os.close(handle)

    def checkpoint(self, task: Task) -> Path:
        """The file that keeps the training of a task's network while it lasts."""
        return self.folder / CHECKPOINTS / f"{task.training_id}.tisat"

    def rows(self) -> dict[str, JsonDict]:
        """The latest row of every task, by its hash, in the order of the log."""
        log = self.folder / LOG
        rows: dict[str, JsonDict] = {}
        if not log.is_file():
            return rows
        for line in log.read_bytes().split(b"\n"):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue  # empty, or cut off by a kill: the task is run again
            if _whole(row):
                rows[row["id"]] = row
        return rows

    def arrays(self, identifier: str) -> dict[str, Array]:
        """The arrays of a task that is done."""
        file = self._arrays(identifier)
        if not file.is_file():
            raise InputError(
                f"The store {str(self.folder)!r} must hold the scores of task {identifier}. There is no such file."
            )
        content = file.read_bytes()
        expected = self._checksums().get(identifier)
        if expected is not None and checksum(content) != expected:
            raise self._damaged(identifier, "its scores are not those its row was written for")
        arrays = read_arrays(content)
        if arrays is None:
            raise self._damaged(identifier, "its scores cannot be read")
        return arrays

    def _damaged(self, identifier: str, why: str) -> InputError:
        return InputError(
            f"The store {str(self.folder)!r} must hold whole results. That of task {identifier} is damaged: {why}. "
            f"Remove {str(self._arrays(identifier))!r} and run the same 'tisat bench' again: it repeats that task alone."
        )

    def _checksums(self) -> dict[str, str]:
        """The checksum of each task's arrays, read again when the log has grown."""
        log = self.folder / LOG
        size = log.stat().st_size if log.is_file() else 0
        if self._seen != size:
            self._sums = {name: row["checksum"] for name, row in self.rows().items() if "checksum" in row}
            self._seen = size
        return self._sums

    def _arrays(self, identifier: str) -> Path:
        return self.folder / ARRAYS / f"{identifier}.npz"

"""The log of a service: everything that changes a monitor is an entry, on the disk before it has its effect."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import msgspec

from tisat.errors import InputError
from tisat_serve.store import Entry, Store

ROW = 0  # [ROW, entity, time, offset, values]; with one more value where it is not to be learned from
RELEASE = 1  # [RELEASE, entity]: the end of a reorder window
LABEL = 2  # [LABEL, entity, row, word, model]
ADOPT = 3  # [ADOPT, entity, calibration]
ACCEPT = 4  # [ACCEPT, entity, row, model]: the level of an alarm's channels is the new normal

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


class Log:
    """Entries by number, from 1.

    Parameters
    ----------
    store : Store
    saved : int
        Number of the last entry that a saved state knows: the log before it may have been cut off.
    """

    def __init__(self, store: Store, saved: int) -> None:
        self._store = store
        self.next = max(store.read("SELECT max(seq + count) FROM log")[0][0] or 1, 1 + saved)

    def write(self, write: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        """Write entries in a transaction; :attr:`next` moves on when it has ended."""
        if entries:
            write.execute("INSERT INTO log VALUES (?, ?, ?)", (self.next, len(entries), _encode(entries)))

    def entries_after(self, number: int) -> Iterator[tuple[int, Entry]]:
        """Read the entries after a number, each with its own."""
        query = "SELECT seq, count, body FROM log WHERE seq + count > ? ORDER BY seq"
        with self._store.reading() as connection:
            for seq, count, body in connection.execute(query, (number + 1,)):
                entries = _decode(body)
                if len(entries) != count:
                    raise InputError(
                        f"The log of {str(self._store.folder)!r} must be whole. Entry {seq} is not; restore a backup."
                    )
                yield from enumerate(entries, seq)

    def cut(self, needed: int) -> None:
        """Remove entries up to the last one that every state knows."""
        last = self._store.read("SELECT max(seq) FROM log")[0][0]
        first = self._store.read("SELECT min(seq + count) FROM log")[0][0]
        if last is not None and first is not None and first - 1 <= needed:
            with self._store.writing() as write:
                write.execute("DELETE FROM log WHERE seq + count - 1 <= ? AND seq < ?", (needed, last))

"""One SQLite file that holds everything: the log of rows, states, history, alarms, what people said, what is to be sent.

One connection writes, in transactions that end on the disk (write-ahead log, ``synchronous=FULL``); any number read.
This module knows tables, not monitors and not the network.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec

from tisat.errors import InputError, TisatError
from tisat.persistence.old_names import rename_keys
from tisat.utils.locking import locked
from tisat.utils.types import JsonDict

FILE = "tisat-serve.db"
VERSION = 5  # of the tables
ROOM = 1 << 18  # characters that must find room before a full disk is believed to be one no more
READERS = 8  # connections that read, at most; each has up to three descriptors
STEPS = {  # from a version to the next one
    1: """
    CREATE TABLE models (
      id INTEGER PRIMARY KEY, grp TEXT NOT NULL, print TEXT NOT NULL, body BLOB NOT NULL, at REAL NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL
    );
    ALTER TABLE calibrations ADD COLUMN model INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE history ADD COLUMN model INTEGER NOT NULL DEFAULT 0;
    """,
    2: """
    CREATE TABLE marks (source TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL, PRIMARY KEY (source, partition));
    CREATE TABLE owners (entity TEXT PRIMARY KEY, source TEXT NOT NULL, partition INTEGER NOT NULL);
    """,
    # A rule said what matters: "up" held a fall back, as did a change too small. Now it says what is suppressed, one thing each.
    3: """
    INSERT INTO rules SELECT NULL, pattern, channel, 'both', least, NULL, author, reason, at, ended FROM rules
      WHERE least IS NOT NULL AND direction <> 'both';
    INSERT INTO rules SELECT NULL, pattern, channel, 'both', NULL, least_relative, author, reason, at, ended FROM rules
      WHERE least_relative IS NOT NULL AND (direction <> 'both' OR least IS NOT NULL);
    UPDATE rules SET least_relative = NULL WHERE direction = 'both' AND least IS NOT NULL;
    UPDATE rules SET direction = CASE direction WHEN 'up' THEN 'down' ELSE 'up' END, least = NULL, least_relative = NULL
      WHERE direction <> 'both';
    CREATE TABLE acknowledgements (
      id INTEGER PRIMARY KEY, alarm TEXT NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL, until REAL
    );
    CREATE INDEX acknowledgements_of ON acknowledgements (alarm, id);
    """,
    4: """
    ALTER TABLE alarms ADD COLUMN incident TEXT NOT NULL DEFAULT '';
    UPDATE alarms SET incident = id;
    CREATE INDEX alarms_incident ON alarms (incident);
    CREATE TABLE patterns (
      id INTEGER PRIMARY KEY, grp TEXT NOT NULL, document TEXT NOT NULL, words TEXT NOT NULL,
      author TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL, ended REAL
    );
    """,
}


class StoreFullError(TisatError, OSError):
    """The disk (or the limit set on the file) is full: nothing more can be kept until there is room."""


Record: TypeAlias = tuple[Any, ...]  # one row of a table
Entry: TypeAlias = list[Any]  # one entry of the log: its kind first

# The kinds of entries of the log: everything that changes a monitor is one of them.
ROW = 0  # [ROW, entity, time, offset, values]; with one more value where it is not to be learned from
RELEASE = 1  # [RELEASE, entity]: the end of a reorder window
LABEL = 2  # [LABEL, entity, row, word, model]
ADOPT = 3  # [ADOPT, entity, calibration]
ACCEPT = 4  # [ACCEPT, entity, row, model]: the level of an alarm's channels is the new normal

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


@dataclass
class Mark:
    """How far a source was read, and which entities came with which part of it.

    Written in the transaction of the rows.
    """

    source: str
    next: dict[int, int]  # by partition: the offset of the next message
    owners: dict[str, int]  # entities that were not known to be of a partition yet

    def write(self, write: sqlite3.Connection) -> None:
        """See above."""
        write.executemany(
            "INSERT INTO marks VALUES (?, ?, ?) ON CONFLICT (source, partition) DO UPDATE SET next = excluded.next",
            [(self.source, partition, offset) for partition, offset in self.next.items()],
        )
        write.executemany(
            "INSERT OR REPLACE INTO owners VALUES (?, ?, ?)",
            [(entity, self.source, partition) for entity, partition in self.owners.items()],
        )


class Store:
    """The file of one service.

    Parameters
    ----------
    folder : path
        Made where it is not there. One service at a time holds it.
    beside : bool
        A small change beside a running service, such as a token.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
    ...     with store.writing() as write:
    ...         _ = write.execute("INSERT INTO journal VALUES (NULL, 0, 'me', 'looked', '')")
    ...     store.read("SELECT author, what FROM journal")
    [('me', 'looked')]
    """

    def __init__(self, folder: str | Path, *, beside: bool = False) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        refusal = InputError(f"The folder {str(folder)!r} must have one tisat serve at a time. Another one holds it.")
        self._held = contextlib.ExitStack()
        if not beside:
            self._held.enter_context(locked(self.folder / "lock", refusal))
        self.path = self.folder / FILE
        self.lock = threading.RLock()  # of the writing connection
        self.full = False  # the disk is full
        self._lent = threading.BoundedSemaphore(READERS)
        self._idle: list[sqlite3.Connection] = []  # readers that nobody uses now
        self._open: list[sqlite3.Connection] = []  # every reader
        try:
            with contextlib.suppress(FileExistsError):  # the write-ahead log takes over the rights of the file
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._writer = self._connect()
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._held.close()
            raise InputError(
                f"The file {str(self.path)!r} must be a store of tisat serve. It cannot be read: {error}. "
                "Put a backup in its place with tisat serve restore."
            ) from None
        except BaseException:
            self._held.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30.0, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA busy_timeout=30000")
        return connection

    def _prepare(self) -> None:
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        if not 0 <= version <= VERSION:
            raise InputError(
                f"The file {str(self.path)!r} must be of version {VERSION} at most. Got {version}: it belongs to another tisat; install that one."
            )
        if version == 0:
            self._writer.executescript(files("tisat_serve").joinpath("schema.sql").read_text(encoding="utf-8"))
            self._writer.execute(f"PRAGMA user_version={VERSION}")
        for step in range(version, VERSION) if version else ():
            self._writer.executescript(f"BEGIN IMMEDIATE;{STEPS[step]}")
            if step == 3:
                _rename(self._writer)
            self._writer.execute(f"PRAGMA user_version={step + 1}")
            self._writer.execute("COMMIT")

    # ------------------------------------------------------------------ writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on the disk when it ends, or nothing has happened."""
        with self.lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException as error:
                with contextlib.suppress(sqlite3.Error):
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                if is_full(error):
                    self.full = True
                    raise StoreFullError(
                        f"The disk of {str(self.folder)!r} must have room. It is full: rows are refused until there is."
                    ) from None
                raise

    def try_room(self) -> None:
        """See whether there is room on the disk again."""
        with contextlib.suppress(StoreFullError):
            with self.writing() as write:
                write.execute("INSERT OR REPLACE INTO meta VALUES ('room', ?)", ("x" * ROOM,))
            with self.writing() as write:
                write.execute("DELETE FROM meta WHERE key = 'room'")
            self.full = False

    # ------------------------------------------------------------------ reading

    def open_reader(self) -> sqlite3.Connection:
        """Open a connection that only reads, for one owner.

        The store closes it at its end.
        """
        connection = self._connect()
        connection.execute("PRAGMA query_only=1")
        self._open.append(connection)
        return connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend one of at most :data:`READERS` connections that only read, however many threads come and go."""
        with self._lent:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self.open_reader()
            try:
                yield connection
            finally:
                self._idle.append(connection)

    def read(self, query: str, values: Sequence[object] = ()) -> list[Record]:
        """The rows of a query."""
        with self.reading() as connection:
            return connection.execute(query, values).fetchall()

    def records(self, query: str, values: Sequence[object] = ()) -> list[JsonDict]:
        """The rows of a query, each by name."""
        with self.reading() as connection:
            cursor = connection.execute(query, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def meta(self, key: str) -> str:
        """A value kept under a name; empty where there is none."""
        found = self.read("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else ""

    @property
    def bytes(self) -> int:
        """Size of the file and of its write-ahead log."""
        paths = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())

    def close(self) -> None:
        """Close every connection and let the folder go."""
        for connection in self._open:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        with contextlib.suppress(sqlite3.Error):
            self._writer.close()
        self._held.close()


def _rename(write: sqlite3.Connection) -> None:
    """Give thresholds and proposals that were kept before the names of fields they have now."""
    for table in ("calibrations", "proposals"):
        for number, document in write.execute(f"SELECT id, document FROM {table}").fetchall():
            renamed = json.dumps(rename_keys(json.loads(document)))
            write.execute(f"UPDATE {table} SET document = ? WHERE id = ?", (renamed, number))


def file_in(folder: Path) -> Path:
    """The file of a store that must be there."""
    if not (folder / FILE).is_file():
        raise InputError(f"The folder {str(folder)!r} must hold a store of tisat serve. It does not.")
    return folder / FILE


@contextlib.contextmanager
def opened(path: Path, *, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    """A connection beside those of a service, only to read unless told.

    A file that cannot be opened is a sentence.
    """
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True)
    except sqlite3.Error as error:
        raise InputError(f"The file {str(path)!r} must be readable. It is not: {error}.") from None
    with contextlib.closing(connection):
        yield connection


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no room left."""
    return isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorname", "") in (
        "SQLITE_FULL",
        "SQLITE_IOERR_WRITE",
    )


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

"""Without a broker: each service watches the entities that a stable hash gives to its shard, and one can be moved to another shard.

The hash is of the name alone, so every sender and every service come to the same answer, in any version and on any machine.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tisat.errors import InputError, NotFoundError
from tisat.utils.types import JsonDict
from tisat_serve.engine.engine import Engine
from tisat_serve.store import Store, file_in


def shard_of(entity: str, shards: int) -> int:
    """The shard of an entity, 1 to ``shards``.

    Examples
    --------
    >>> [shard_of(name, 8) for name in ("pump-1", "pump-2", "pump-3")]
    [5, 4, 8]
    """
    digest = hashlib.blake2b(entity.encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % shards


@dataclass(frozen=True)
class Shard:
    """One of several: ``2/8``."""

    number: int
    shards: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From ``2/8``."""
        number, sign, shards = text.partition("/")
        if not (sign and number.isdecimal() and shards.isdecimal() and 1 <= int(number) <= int(shards) <= 100_000):
            raise InputError(f"--shard must be one of several, such as 2/8. Got {text[:40]!r} instead.")
        return cls(int(number), int(shards))

    def __str__(self) -> str:
        return f"{self.number}/{self.shards}"

    def settle(self, engine: Engine) -> None:
        """Let an engine take the entities of this shard alone.

        Its folder belongs to the shard from then on.
        """
        known = engine.store.meta("shard")
        if known and known != str(self):
            raise InputError(
                f"The folder {str(engine.store.folder)!r} must be used as the shard it began as. It is {known}, not {self}; "
                "move entities with tisat serve move."
            )
        with engine.store.writing() as write:
            write.execute("INSERT OR REPLACE INTO meta VALUES ('shard', ?)", (str(self),))
        engine.admission.accepts = lambda entity: self.refusal(engine.store, entity)

    def refusal(self, store: Store, entity: str) -> str:
        """Why an entity that is not here is not taken; empty where it is."""
        moved = store.meta(f"moved:{entity}")
        if moved:
            return f"The entity {entity[:200]!r} must be sent to where it was moved: shard {moved}."
        home = shard_of(entity, self.shards)
        if home == self.number:
            return ""
        return f"The entity {entity[:200]!r} must be sent to shard {home}/{self.shards}. This is {self}."


def move(entities: list[str], source: Path, target: Path) -> list[tuple[str, int]]:
    """Move entities with their state, history, alarms and labels from one folder to another; names and rows of history.

    Neither service may be running, and the first must have been stopped, not killed, since the last row: then its states are whole.
    """
    for folder in (source, target):
        file_in(folder)
    with ExitStack() as stack:
        here, there = (stack.enter_context(Store(folder)) for folder in (source, target))
        return [(name, _move(name, here, there)) for name in entities]


def _move(name: str, here: Store, there: Store) -> int:
    found = here.records("SELECT * FROM entities WHERE name = ? AND retired IS NULL", (name,))
    if not found:
        raise NotFoundError(f"The first folder must know the entity. Got {name[:200]!r} instead.")
    entity = found[0]
    if there.read("SELECT 1 FROM entities WHERE name = ? AND retired IS NULL", (name,)):
        raise InputError(f"The second folder must not know the entity yet. It does: {name[:200]!r}.")
    for key in ("model", "channels"):
        if here.meta(f"{key}:{entity['grp']}") != there.meta(f"{key}:{entity['grp']}"):
            raise InputError(f"Both folders must have the group {entity['grp']!r} with the same model. They have not.")
    for first, _, body in here.read("SELECT seq, count, body FROM log WHERE seq + count > ?", (entity["saved"] + 1,)):
        entries = msgspec.msgpack.decode(body)
        if any(entry[1] == entity["id"] and first + k > entity["saved"] for k, entry in enumerate(entries)):
            raise InputError(
                f"The states of {str(here.folder)!r} must be whole. Rows of {name[:200]!r} are only in the log: start that service and stop it once."
            )
    calibration = here.records("SELECT * FROM calibrations WHERE id = ?", (entity["calibration"],))[0]
    pieces = here.records("SELECT * FROM history WHERE entity = ? ORDER BY id", (entity["id"],))
    alarms = here.read("SELECT * FROM alarms WHERE entity = ?", (name,))
    labels = here.read(
        "SELECT alarm, word, author, reason, at FROM labels WHERE alarm IN (SELECT id FROM alarms WHERE entity = ?)",
        (name,),
    )
    with there.writing() as write:
        kept = (calibration[key] for key in ("document", "at", "author", "reason"))
        values = (entity["grp"], name, *kept, _model(here, there, write, calibration))
        number = write.execute("INSERT INTO calibrations VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid
        seq = write.execute(
            "SELECT max(coalesce((SELECT max(seq + count - 1) FROM log), 0), coalesce((SELECT max(saved) FROM entities), 0))"
        ).fetchone()[0]
        write.execute("DELETE FROM entities WHERE name = ?", (name,))
        place = write.execute(
            "INSERT INTO entities VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (
                name,
                entity["grp"],
                entity["dates"],
                entity["enrolled"],
                entity["received"],
                seq,
                number,
                entity["state"],
                entity["held"],
            ),
        ).lastrowid
        for piece in pieces:
            model = _model(here, there, write, {"model": piece["model"], "grp": entity["grp"]})
            told = {**piece, "id": None, "entity": place, "model": model}
            write.execute(f"INSERT INTO history VALUES ({', '.join('?' * len(told))})", tuple(told.values()))
        write.executemany("INSERT OR REPLACE INTO alarms VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", alarms)
        write.executemany("INSERT INTO labels VALUES (NULL, ?, ?, ?, ?, ?)", labels)
        write.execute("DELETE FROM meta WHERE key = ?", (f"moved:{name}",))
    with here.writing() as write:
        write.execute("DELETE FROM labels WHERE alarm IN (SELECT id FROM alarms WHERE entity = ?)", (name,))
        write.execute("DELETE FROM alarms WHERE entity = ?", (name,))
        write.execute("DELETE FROM history WHERE entity = ?", (entity["id"],))
        write.execute("DELETE FROM entities WHERE id = ?", (entity["id"],))
        write.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"moved:{name}", there.meta("shard") or str(there.folder))
        )
    return sum(piece["rows"] for piece in pieces)


def _model(here: Store, there: Store, write: sqlite3.Connection, one: JsonDict) -> int:
    """The number that a model of the first folder has in the second, copied where it is not there."""
    if not one["model"]:
        return 0
    (model,) = here.records("SELECT * FROM models WHERE id = ?", (one["model"],))
    found = there.read("SELECT id FROM models WHERE grp = ? AND print = ?", (model["grp"], model["print"]))
    if found:
        return int(found[0][0])
    values = tuple(model[key] for key in ("grp", "print", "body", "at", "author", "reason"))
    return int(write.execute("INSERT INTO models VALUES (NULL, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0)

"""An entity goes from one service to another and is judged on to the bit: its state, its threshold and its open alarms, in a parcel.

**On a shelf** (a folder that every service sees) lies the last parcel of each part of a source: the states of its entities, and the
offset of the next message they have not seen. Whoever takes the part over unpacks it and reads on from there. A result
depends on the rows of its entity alone, so two services that read the same messages come to the same state; the
parcel that is further on is therefore always the right one, whoever wrote it, and nobody has to be fenced off.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tisat.alarms.calibration import Calibration
from tisat.errors import InputError
from tisat.utils.locking import locked
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.entity_state import EntityState
from tisat_serve.engine.group import Group, add_calibration
from tisat_serve.engine.row_encoding import compress, decompress

VERSION = 1


class PackedEntity(msgspec.Struct):
    """One entity."""

    name: str
    group: str
    model: str  # fingerprint
    dates: bool
    enrolled: float
    received: float
    calibration: str  # JSON
    state: bytes
    held: bytes | None
    alarms: list[list[Any]]  # rows of the book that are still open


class PartitionSnapshot(msgspec.Struct):
    """The entities of one part of a source, as they are before the message ``offset``."""

    version: int
    source: str
    partition: int
    offset: int
    entities: list[PackedEntity]


def pack(engine: Engine, names: Iterable[str]) -> list[PackedEntity]:
    """Entities as they are now. The engine must hold still (``engine.lock``)."""
    entities_packed = []
    for name in names:
        cell = engine.cells[name]
        group = engine.groups[cell.group]
        entities_packed.append(
            PackedEntity(
                name=name,
                group=cell.group,
                model=group.print_of(cell.calibration),
                dates=cell.dates,
                enrolled=cell.enrolled,
                received=cell.received,
                calibration=json.dumps(group.watches[cell.calibration].calibration.to_json()),
                state=compress(group.fleet_of(cell.calibration).state_of(name)),
                held=msgspec.msgpack.encode(cell.held) if cell.held else None,
                alarms=[
                    list(row)
                    for row in engine.store.read("SELECT * FROM alarms WHERE entity = ? AND cleared IS NULL", (name,))
                ],
            )
        )
    return entities_packed


def unpack(engine: Engine, packed: Iterable[PackedEntity]) -> list[str]:
    """Go on with entities that another service has packed; their names."""
    names = []
    with engine.lock:
        engine.settle()
        for entity in packed:
            group = engine.groups.get(entity.group)
            if group is None:
                raise InputError(
                    f"The entity {entity.name!r} must find its group {entity.group!r} here. The groups are {', '.join(engine.groups)}."
                )
            if entity.name in engine.cells:
                release(engine, [entity.name])
            number = _calibration(engine, group, entity)
            with engine.store.writing() as write:
                place = engine.entities.away.get(entity.name, engine.entities.next_id)
                write.execute(
                    "INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT (name) DO UPDATE SET grp = excluded.grp, "
                    "dates = excluded.dates, received = excluded.received, saved = excluded.saved, calibration = excluded.calibration, "
                    "state = excluded.state, held = excluded.held, retired = NULL",
                    (place, entity.name, entity.group, entity.dates, entity.enrolled, entity.received, engine.log.next - 1, number, entity.state, entity.held),
                )  # fmt: skip
                # The alarms that were on here are as the parcel has them from now on.
                write.execute("DELETE FROM alarms WHERE entity = ? AND cleared IS NULL", (entity.name,))
                write.executemany(
                    "INSERT OR REPLACE INTO alarms VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [[*row, row[0]][:13] for row in entity.alarms],  # a parcel of before knows no incident
                )
            cell = engine.entities.add(
                EntityState(place, entity.name, entity.group, entity.dates, number, engine.clock(), engine.steady()),
                entity.state,
            )
            cell.enrolled, cell.saved, cell.seq = entity.enrolled, engine.log.next - 1, engine.log.next - 1
            cell.quiet = next((row[0] for row in entity.alarms if row[3] == "silence"), None)
            if entity.held:
                cell.held = [(*row[:4], bool(row[4])) for row in msgspec.msgpack.decode(entity.held)]
                cell.newest = max([cell.newest, *(row[0] for row in cell.held)])
            names.append(entity.name)
    return names


def _calibration(engine: Engine, group: Group, one: PackedEntity) -> int:
    """The number that an entity's threshold has here, given one where it is new."""
    model = next((number for number, held in group.models.items() if held.print == one.model), None)
    if model is None:
        raise InputError(
            f"The entity {one.name!r} must be judged with the model it began with. Group {group.name!r} has another one here; "
            "give every service the same model."
        )
    document = json.loads(one.calibration)
    for number, watch in group.watches.items():
        if group.model_of[number] == model and watch.calibration.to_json() == document:
            return number
    calibration = Calibration.from_json(document)
    with engine.store.writing() as write:
        number = add_calibration(
            write, group.name, one.name, calibration, "tisat", "handed over", model, engine.clock()
        )
    group.watch_at(number, calibration, model)
    return number


def release(engine: Engine, names: Iterable[str]) -> None:
    """Let entities go: what was judged here stays in the history.

    Alarms that are on are another's business from then on.
    """
    with engine.lock:
        cells = [engine.cells[name] for name in names if name in engine.cells]
        engine.settle(most=0)
        for start in range(0, len(cells), 64):
            engine.saver.save(cells[start : start + 64])
        gone_names = {cell.name for cell in cells}
        with engine.store.writing() as write:
            for cell in cells:
                write.execute("UPDATE entities SET retired = ? WHERE id = ?", (engine.clock(), cell.id))
        engine.saver.drop(gone_names)
        for cell in cells:
            engine.entities.remove(cell)
            engine.entities.away[cell.name] = cell.id


class SnapshotFolder:
    """The folder where parcels lie.

    Parameters
    ----------
    folder : path
        Seen by every service that may take a part over.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def _path(self, source: str, partition: int) -> Path:
        return self.folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', source)[:100]}-{int(partition)}.parcel"

    def get(self, source: str, partition: int) -> PartitionSnapshot | None:
        """The parcel of a part of a source; None where there is none yet."""
        path = self._path(source, partition)
        if not path.is_file():
            return None
        try:
            parcel = msgspec.msgpack.decode(decompress(path.read_bytes()), type=PartitionSnapshot)
        except Exception as error:  # whatever a damaged snapshot makes of our code, one sentence comes out of it
            raise InputError(
                f"The snapshot {str(path)!r} must be whole. It is not: {str(error)[:200]}. Remove it to begin the part again."
            ) from None
        if parcel.version != VERSION or (parcel.source, parcel.partition) != (source, partition):
            raise InputError(f"The snapshot {str(path)!r} must be that of {source} {partition}. It is of another.")
        return parcel

    def put(self, source: str, partition: int, offset: int, entities: list[PackedEntity]) -> bool:
        """Lay a parcel down, whole or not at all.

        False where one lies there that is as far or further on.
        """
        path = self._path(source, partition)
        busy = InputError(
            f"The snapshot {str(path)!r} must be written by one at a time. Another service is writing it."
        )
        with locked(path.with_suffix(".lock"), busy):
            there = self.get(source, partition)
            if there is not None and there.offset >= offset:
                return False
            content = compress(msgspec.msgpack.encode(PartitionSnapshot(VERSION, source, partition, offset, entities)))
            handle, name = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
            return True

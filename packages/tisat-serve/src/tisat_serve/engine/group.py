"""A group of entities that share a detector and a rule.

Their thresholds may differ, and after a refit a model follows another.
"""

from __future__ import annotations

import fnmatch
import json
import sqlite3
from dataclasses import dataclass

from tisat.alarms.calibration import Calibration
from tisat.alarms.patterns import Pattern
from tisat.errors import InputError
from tisat.persistence.model_file import pack_artefact, unpack_artefact
from tisat.watch.fleet import Fleet
from tisat.watch.row_intake import RowReader
from tisat.watch.watch import Watch
from tisat_serve.store import Store

FIRST = 0  # number of the model that the configuration names


class Model:
    """One fitted watch of a group and the monitors that run on it."""

    def __init__(self, number: int, watch: Watch) -> None:
        self.number, self.watch = number, watch
        # After a restart rows are judged in other company: to the bit the same. Who is silent, the service's own clock says.
        self.fleet = Fleet(watch, exact=True, roll=False)
        self.print = watch.fingerprint()


@dataclass
class Group:
    """A group of entities: its configuration, models and monitors.

    ``silent_after``, ``lateness``, ``retention`` and ``refit`` are seconds. ``watch`` is the model in force, which new entities
    get; where somebody has taken a refit, the others follow one by one.
    """

    name: str
    watch: Watch
    match: str = "*"
    lateness: float = 0.0
    silent_after: float | None = None
    retention: float = 14 * 86400.0
    ignore_extra: bool = False
    refit: float | None = None  # seconds after which another refit is proposed; None: only when somebody asks

    def __post_init__(self) -> None:
        self.models = {FIRST: Model(FIRST, self.watch)}
        self.model = FIRST  # in force
        self.read = RowReader(self.watch.channels, missing=self.watch.reading.get("missing", ()))
        self.known = frozenset(self.watch.channels)
        self.watches: dict[int, Watch] = {}  # by calibration
        self.model_of: dict[int, int] = {}  # by calibration
        self.calibration = 0  # in force for entities that enrol
        self.patterns: tuple[Pattern, ...] = ()  # of known alarms, that people took here: beside those of each model
        if self.silent_after is None:
            self.silent_after = max(10.0 * (self.watch.period or 60.0), 60.0)

    def owns(self, entity: str) -> bool:
        """Whether a new entity of this name belongs here."""
        return fnmatch.fnmatchcase(entity, self.match)

    def fleet_of(self, calibration: int) -> Fleet:
        """The monitors that share the model of a calibration."""
        return self.models[self.model_of[calibration]].fleet

    def print_of(self, calibration: int) -> str:
        """The fingerprint of the model of a calibration."""
        return self.models[self.model_of[calibration]].print

    def load_model(self, store: Store, number: int) -> None:
        """Have a model of the store ready."""
        if number not in self.models:
            content = store.read("SELECT body FROM models WHERE id = ?", (number,))[0][0]
            self.models[number] = Model(number, watch_from_bytes(content))

    def watch_at(self, number: int, calibration: Calibration, model: int = FIRST) -> Watch:
        """The watch at a calibration of a model, made once."""
        if number not in self.watches:
            self.watches[number] = self.models[model].watch.at(calibration)
            self.model_of[number] = model
            self.watches[number].patterns += self.patterns
        return self.watches[number]

    def load_patterns(self, store: Store) -> None:
        """Put the patterns of the store in force; monitors that run have them from the next row on."""
        query = "SELECT document FROM patterns WHERE grp = ? AND ended IS NULL ORDER BY id"
        self.patterns = tuple(Pattern.from_json(json.loads(text)) for (text,) in store.read(query, (self.name,)))
        for number, watch in self.watches.items():
            watch.patterns = (*self.models[self.model_of[number]].watch.patterns, *self.patterns)

    def force(self, number: int) -> None:
        """Put a calibration, and the model it belongs to, in force for the group."""
        self.calibration, self.model = number, self.model_of[number]
        self.watch = self.models[self.model].watch


def watch_to_bytes(watch: Watch) -> bytes:
    """A watch as the bytes of its file."""
    return pack_artefact(*watch.document())


def watch_from_bytes(content: bytes) -> Watch:
    """Back from :func:`watch_to_bytes`."""
    return Watch.of_document(*unpack_artefact(content), path="a model in the store")


def add_calibration(
    write: sqlite3.Connection,
    group: str,
    entity: str | None,
    calibration: Calibration,
    author: str,
    reason: str,
    model: int,
    at: float,
) -> int:
    """Keep a threshold with its budget; its number."""
    values = (group, entity, json.dumps(calibration.to_json()), at, author, reason, model)
    return write.execute("INSERT INTO calibrations VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0


def load_thresholds(store: Store, group: Group, now: float) -> None:
    """Read the thresholds of a group, in force or kept; the model's own is the first."""
    own = group.models[FIRST].print
    known = store.meta(f"model:{group.name}")
    if known and known != own:
        raise InputError(
            f"The folder {str(store.folder)!r} must be used with the model it began with. Group {group.name!r} has another model now; "
            "give the old one, or move on to the new one with tisat serve upgrade."
        )
    if not store.read("SELECT 1 FROM calibrations WHERE grp = ? AND entity IS NULL", (group.name,)):
        with store.writing() as write:
            rows = [(f"model:{group.name}", own), (f"channels:{group.name}", json.dumps(group.watch.channels))]
            write.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
            add_calibration(write, group.name, None, group.watch.calibration, "tisat", "the model's own", FIRST, now)
    query = "SELECT id, entity, document, model FROM calibrations WHERE grp = ? AND model >= 0 ORDER BY id"
    for number, entity, document, model in store.read(query, (group.name,)):
        group.load_model(store, model)
        group.watch_at(number, Calibration.from_json(json.loads(document)), model)
        if entity is None:
            group.force(int(number))
    group.load_patterns(store)

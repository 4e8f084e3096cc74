"""A group of entities that share a detector and a rule; their thresholds may differ, and after a refit a model follows another."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

from tisat.alarms.calibration import Calibration
from tisat.persistence.model_file import pack_artefact, unpack_artefact
from tisat.watch.fleet import Fleet
from tisat.watch.row_intake import RowReader
from tisat.watch.watch import Watch

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
    """What a configuration says of a group, and what runs of it.

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

    def add_model(self, number: int, content: bytes) -> None:
        """Keep one more model, from its bytes."""
        if number not in self.models:
            self.models[number] = Model(number, watch_from(content))

    def watch_at(self, number: int, calibration: Calibration, model: int = FIRST) -> Watch:
        """The watch at a calibration of a model, made once."""
        if number not in self.watches:
            self.watches[number] = self.models[model].watch.at(calibration)
            self.model_of[number] = model
        return self.watches[number]

    def force(self, number: int) -> None:
        """Put a calibration, and the model it belongs to, in force for the group."""
        self.calibration, self.model = number, self.model_of[number]
        self.watch = self.models[self.model].watch


def bytes_of(watch: Watch) -> bytes:
    """A watch as the bytes of its file."""
    return pack_artefact(*watch.document())


def watch_from(content: bytes) -> Watch:
    """Back from :func:`bytes_of`."""
    return Watch.of_document(*unpack_artefact(content), path="a model in the store")

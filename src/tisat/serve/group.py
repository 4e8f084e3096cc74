"""A group of entities that share a detector and a rule; their thresholds may differ."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field

from tisat.sequential.calibration import Calibration
from tisat.watch.fleet import Fleet
from tisat.watch.rows import RowReader
from tisat.watch.watch import Watch


@dataclass
class Group:
    """What a configuration says of a group, and what runs of it.

    ``silent_after``, ``lateness`` and ``retention`` are seconds.
    """

    name: str
    watch: Watch
    match: str = "*"
    lateness: float = 0.0
    silent_after: float | None = None
    retention: float = 14 * 86400.0
    ignore_extra: bool = False
    units: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fleet = Fleet(
            self.watch, exact=True
        )  # after a restart rows are judged in other company: to the bit the same
        self.read = RowReader(self.watch.channels)
        self.known = frozenset(self.watch.channels)
        self.print = self.watch.fingerprint()
        self.watches: dict[int, Watch] = {}  # by calibration
        self.calibration = 0  # in force for entities that enrol
        if self.silent_after is None:
            self.silent_after = max(10.0 * (self.watch.period or 60.0), 60.0)

    def owns(self, entity: str) -> bool:
        """Whether a new entity of this name belongs here."""
        return fnmatch.fnmatchcase(entity, self.match)

    def watch_at(self, number: int, calibration: Calibration) -> Watch:
        """The watch at a calibration, made once."""
        if number not in self.watches:
            self.watches[number] = self.watch.at(calibration)
        return self.watches[number]

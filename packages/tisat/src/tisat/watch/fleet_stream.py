"""Lines of many machines, told apart by a column: a fleet that takes them as a monitor takes those of one."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from tisat.alarms.alarms import Tally
from tisat.alarms.calibration import Calibration
from tisat.persistence.model_file import read_artefact
from tisat.utils.types import JsonDict, JsonMap
from tisat.watch.fleet import Fleet
from tisat.watch.row_result import RowResult
from tisat.watch.watch import Watch


class FleetLines:
    """A fleet, row by row, as :func:`tisat.watch.text_stream.watch_lines` takes a monitor: machines enrol with their first row.

    Examples
    --------
    >>> import numpy as np
    >>> watch = Watch("random-guess", budget="1/250 rows", rule="threshold").fit(np.random.default_rng(0).normal(size=(5000, 1)))
    >>> fleet = FleetLines(watch)
    >>> [fleet.update((name, [0.0])).entity for name in ("a", "b", "a")], len(fleet.fleet)
    (['a', 'b', 'a'], 2)
    """

    def __init__(self, watch: Watch, fleet: Fleet | None = None) -> None:
        self.watch = watch
        self.fleet = watch.fleet(enrol=True) if fleet is None else fleet
        self._refused = 0

    @classmethod
    def load_with_note(cls, watch: Watch, path: Path, *, recalibrate: bool = False) -> tuple[FleetLines, JsonDict]:
        """The fleet of a state file, and the note kept beside it."""
        fleet = Fleet.load(watch, path, recalibrate=recalibrate)
        note = dict(read_artefact(path)[0]["note"])
        found = cls(watch, fleet)
        found._refused = int(note.pop("refused", 0))
        return found, note

    def update(self, row: tuple[str, Any], time: object = None) -> RowResult:
        """The result on ``(machine, row)``."""
        entity, values = row
        return self.fleet.judge([(entity, values, time)])[0]

    def refuse(self, reason: str, time: object = None) -> RowResult:
        """The result on a line that could not be read."""
        self._refused += 1
        return RowResult(row=-1, status="refused", time=time, reason=reason)

    def snapshot(self, path: str | Path, *, note: JsonMap | None = None) -> None:
        """Keep the state of every machine in one file."""
        self.fleet.snapshot(path, note={**(note or {}), "refused": self._refused})

    @property
    def calibration(self) -> Calibration:
        """The threshold, for each machine."""
        return self.watch.calibration

    @property
    def trouble(self) -> str | None:
        """A problem with the incoming rows; None where there is none."""
        return next((found for one in self.fleet.monitors.values() if (found := one.trouble) is not None), None)

    @property
    def wrong_pace(self) -> str | None:
        """The sentence about rows of a machine that come at another pace than in training.

        None where none do.
        """
        return next((found for one in self.fleet.monitors.values() if (found := one.wrong_pace) is not None), None)

    @property
    def tally(self) -> Tally:
        """Rows of all machines."""
        tallies = [one.tally for one in self.fleet.monitors.values()]
        sums = {one.name: sum(getattr(tally, one.name) for tally in tallies) for one in fields(Tally)}
        return Tally(**{**sums, "rows": sums["rows"] + self._refused, "refused": sums["refused"] + self._refused})

    @property
    def rows(self) -> int:
        """Rows seen."""
        return self.tally.rows

    @property
    def alarm(self) -> list[str]:
        """The machines whose alarm is on."""
        return [name for name, one in self.fleet.monitors.items() if one.alarm is not None]

    @property
    def ongoing(self) -> list[str]:
        """The machines of which an alarm is ongoing."""
        return [name for name, one in self.fleet.monitors.items() if one.ongoing]

    @property
    def silent(self) -> tuple[str, ...]:
        """Machines that are silent, and channels with their machine."""
        channels = (f"{name}: {channel}" for name, one in self.fleet.monitors.items() for channel in one.silent)
        return (*self.fleet.silent, *channels)

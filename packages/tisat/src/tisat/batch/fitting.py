"""A model of each machine, shared or its own, made or made again. A machine that cannot be fitted is a result too."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tisat import registry
from tisat.batch.likeness import likeness
from tisat.batch.machines import SUFFIX, How, Machine, RowJob, model_file
from tisat.detectors.adapting import adapt
from tisat.errors import TisatError
from tisat.io.counters import choose_counters
from tisat.series import Series
from tisat.utils.types import JsonDict, JsonMap, Options, Params
from tisat.watch import Watch

if TYPE_CHECKING:
    from tisat.detectors.base import Detector

LEDGER = "fitted.jsonl"  # in a folder of models: one line for each fit, and one before it
BEGUN = "begun"  # the trouble of a model that is not written yet


LEARN_FROM = 20  # machines of a group that its shared model is learned from


@dataclass(frozen=True)
class FitGroup(RowJob):
    """Fit the model that a group of machines shares, and write it.

    Parameters
    ----------
    detector, out, settings, how
        As of :class:`FitEach`; ``out`` is the folder of shared models.
    members : mapping from group to machines
        At most ``LEARN_FROM`` of them are read, spread over the group.
    alike : bool
        Fit none where the machines are unlike.
    """

    detector: str
    out: str
    members: Mapping[str, tuple[Machine, ...]]
    settings: Options = field(default_factory=dict)
    how: How = field(default_factory=dict)
    alike: bool = False

    def __call__(self, group: Machine) -> JsonDict:
        """Fit it; what came of it. The group goes by the name of a machine without files."""
        machines = self.members[group.name]
        notes = [
            self.detector,
            self.settings,
            self.how,
            [(one.name, one.files, one.entity, one.stamp) for one in machines],
        ]
        key = hashlib.sha256(json.dumps(notes, sort_keys=True, default=str).encode()).hexdigest()[:16]
        file = Path(self.out) / f"{group.name}-{key}{SUFFIX}"
        if file.is_file():  # written before, whole or not at all, from the same files
            return {"machine": group.name, "model": str(file), "trouble": ""}
        members = [
            machines[i] for i in sorted({round(i * (len(machines) - 1) / (LEARN_FROM - 1)) for i in range(LEARN_FROM)})
        ]
        series, troubles = [], []
        for machine in members:
            try:
                series.append(machine.read(self.how))
            except (TisatError, OSError) as error:
                troubles.append(f"{machine.name}: {error}")
        if not series:
            return self.lost(group, troubles[0])
        measured = likeness(series) if len(series) > 1 else None
        unlike = {"unlike": measured.sentence} if measured is not None and measured.unlike else {}
        if unlike and self.alike:
            return self.lost(group, unlike["unlike"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = registry.resolve(self.detector)(**self.settings)
                together = getattr(made, "fit_together", None)  # networks scale each machine by its own range
                (made.fit(series, holdout=0.0) if together is None else together(series)).save(file)
        except (TisatError, OSError) as error:
            return self.lost(group, str(error))
        return {"machine": group.name, "model": str(file), "trouble": "", **unlike}


@dataclass(frozen=True)
class FitEach(RowJob):
    """Fit a model of a machine and write it, unless the very same was written before.

    Parameters
    ----------
    detector : str
        By name.
    out : str
        The folder of models; on a cluster one that every node sees.
    settings, watch, fit, how : mappings
        Parameters of the detector, of :class:`tisat.Watch`, of its ``fit``, and how files are read.
    shared : mapping from machine to file, optional
        The model a machine shares with others (:class:`FitGroup`): it is not fitted, its threshold is found on its own rows.
    no_counters : sequence of str
        Channels that are no counters though they only grow.
    """

    detector: str
    out: str
    settings: Options = field(default_factory=dict)
    watch: Options = field(default_factory=dict)
    fit: Options = field(default_factory=dict)
    how: How = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    no_counters: Sequence[str] = ()

    def key(self, machine: Machine) -> str:
        """Tells this fit of this machine from any other: settings, files, their sizes and times."""
        identity = [
            self.detector,
            self.settings,
            self.watch,
            self.fit,
            self.how,
            machine.files,
            machine.entity,
            machine.stamp,
            self.shared.get(machine.name, ""),  # the name of its file says what it was learned from
            *([list(self.no_counters)] if self.no_counters else []),
        ]
        return hashlib.sha256(json.dumps([machine.name, *identity], sort_keys=True, default=str).encode()).hexdigest()[
            :16
        ]

    def file(self, machine: Machine) -> Path:
        """The file of a machine's model."""
        return Path(self.out) / f"{machine.name}{SUFFIX}"

    def __call__(self, machine: Machine) -> JsonDict:
        """Fit it; what came of it."""
        row = {"machine": machine.name, "trouble": ""}
        try:
            row["key"] = self.key(machine)
            series = machine.read(self.how)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the notes of the calibration say the same
                detector = registry.resolve(self.detector)(**self.settings)
                if machine.name in self.shared:
                    detector = adapt(_shared(self.shared[machine.name]), series)
                watch = Watch(detector, **(self.watch if machine.name in self.shared else self._watch_options(series)))
                watch.reading = {**self.how, **({"seen": series.seen} if series.seen else {})}
                watch = watch.calibrate() if machine.name in self.shared else watch.fit([series], **self.fit)
                watch.save(self.file(machine))
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
        notes = list(watch.calibration.notes)
        return row | {
            "model": str(self.file(machine)),
            "rows": len(series),
            "channels": watch.detector.n_channels_,
            "threshold": watch.calibration.threshold,
            "budget": watch.calibration.budget,
            "notes": notes,
        }

    def _watch_options(self, series: Series) -> Params:
        """The parameters of the watch, with the counters of this machine."""
        counters = choose_counters([series], self.watch.get("counters") or (), self.no_counters)
        return {**self.watch, "counters": counters}

    # ------------------------------------------------------------------ going on where a run has stopped

    def before(self) -> dict[str, JsonDict]:
        """The last row of each machine that was begun or fitted before, by name; lines that are not whole are none."""
        file = Path(self.out) / LEDGER
        rows: dict[str, JsonDict] = {}
        for line in file.read_bytes().split(b"\n") if file.is_file() else []:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and isinstance(row.get("key"), str) and isinstance(row.get("machine"), str):
                rows[row["machine"]] = {"trouble": "", **row}
        return rows

    def begin(self, machines: Sequence[Machine]) -> None:
        """Say in the folder's ledger which models are about to be written, so that a killed run knows its own files."""
        self._add([{"machine": one.name, "key": self.key(one), "trouble": BEGUN} for one in machines])

    def keep(self, row: JsonMap) -> None:
        """Add a row to the folder's ledger."""
        self._add([row])

    def _add(self, rows: Sequence[JsonMap]) -> None:
        with (Path(self.out) / LEDGER).open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(dict(row), sort_keys=True) + "\n" for row in rows))
            file.flush()
            os.fsync(file.fileno())


def _shared(file: str) -> Detector:
    return _read_shared(file, Path(file).stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_shared(file: str, _stamp: int) -> Detector:
    detector: Detector = Watch.load(file).detector
    return detector


@dataclass(frozen=True)
class UpdateEach(RowJob):
    """Fit the model of a machine again with its own settings.

    Parameters
    ----------
    model, out : str
        The folders of the old models and of the new ones.
    how : mapping
        How files are read; what the model remembers where it is empty.
    """

    model: str
    out: str
    how: How = field(default_factory=dict)

    def __call__(self, machine: Machine) -> JsonDict:
        """Fit it; the thresholds before and after."""
        try:
            watch = Watch.load(model_file(self.model, machine.name))
            watch.reading = {**watch.reading, **self.how}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fresh = watch.refitted(machine.read(watch.reading))
                fresh.save(Path(self.out) / f"{machine.name}{SUFFIX}")
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
        thresholds = {"before": watch.calibration.threshold, "after": fresh.calibration.threshold}
        return {"machine": machine.name, "trouble": "", **thresholds}

"""What is said of each machine by its model: alarms, or scores. A machine that cannot be judged is a result too."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms import Alarm
from tisat.alarms.suppression import Suppression, suppressed_by
from tisat.batch.machines import How, Machine, RowJob, model_file
from tisat.errors import SeriesWarning, TisatError
from tisat.persistence.model_file import write_bytes
from tisat.watch import Watch


@dataclass(frozen=True)
class MachineAlarms:
    """What happened to one machine."""

    machine: str
    alarms: tuple[Alarm, ...] = ()
    rows: int = 0
    judged: int = 0
    silent: tuple[str, ...] = ()
    trouble: str = ""  # why it could not be judged
    quiet: tuple[Alarm, ...] = ()  # alarms that are suppressed
    notes: tuple[str, ...] = ()  # what its rows lack

    def suppress(self, rules: Sequence[Suppression]) -> MachineAlarms:
        """The same with suppressed alarms set apart."""
        marked = [replace(one, suppressed=suppressed_by(one, rules)) for one in self.alarms]
        loud, quiet = (tuple(one for one in marked if bool(one.suppressed) == which) for which in (False, True))
        return replace(self, alarms=loud, quiet=quiet)

    @property
    def active(self) -> bool:
        """An alarm is on at the end."""
        return any(one.cleared is None for one in self.alarms)

    @property
    def worst(self) -> float:
        """The highest peak, in thresholds."""
        return max((one.peak / one.threshold for one in self.alarms), default=0.0)

    def urgency(self) -> tuple[Any, ...]:
        """What needs attention first is largest."""
        return (bool(self.trouble), self.active, len(self.alarms) > 0, len(self.silent), self.worst)


@lru_cache(maxsize=4)
def _watch(file: Path, asked: tuple[tuple[str, Any], ...]) -> Watch:
    """A model as its file has it, or for another budget, rule, method or period; the last few are kept."""
    watch = Watch.load(file)
    return watch.recalibrated(**dict(asked)) if asked else watch


@dataclass(frozen=True)
class AlarmEach:
    """The alarms of a machine, by one model for all or by its own in a folder.

    Parameters
    ----------
    model : str
        A file, or a folder of ``NAME.tisat``; on a cluster one that every node sees.
    options : mapping
        Of :meth:`tisat.Watch.alarms`.
    asked : mapping
        Another budget, rule, method or period than the model was made for: of :meth:`tisat.Watch.recalibrated`.
    how : mapping
        How files are read; what the model remembers where it is empty.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    how: How = field(default_factory=dict)

    def __call__(self, machine: Machine) -> MachineAlarms:
        """Its alarms; a machine that cannot be judged is an outcome too."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", SeriesWarning)
                watch = _watch(model_file(self.model, machine.name), tuple(self.asked.items()))
                series = machine.read({**watch.reading, **self.how})
                found = watch.alarms(series, **self.options)
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
        silent = tuple(one.channel for one in found.silences if one.until is None)
        return MachineAlarms(
            machine.name,
            tuple(found),
            found.tally.rows,
            found.tally.judged,
            silent,
            notes=tuple(str(one.message) for one in caught),
        )

    def lost(self, machine: Machine, why: str) -> MachineAlarms:
        """A machine that was not judged."""
        return MachineAlarms(machine.name, trouble=why)


@dataclass(frozen=True)
class ScoreEach(RowJob):
    """Write the scores of a machine, one for each row.

    Parameters
    ----------
    model : str
        A file, or a folder of ``NAME.tisat``.
    out : str
        A folder, for one csv file each; with ``whole`` the file itself, csv or parquet.
    points : bool
        Write what the score is made of, too.
    ignore_extra : bool
        Leave out channels the model does not know.
    how : mapping
        How files are read; what the model remembers where it is empty.
    """

    model: str
    out: str
    whole: bool = False
    points: bool = False
    ignore_extra: bool = False
    how: How = field(default_factory=dict)

    def __call__(self, machine: Machine) -> dict[str, Any]:
        """Score it; how many rows have a score, and how many of those are high."""
        try:
            watch = Watch.load(model_file(self.model, machine.name))
            detector = watch.detector
            read = machine.read({**watch.reading, **self.how})
            series = detector.check_series(read, ignore_extra=self.ignore_extra)
            found = detector.points(series)
            scores = detector.aggregate(found)
            out = Path(self.out) if self.whole else Path(self.out) / f"{Path(machine.name).name}.csv"
            _write_scores(out, series, scores, _named(detector, found) if self.points else {})
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
        level = detector.normal_level()
        return {
            "machine": machine.name,
            "trouble": "",
            "scores": str(out),
            "rows": len(series),
            "scored": int(np.isfinite(scores).sum()),
            "normal_level": level,
            "over": int((np.nan_to_num(scores, nan=-np.inf) > level).sum()),
            "notes": list(read.notes),
        }


def _named(detector: Any, points: Any) -> dict[str, Any]:
    names = detector.channels_ if detector.points_are_channels else [str(i) for i in range(points.shape[1])]
    return {f"point {name}": points[:, i] for i, name in enumerate(names)}


def _write_scores(out: Path, series: Any, scores: Any, points: Mapping[str, Any]) -> None:
    import pyarrow as pa

    columns: dict[str, Any] = {} if series.timestamps is None else {"timestamp": series.timestamps}
    columns["score"] = pa.array(scores, from_pandas=True)
    if series.labels is not None:
        columns["is_anomaly"] = series.labels.astype(np.int8)
    table = pa.table(columns | {name: pa.array(values, from_pandas=True) for name, values in points.items()})
    buffer = io.BytesIO()
    if out.suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, buffer)
    else:
        from pyarrow import csv

        csv.write_csv(table, buffer)
    write_bytes(out, buffer.getvalue())

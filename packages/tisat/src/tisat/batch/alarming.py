"""Raise the alarms, or write the scores, of each machine by its model."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms import Alarm, Alarms
from tisat.alarms.plot import contributing
from tisat.alarms.suppression import Suppression, Suppressor
from tisat.batch.machines import How, Machine, RowJob, model_file
from tisat.errors import SeriesWarning, TisatError
from tisat.persistence.model_file import write_bytes
from tisat.series import Series
from tisat.utils.types import JsonDict, JsonMap, Options, Params
from tisat.watch import Watch
from tisat.watch.gap_notes import gaps_note
from tisat.watch.protocols import Array, Scorer, check_series

DRAWN, STRETCHES = 2, 300  # channels of a machine on a page, and stretches of each


@dataclass(frozen=True)
class MachineAlarms:
    """The alarms of one machine, or why it could not be scored."""

    machine: str
    alarms: tuple[Alarm, ...] = ()
    rows: int = 0
    judged: int = 0
    silent: tuple[str, ...] = ()
    trouble: str = ""  # why it could not be judged
    quiet: tuple[Alarm, ...] = ()  # alarms that are suppressed
    notes: tuple[str, ...] = ()  # what its rows lack
    # raise and end of each alarm: seconds since 1970, or rows without dates
    places: tuple[tuple[float, float], ...] = ()
    first: float = 0.0  # the place of the first row, and of the last
    last: float = 0.0
    step: float = 1.0  # between two rows
    clock: bool = False  # places are seconds
    # channel, least and greatest of each stretch
    curves: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...] = ()

    def suppress(self, rules: Sequence[Suppression]) -> MachineAlarms:
        """The same with suppressed alarms set apart."""
        marked = Suppressor(rules).run(self.alarms)
        loud, quiet = (tuple(one for one in marked if bool(one.suppressed) == which) for which in (False, True))
        places = tuple(place for place, one in zip(self.places, marked, strict=False) if not one.suppressed)
        return replace(self, alarms=loud, quiet=quiet, places=places)

    def to_json(self) -> JsonDict:
        """Plain values, without what is only drawn."""
        told = {name: getattr(self, name) for name in ("machine", "rows", "judged", "silent", "trouble", "notes")}
        return told | {kind: [one.to_json() for one in getattr(self, kind)] for kind in ("alarms", "quiet")}

    @property
    def active(self) -> bool:
        """An alarm is on at the end."""
        return any(one.cleared is None for one in self.alarms)

    @property
    def worst(self) -> float:
        """The highest peak, in thresholds."""
        return max((one.peak / one.threshold for one in self.alarms), default=0.0)

    def urgency(self) -> tuple[bool, bool, bool, int, float]:
        """Sort key: machines that need attention first are largest."""
        return (bool(self.trouble), self.active, len(self.alarms) > 0, len(self.silent), self.worst)


@lru_cache(maxsize=4)
def _watch(file: Path, asked: tuple[tuple[str, Any], ...]) -> Watch:
    """A model as its file has it, or for another budget, rule, method or period; the last few are kept."""
    watch = Watch.load(file)
    said: Params = {name: dict(value) if isinstance(value, tuple) else value for name, value in asked}
    return watch.recalibrated(**said) if said else watch


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
    drawn : bool
        Give places on an axis and the contributing channels, thinned, for a page.
    """

    model: str
    options: Options = field(default_factory=dict)
    asked: Options = field(default_factory=dict)
    how: How = field(default_factory=dict)
    drawn: bool = False

    def __call__(self, machine: Machine) -> MachineAlarms:
        """Its alarms; a machine that cannot be scored is an outcome too."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", SeriesWarning)
                settings = tuple(
                    (name, tuple(value.items()) if isinstance(value, Mapping) else value)
                    for name, value in self.asked.items()
                )
                watch = _watch(model_file(self.model, machine.name), settings)
                series = machine.read({**watch.reading, **self.how})
                alarms = watch.alarms(series, **self.options)
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
        silent = tuple(one.channel for one in alarms.silences if one.until is None)
        gaps = gaps_note(series, alarms.scores, period=watch.period)
        notes = (gaps, *(str(one.message) for one in caught), alarms.calibration.advice)
        judged = MachineAlarms(
            machine.name, tuple(alarms), alarms.tally.rows, alarms.tally.judged, silent,
            notes=tuple(filter(None, notes)),
        )  # fmt: skip
        return replace(judged, **_places(alarms, series), curves=_curves(alarms, series) if self.drawn else ())

    def lost(self, machine: Machine, why: str) -> MachineAlarms:
        """The result of a machine that was not scored."""
        return MachineAlarms(machine.name, trouble=why)


def _places(found: Alarms, series: Series) -> JsonDict:
    """Places of the alarms, and of the first and last row, on an axis."""
    clock = series.timestamps is not None and series.timestamps.dtype.kind == "M"
    axis = np.arange(len(series), dtype=np.float64) if series.seconds is None else np.asarray(series.seconds)
    if clock and series.timestamps is not None:
        axis = axis + float(series.timestamps[0].astype("datetime64[ns]").astype(np.int64)) / 1e9
    end = len(series) - 1
    places = tuple(
        (float(axis[one.raised]), float(axis[end if one.cleared is None else min(one.cleared, end)])) for one in found
    )
    step = 1.0 if series.period is None else series.period
    return {"places": places, "first": float(axis[0]), "last": float(axis[-1]), "step": step, "clock": clock}


def _curves(found: Alarms, series: Series) -> tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]:
    """The channels that contribute most, as bands."""
    curves = []
    edges = np.unique(np.linspace(0, len(series), min(STRETCHES, len(series)) + 1).astype(int))
    for channel in contributing(found, series, DRAWN) if len(found) else ():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stretch without values has neither
            stretches = [series.values[low:high, channel] for low, high in pairwise(edges)]
            lows, highs = ([float(take(one)) for one in stretches] for take in (np.nanmin, np.nanmax))
        curves.append((series.channels[channel], tuple(lows), tuple(highs)))
    return tuple(curves)


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
    statistic, centred : bool
        Write what :meth:`tisat.Watch.score` gives instead, and that centred.
    train : str, optional
        With ``centred``: a file of normal rows, whose windows are compared too.
    """

    model: str
    out: str
    whole: bool = False
    points: bool = False
    ignore_extra: bool = False
    how: How = field(default_factory=dict)
    statistic: bool = False
    centred: bool = False
    train: str | None = None

    def __call__(self, machine: Machine) -> JsonDict:
        """Score it; how many rows have a score, and how many of those are high."""
        try:
            watch = Watch.load(model_file(self.model, machine.name))
            detector = watch.detector
            read = machine.read({**watch.reading, **self.how})
            series = check_series(detector, read, ignore_extra=self.ignore_extra)
            points = detector.points(series)
            scores, level = detector.aggregate(points), detector.normal_level()
            if self.statistic or self.centred:
                normal = (
                    None
                    if self.train is None
                    else check_series(detector, watch.read(self.train, **self.how)).values.astype(np.float64)
                )
                scores, level = watch.score(series, centred=self.centred, train=normal), watch.calibration.threshold
            out = Path(self.out) if self.whole else Path(self.out) / f"{Path(machine.name).name}.csv"
            _write_scores(out, series, scores, _named(detector, points) if self.points else {})
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
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


def _named(detector: Scorer, points: Array) -> JsonDict:
    names = detector.channels_ if detector.traits.points_are_channels else [str(i) for i in range(points.shape[1])]
    return {f"point {name}": points[:, i] for i, name in enumerate(names)}


def _write_scores(out: Path, series: Series, scores: Array, points: JsonMap) -> None:
    import pyarrow as pa

    columns: JsonDict = {} if series.timestamps is None else {"timestamp": series.timestamps}
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

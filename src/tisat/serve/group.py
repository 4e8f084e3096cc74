"""A group of entities that share a detector and a rule; their thresholds may differ."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field

import numpy as np

from tisat.sequential.calibration import Calibration
from tisat.watch.batch import BATCH
from tisat.watch.contract import Array
from tisat.watch.fleet import Fleet
from tisat.watch.rows import RowReader
from tisat.watch.watch import Watch

PROBE = 256  # windows the detector is asked about, alone and together


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
        self.fleet = Fleet(self.watch)
        self.read = RowReader(self.watch.channels)
        self.known = frozenset(self.watch.channels)
        self.batch = batch_of(self.watch)
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


def batch_of(watch: Watch) -> int:
    """How many windows the detector may be asked about at once so that no answer depends on its company, to the last bit.

    A restart judges rows again in other company than before. Sums over channels by matrix multiplication may differ in
    the last bit with the number of rows; a detector that does so is asked about one window at a time.
    """
    stream = watch.detector.stream()
    if not hasattr(stream, "window") or stream.one_at_a_time:
        return BATCH  # it is asked one at a time anyway
    rng = np.random.default_rng(0)
    median, spread = watch.detector.usual_
    rows = median + np.where(np.isfinite(spread), spread, 1.0) * rng.normal(size=(PROBE, len(median)))
    shape = None
    for row in np.concatenate([rows] * 40)[:10_000]:
        window = stream.window(watch.detector.bounded(row))
        if window is not None:
            shape = np.asarray(window)
            break
    if shape is None:
        return 1
    windows = (
        shape + spread * 0.3 * rng.normal(size=(PROBE, *shape.shape)) if shape.shape[-1:] == spread.shape else None
    )
    if windows is None:
        return 1
    alone = np.concatenate([_points(watch, windows[i : i + 1]) for i in range(PROBE)])
    for size in (2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 100, PROBE):
        together = np.concatenate([_points(watch, windows[i : i + size]) for i in range(0, PROBE, size)])
        if together.tobytes() != alone.tobytes():
            return 1
    return BATCH


def _points(watch: Watch, windows: Array) -> Array:
    answers = np.asarray(watch.detector.answers(windows))
    scored = watch.scored(answers) if answers.ndim == 2 and answers.shape[1] == watch.detector.n_points_ else None
    flat = answers.reshape(len(windows), -1)
    return flat if scored is None else np.concatenate([flat, scored.scores[:, None], scored.views], axis=1)

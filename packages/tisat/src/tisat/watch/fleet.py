"""Many entities, one watch: their rows go through the detector in one pass, and each entity has results of its own.

Each entity has a monitor of its own; a fleet gathers the windows that are due and hands them to the detector in one batch.
Its results are those of the single monitors, to the bit; but for networks, which are asked about all windows in one
pass unless ``exact=True`` says otherwise: there sums may differ in their last bits.
Entities enrol and retire at any time, and the state of each can be kept by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms.rules import Scored
from tisat.errors import ArtefactError, InputError
from tisat.persistence.model_file import read_artefact, write_artefact
from tisat.utils.stage import join_state, split_state
from tisat.utils.types import Arrays, JsonDict, JsonMap
from tisat.watch.alarm_tracker import Taken
from tisat.watch.liveness import Heard, RollCall
from tisat.watch.monitor import Monitor
from tisat.watch.protocols import Array
from tisat.watch.row_result import RowResult
from tisat.watch.state_files import whole_state
from tisat.watch.watch import Watch

BATCH = 1024  # windows the detector is asked about at once


class Fleet:
    """Monitors of many entities that share a watch.

    Parameters
    ----------
    watch : Watch
        Fitted on normal data of all entities; its budget is that of each entity.
    entities : iterable of str
        Those that are there from the start.
    enrol : bool
        Take in an entity at its first row instead of refusing it.
    exact : bool
        True: results are to the bit those of single monitors. False: a detector is asked about all windows in one pass,
        which is faster and may differ in last bits.
    roll : bool
        Say, with the result at which it is noticed, that an entity is silent while the others go on
        (:mod:`tisat.watch.liveness`).

    Examples
    --------
    >>> import numpy as np
    >>> watch = Watch("random-guess", budget="1/250 rows", rule="threshold").fit(np.random.default_rng(0).normal(size=(5000, 1)))
    >>> fleet = watch.fleet(["a", "b"])
    >>> sorted(fleet.update({"a": [0.0], "b": [0.0]}))
    ['a', 'b']
    >>> [verdict.status for verdict in fleet.judge([("a", [0.0], None), ("a", ["x"], None), ("c", [0.0], None)])]
    ['ok', 'refused', 'refused']
    """

    def __init__(
        self,
        watch: Watch,
        *,
        entities: Iterable[str] = (),
        enrol: bool = False,
        exact: bool = False,
        roll: bool = True,
    ) -> None:
        self.watch = watch
        self.exact = exact
        self.enrols = enrol
        self._roll = RollCall() if roll else None
        self.monitors: dict[str, Monitor] = {}
        for name in entities:
            self.enrol(name)

    def __repr__(self) -> str:
        return f"Fleet({self.watch!r}, {len(self)} entities)"

    def __len__(self) -> int:
        return len(self.monitors)

    def __iter__(self) -> Iterator[str]:
        return iter(self.monitors)

    def __contains__(self, entity: object) -> bool:
        return entity in self.monitors

    def __getitem__(self, entity: str) -> Monitor:
        if entity not in self.monitors:
            raise InputError(f"The fleet must know the entity. Got {entity!r} instead.")
        return self.monitors[entity]

    def enrol(self, entity: str, state: bytes | None = None) -> Monitor:
        """Begin to watch an entity, afresh or from what :meth:`state_of` kept.

        From now on rows of it are expected.
        """
        monitor = self._enrol(entity, state)
        if self._roll is not None:
            self._roll.enrol(entity)
        return monitor

    def _enrol(self, entity: str, state: bytes | None = None) -> Monitor:
        if not isinstance(entity, str) or entity in self.monitors:
            raise InputError(f"The entities of a fleet must be distinct names. Got {entity!r} again or not a name.")
        monitor = Monitor(self.watch, name=entity) if state is None else Monitor.load(self.watch, state)
        if monitor.name != entity:
            raise ArtefactError(
                f"The state of entity {entity!r} must be its own. Got that of {monitor.name!r} instead."
            )
        self.monitors[entity] = monitor
        return monitor

    def retire(self, entity: str) -> bytes:
        """Stop watching an entity; what would be needed to go on."""
        state = self.state_of(entity)
        del self.monitors[entity]
        if self._roll is not None:
            self._roll.forget(entity)
        return state

    @property
    def silent(self) -> tuple[str, ...]:
        """Entities of which no row comes while the others go on."""
        return () if self._roll is None else tuple(self._roll.silent)

    def state_of(self, entity: str) -> bytes:
        """The state of one entity as bytes."""
        return self[entity].to_bytes()

    # ------------------------------------------------------------------ rows in, results out

    def judge(self, rows: Iterable[tuple[object, ...]]) -> list[RowResult]:
        """The results on rows ``(entity, row, time)``, any number of each entity, in order.

        A fourth value of False says that the alarm rule is to learn nothing from the row (see :meth:`Monitor.update`).

        A bad row, a bad time or an unknown entity is that row's outcome and touches nothing else.
        """
        results: list[RowResult | None] = []
        rows_known: list[tuple[object, ...]] = []
        for entity, row, time, *more in rows:
            if entity not in self.monitors:
                if not (self.enrols and isinstance(entity, str)):
                    reason = f"The fleet must know the entity of every row. Got {entity!r} instead."
                    results.append(RowResult(row=-1, status="refused", time=time, reason=reason, entity=str(entity)))
                    continue
                self._enrol(entity)
            rows_known.append((self.monitors[entity], row, time, *more))
            results.append(None)
        judged = iter(judge_all(rows_known, exact=self.exact, roll=self._roll))
        return [next(judged) if verdict is None else verdict for verdict in results]

    def update(self, rows: JsonMap, times: object = None) -> dict[str, RowResult]:
        """The results on one row of each of some entities.

        Parameters
        ----------
        rows : mapping from entity to row
            As :meth:`tisat.watch.Monitor.update` takes them; entities without a row are left alone.
        times : date or number of seconds, or mapping from entity to one, optional
        """
        moments = map(times.get, rows) if isinstance(times, Mapping) else repeat(times, len(rows))
        verdicts = self.judge([(name, row, time) for (name, row), time in zip(rows.items(), moments, strict=True)])
        return dict(zip(rows, verdicts, strict=True))

    # ------------------------------------------------------------------ going on after a crash

    def snapshot(self, path: str | Path, *, note: JsonMap | None = None) -> None:
        """Write what is needed to go on to one file, whole or not at all.

        ``note`` is kept with it.
        """
        documents: JsonDict = {}
        tensors: Arrays = {}
        for number, (name, monitor) in enumerate(self.monitors.items()):
            documents[name], arrays = split_state(monitor.state())
            tensors |= {f"{number}.{key}": array for key, array in arrays.items()}
        header = {
            "kind": "fleet",
            "watch": self.watch.fingerprint(),
            "entities": list(self.monitors),
            "enrols": self.enrols,
            "exact": self.exact,
            "state": documents,
            "roll": None if self._roll is None else self._roll.state(),
            "note": dict(note or {}),
        }
        write_artefact(path, header, tensors)

    @classmethod
    def load(cls, watch: Watch, path: str | Path, *, recalibrate: bool = False) -> Fleet:
        """The fleet that :meth:`snapshot` wrote; it goes on with identical results."""
        header, tensors = read_artefact(path)
        with whole_state(header, watch, str(path), kind="fleet"):
            roll = header.get("roll")
            fleet = cls(
                watch, entities=header["entities"], enrol=bool(header["enrols"]), exact=bool(header["exact"]), roll=roll is not None
            )  # fmt: skip
            if fleet._roll is not None and roll is not None:
                fleet._roll.restore(roll)
            mine: dict[str, Arrays] = {}
            for key, array in tensors.items():
                number, _, name = key.partition(".")
                mine.setdefault(number, {})[name] = array
            for place, (name, monitor) in enumerate(fleet.monitors.items()):
                monitor.restore(join_state(header["state"][name], mine[str(place)]), recalibrate=recalibrate)
            return fleet


def judge_all(items: Sequence[tuple[Any, ...]], *, exact: bool = True, roll: RollCall | None = None) -> list[RowResult]:
    """The results on rows ``(monitor, row, time)`` of monitors of one detector and rule; it is asked about many at once.

    A fourth value of False: the rule learns nothing from the row.

    Their thresholds may differ. A row that cannot be read is that row's outcome (``refused``, with the reason) and
    touches nothing else. Unless ``exact``, a network is asked about all windows in one pass, whose sums may differ in their
    last bits. ``roll`` is told of every row that is taken in, and what it says of other entities goes with the row's result.
    """
    verdicts: list[RowResult] = []
    wave: list[tuple[Monitor, Taken, Array | None, Array | None]] = []  # monitor, row, point and deviations where known
    windows, asked = np.empty((0, 0, 0)), 0  # room for a wave, and how many of its windows are to be asked about
    waiting: set[int] = set()  # monitors with a row in the wave

    def flush() -> None:
        nonlocal asked
        if not wave:
            return
        first = wave[0][0]
        answers = iter(first.stream.answers(windows[:asked], exact=exact) if asked else ())
        points, beside = [], []
        for monitor, _, point, deviations in wave:
            points.append(monitor.stream.point(next(answers)) if point is None else point)
            beside.append(monitor.stream.deviations if point is None else deviations)
        scored = first.aggregation.run(np.stack(points))
        for i, (monitor, admitted, _, _) in enumerate(wave):
            row = Scored(scored.points[i : i + 1], scored.scores[i : i + 1], scored.views[i : i + 1])
            verdicts.append(monitor.judge(admitted, row, beside[i]))
        wave.clear()
        asked = 0
        waiting.clear()

    for monitor, row, time, *learn in items:
        if len(wave) >= BATCH or (id(monitor) in waiting and monitor.one_at_a_time):
            flush()
        try:
            admitted = monitor.take(row, time)
            if learn and not learn[0]:
                admitted = admitted._replace(learn=False)
        except InputError as error:
            flush()  # so that results stay in order
            verdicts.append(monitor.refuse(str(error), time))
            continue
        if roll is not None and admitted.row >= 0:
            told = roll.step(Heard(monitor.name, monitor.time_step, admitted.row, admitted.stamp))
            admitted = admitted._replace(silences=admitted.silences + told) if told else admitted
        point, window = monitor.gather(admitted)
        deviations = None
        if window is None and admitted.filled is not None:
            deviations = getattr(monitor.stream, "deviations", None)
        if window is not None:
            if not len(windows):
                windows = np.empty((min(BATCH, len(items)), *window.shape))
            windows[asked] = window
            asked += 1
        waiting.add(id(monitor))
        wave.append((monitor, admitted, point, deviations))
    flush()
    return verdicts

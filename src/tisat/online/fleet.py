"""Many entities, one detector: their rows are scored together, in one pass of the network, and judged apart.

Each entity has a monitor of its own; a fleet only gathers the windows that are due and hands them to the detector in one
batch. Its verdicts are those of the single monitors, up to the rounding of a network's arithmetic in batches of another
size. It does not do anything a monitor does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.artefact import read_artefact, write_artefact
from tisat.errors import InputError
from tisat.online.monitor import Monitor, Verdict
from tisat.online.plan import (
    Array,
    DetectorLike,
    Plan,
    check_fingerprint,
    fingerprint,
    plan_alarms,
    plan_from_json,
    plan_to_json,
)


class Fleet:
    """Monitors of many entities that share a detector and a threshold.

    Parameters
    ----------
    detector : Detector
        Fitted on nominal data of all entities.
    entities : iterable of str
    false_alarms : str, float, timedelta or Plan
        The budget of each entity; divide by their number for a budget of the whole.
    **options
        Of :func:`tisat.online.plan.plan_alarms`.

    Examples
    --------
    >>> import tisat
    >>> detector = tisat.registry.resolve("random-guess")().fit(np.zeros((5000, 1)))
    >>> fleet = Fleet(detector, entities=["a", "b"], false_alarms="1/250 instants", rule="threshold")
    >>> verdicts = fleet.update({"a": [0.0], "b": [0.0]})
    >>> sorted(verdicts)
    ['a', 'b']
    """

    def __init__(self, detector: DetectorLike, *, entities: Iterable[str], false_alarms: Any, **options: Any) -> None:
        names = list(entities)
        if not names or len(set(names)) != len(names):
            raise InputError(f"The entities of a Fleet must be distinct names, at least one. Got {names!r} instead.")
        self.detector = detector
        self.plan = (
            false_alarms
            if isinstance(false_alarms, Plan)
            else plan_alarms(detector, false_alarms=false_alarms, **options)
        )
        self.monitors = {name: Monitor(detector, false_alarms=self.plan, name=name) for name in names}

    def __repr__(self) -> str:
        return f"Fleet({self.detector!r}, {len(self.monitors)} entities, false_alarms={self.plan.calibration.budget!r})"

    def update(self, rows: Mapping[str, Any], times: Any = None) -> dict[str, Verdict]:
        """The verdicts on one row of each of some entities.

        Parameters
        ----------
        rows : mapping from entity to row
            As :meth:`tisat.online.monitor.Monitor.update` takes them; entities without a row are left alone.
        times : date or number of seconds, or mapping from entity to one, optional
        """
        unknown = [name for name in rows if name not in self.monitors]
        if unknown:
            raise InputError(f"The fleet must know the entity of every row. Got {unknown[0]!r} instead.")
        # Every row is checked before any is taken, so that a bad one leaves the whole fleet as it was.
        checked = {name: self.monitors[name].check_row(row) for name, row in rows.items()}
        moments = {name: times.get(name) if isinstance(times, Mapping) else times for name in rows}
        due: list[str] = []
        windows: list[Array] = []
        points: dict[str, Array] = {}
        status: dict[str, str] = {}
        for name, values in checked.items():
            monitor = self.monitors[name]
            status[name], filled = monitor.take(values, moments[name])
            if filled is None:
                continue
            window = monitor.window(filled)
            if isinstance(window, str):
                points[name] = monitor.push(filled)  # a detector without windows of bounded length: one at a time
            elif window is None:
                points[name] = monitor.no_point
            else:
                due.append(name)
                windows.append(window)
        if due:
            answers = self.detector._answers(np.stack(windows))
            points |= {name: self.monitors[name].point(answer) for name, answer in zip(due, answers, strict=True)}
        return {name: self.monitors[name].judge(points.get(name), status[name], moments[name]) for name in rows}

    def snapshot(self, path: str | Path, *, note: Mapping[str, Any] | None = None) -> None:
        """Write what is needed to go on to one file, whole or not at all; ``note`` is kept with it."""
        documents: dict[str, Any] = {}
        tensors: dict[str, npt.NDArray[Any]] = {}
        for number, (name, monitor) in enumerate(self.monitors.items()):
            documents[name], arrays = monitor.state()
            tensors |= {f"{number}.{key}": array for key, array in arrays.items()}
        header = {
            "kind": "fleet",
            "detector": fingerprint(self.detector),
            "plan": plan_to_json(self.plan),
            "entities": list(self.monitors),
            "state": documents,
            "note": dict(note or {}),
        }
        write_artefact(path, header, tensors)

    @classmethod
    def restore(cls, detector: DetectorLike, path: str | Path) -> Fleet:
        """The fleet that :meth:`snapshot` wrote; it goes on with identical verdicts."""
        header, tensors = read_artefact(path)
        check_fingerprint(header, detector, path, kind="fleet")
        fleet = cls(detector, entities=header["entities"], false_alarms=plan_from_json(header["plan"], detector))
        for number, (name, monitor) in enumerate(fleet.monitors.items()):
            own = f"{number}."
            arrays = {key.removeprefix(own): array for key, array in tensors.items() if key.startswith(own)}
            monitor.set_state(header["state"][name], arrays)
        return fleet

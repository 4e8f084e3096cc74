"""A fleet to look at: thirty generated pumps, one row a second each, with faults that arrive while one watches. It needs no files."""

from __future__ import annotations

import time as clocks
import warnings

import numpy as np

from tisat import registry
from tisat.errors import TisatError
from tisat.series import Series
from tisat.utils.types import Array
from tisat.watch import Watch
from tisat_serve.structs import Row
from tisat_serve.worker import ThreadedPart

CHANNELS = ("temperature", "vibration", "flow", "pressure", "current", "speed")
LEVEL = np.array([58.0, 1.6, 120.0, 4.2, 31.0, 1480.0])
SWING = np.array([2.0, 0.12, 6.0, 0.25, 1.5, 8.0])
NOISE = np.array([0.25, 0.03, 1.0, 0.04, 0.3, 1.5])
PUMPS = 30
PAST = 900  # seconds of history made before the first live row
TRAINING = 24_000  # rows the model is fitted on
BUDGET = "1/2 hours"
FIRST, NEXT = 8.0, 18.0  # seconds to the first live fault, and between two


class Pump:
    """One pump: a daily load, a slow wander, noise, and faults."""

    def __init__(self, number: int, seed: int = 0) -> None:
        self.name = f"pump-{number:02d}"
        self._rng = np.random.default_rng((seed, number))
        self._phase = self._rng.uniform(0, 2 * np.pi, 2)
        self._wander = np.zeros(len(CHANNELS))
        self._fault: tuple[str, int, float, float] | None = None  # kind, channel, begin, end
        self._stuck: Array | None = None

    def row(self, at: float) -> Array:
        """Its values at a time."""
        load = 0.7 * np.sin(2 * np.pi * at / 600.0 + self._phase[0]) + 0.3 * np.sin(
            2 * np.pi * at / 97.0 + self._phase[1]
        )
        self._wander = 0.98 * self._wander + 0.05 * self._rng.normal(size=len(CHANNELS))
        values: Array = LEVEL + SWING * (load + self._wander) + NOISE * self._rng.normal(size=len(CHANNELS))
        if self._fault is not None:
            kind, channel, begin, end = self._fault
            if begin <= at < end:
                values = self._broken(values, kind, channel, at - begin)
            elif at >= end:
                self._fault = self._stuck = None
        return values

    def _broken(self, values: Array, kind: str, channel: int, since: float) -> Array:
        faulty = values.copy()
        if kind == "level":
            faulty[channel] += 9.0 * SWING[channel]
            faulty[(channel + 1) % len(faulty)] += 3.0 * SWING[(channel + 1) % len(faulty)]
        elif kind == "drift":
            faulty[channel] += 0.35 * since * SWING[channel]
        elif kind == "shaking":
            faulty[channel] += 5.0 * SWING[channel] * self._rng.normal()
        else:
            self._stuck = values.copy() if self._stuck is None else self._stuck
            faulty[channel] = self._stuck[channel] + 6.0 * SWING[channel]
        return faulty

    def breaks(self, kind: str, channel: int, begin: float, seconds: float) -> None:
        """A fault from ``begin`` on."""
        self._fault, self._stuck = (kind, channel, begin, begin + seconds), None

    @property
    def broken(self) -> bool:
        """Whether a fault is planned or under way."""
        return self._fault is not None


KINDS = ("level", "drift", "shaking", "stuck")


def demo_watch(seed: int = 0) -> Watch:
    """A watch over pumps like these, fitted on rows without faults."""
    pumps = [Pump(1000 + k, seed) for k in range(4)]
    rows_each = TRAINING // len(pumps)
    start = np.datetime64("2026-01-01T00:00:00")
    times = start + np.arange(rows_each).astype("timedelta64[s]")
    series = [
        Series(
            np.array([pump.row(float(t)) for t in range(rows_each)]),
            timestamps=times,
            channels=CHANNELS,
            name=pump.name,
        )
        for pump in pumps
    ]
    detector = registry.resolve("linear-last")(window=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Watch(detector, budget=BUDGET).fit(series)


class DemoSource(ThreadedPart):
    """Rows of the pumps: first the past, as fast as it goes, then one a second."""

    name = "demo"

    def __init__(self, *, pumps: int = PUMPS, past: int = PAST, seed: int = 0, pace: float = 1.0) -> None:
        super().__init__()
        self.pumps = [Pump(number, seed) for number in range(1, pumps + 1)]
        self.past, self.pace = past, pace
        self._rng = np.random.default_rng(seed)
        self.rows = self.faults = 0

    def report(self) -> dict[str, float]:
        """Rows made and faults begun."""
        return {"rows": self.rows, "faults": self.faults}

    def _break(self, at: float) -> None:
        whole = [pump for pump in self.pumps if not pump.broken]
        if whole:
            pump = whole[int(self._rng.integers(len(whole)))]
            kind = KINDS[int(self._rng.integers(len(KINDS)))]
            pump.breaks(kind, int(self._rng.integers(len(CHANNELS))), at, float(self._rng.uniform(25, 60)))
            self.faults += 1

    def _send(self, moments: list[float]) -> None:
        rows = [Row(pump.name, pump.row(at).tolist(), at) for at in moments for pump in self.pumps]
        self.rows += len(rows)
        self._service.ingest(rows)

    def _run(self) -> None:

        now = float(int(clocks.time()))
        moments = [now - self.past + k for k in range(self.past)]
        fault = moments[0] + 120.0 if moments else now
        for start in range(0, len(moments), 30):
            part = moments[start : start + 30]
            if part[0] >= fault:
                self._break(part[0])
                fault += 150.0
            if self._end.is_set():
                return
            self._send(part)
        at, begun = now, clocks.monotonic()
        fault = now + FIRST
        while not self._end.is_set():
            try:
                latest = now + (clocks.monotonic() - begun) / self.pace
                while at <= latest and not self._end.is_set():
                    if at >= fault:
                        self._break(at)
                        fault = at + NEXT
                    self._send([at])
                    at += 1.0
            except TisatError:
                clocks.sleep(0.5)  # busy, or the disk is full: the next rows come anyway
            self._end.wait(0.2 * self.pace)

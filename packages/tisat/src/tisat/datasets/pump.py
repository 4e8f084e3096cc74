"""Generate a pump: five channels and three gross faults.

Everything follows from one seed. This module does not know detectors or metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.datasets.injected_faults import DAY, WEEK, Fault, Plant
from tisat.errors import ParameterError
from tisat.events import labels_from_events
from tisat.series import Series
from tisat.utils.random import Seed, generator
from tisat.utils.validation import check_integer

PUMP = {  # channel -> level, daily swing, minute-to-minute noise
    "flow": (52.0, 4.0, 0.6),
    "pressure": (4.2, 0.25, 0.03),
    "bearing_temperature": (58.0, 3.0, 0.25),
    "vibration": (1.5, 0.1, 0.08),
    "motor_current": (11.5, 0.8, 0.12),
}
PUMP_FAULTS = {  # kind -> channel, first minute of the test, length
    "vibration doubled": ("vibration", 700, 60),
    "temperature ramp": ("bearing_temperature", DAY, 200),
    "flow halved": ("flow", DAY + 860, 60),
}


def make_pump(
    *,
    n_train: int = WEEK,
    n_test: int = 2 * DAY,
    valve: bool = False,
    faults: Sequence[str] = tuple(PUMP_FAULTS),
    random_state: Seed = 0,
) -> Plant:
    """A pump as an engineer exports it: five channels, a row a minute, white noise around a daily sine.

    A normal week and two days with three gross faults: vibration doubled for an hour, the bearing 12 C warmer over 200
    minutes, flow halved for an hour. Whatever a detector is, these should be found.

    Parameters
    ----------
    n_train, n_test : int
        Minutes.
    valve : bool
        A sixth channel that is 0 or 1: closed for three hours and open for 40 minutes on average, like any on/off channel.
    faults : sequence of str
        Among ``PUMP_FAULTS``: vibration doubled, temperature ramp, flow halved.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Plant
        Training series, test series and faults.

    Examples
    --------
    >>> pump = make_pump(valve=True)
    >>> pump.test
    Series('pump', 2880 rows x 6 channels, 3 events)
    >>> [(fault.kind, fault.start, fault.stop) for fault in pump.faults][0]
    ('vibration doubled', 700, 760)
    """
    check_integer(n_train, "n_train", "make_pump", minimum=2)
    check_integer(n_test, "n_test", "make_pump", minimum=2)
    fault_makers = [PUMP_FAULTS[kind] for kind in faults if kind in PUMP_FAULTS]
    if len(fault_makers) < len(faults) or any(start + span > n_test for _, start, span in fault_makers):
        raise ParameterError(
            f"The 'faults' parameter of make_pump must be among {', '.join(PUMP_FAULTS)}, within n_test. "
            f"Got {tuple(faults)!r} in {n_test} rows instead."
        )
    rng = generator(random_state, whose="make_pump")
    minute = np.arange(n_train + n_test)
    day = np.sin(2 * np.pi * minute / DAY)
    names = list(PUMP)
    values = np.column_stack(
        [level + swing * day + noise * rng.standard_normal(len(minute)) for level, swing, noise in PUMP.values()]
    )
    if valve:
        moves = rng.random(len(minute))
        opened = np.zeros(len(minute))
        for t in range(1, len(minute)):  # closed and open for random, memoryless spells
            opened[t] = moves[t] >= 1 / 40 if opened[t - 1] else moves[t] < 1 / 180
        names, values = [*names, "valve"], np.column_stack([values, opened])
    test, events = values[n_train:], []
    for kind, (channel, start, span) in zip(faults, fault_makers, strict=True):
        rows, c = slice(start, start + span), names.index(channel)
        healthy = test[rows, c].copy()
        test[rows, c] = {
            "vibration doubled": 2.0 * healthy,
            "temperature ramp": healthy + np.linspace(0.0, 12.0, span),
            "flow halved": 0.5 * healthy,
        }[kind]
        events.append(Fault(kind, start, start + span, (c,)))
    events.sort(key=lambda fault: fault.start)
    times = np.datetime64("2026-03-02T00:00:00", "ns") + minute * np.timedelta64(60, "s")
    labels = labels_from_events([(fault.start, fault.stop) for fault in events], length=n_test)
    return Plant(
        train=Series(values[:n_train], timestamps=times[:n_train], channels=tuple(names), name="pump"),
        test=Series(test, timestamps=times[n_train:], channels=tuple(names), labels=labels, name="pump"),
        faults=tuple(events),
    )

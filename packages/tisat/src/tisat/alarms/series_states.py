"""The states of the alarms of a series: what a monitor gives after its last row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tisat.alarms.alarms import Alarm
from tisat.alarms.ongoing import Ongoing, Stamp
from tisat.alarms.present_mode import MEAN, STEADY, Switch
from tisat.utils.types import Array


def with_states(
    alarms: Sequence[Alarm],
    deviations: Array | None,
    limits: Array | None,
    *,
    channels: Sequence[str],
    values: Array,
    switches: Sequence[Switch] = (),
    rearm: int | None = None,
    stamp: Callable[[int], Stamp] = lambda row: None,
) -> tuple[Alarm, ...]:
    """The alarms of a series, by the row of their raise, with their states: what a monitor gives after its last row.

    Parameters
    ----------
    alarms : sequence of Alarm
    deviations : array of shape (T, C), optional
        NaN where nothing is known.
    limits : array of shape (C,), optional
    channels : sequence of str
    values : array of shape (T, C)
        NaN where nothing is known.
    switches : sequence of (int, float)
    rearm : int, optional
    stamp : callable
        The time of a row.
    """
    track = Ongoing(limits, channels, rearm=rearm, switches=switches)
    states = {one.raised: one if one.cleared is None else replace(one, state="cleared") for one in alarms}
    if deviations is None or not track.known:
        return tuple(states.values())
    raises = iter([*alarms, None])
    coming, on, row = next(raises), None, 0
    while row < len(deviations):
        if on is None and not track.ongoing:
            if coming is None:
                break
            row = coming.raised
            track.recent[:] = np.nan
            before = deviations[max(row - MEAN, 0) : row]
            track.recent[MEAN - len(before) :] = before
            for earlier in values[max(row - 2 * STEADY, 0) : row]:
                track.mode.step(earlier)
        for ended in track.step(deviations[row], row=row, stamp=stamp(row), values=values[row]):
            states[ended.raised] = ended
        if on is not None and on.cleared == row:
            states[on.raised], on = track.clear(replace(on, state=states[on.raised].state)), None
        elif on is not None and any(one.at == row for one in on.further):
            so_far = tuple(one for one in on.further if one.at <= row)
            state = track.join(replace(on, further=so_far, state=states[on.raised].state)).state
            states[on.raised] = replace(on, state=state)
        if coming is not None and coming.raised == row:
            state = track.begin(replace(coming, further=(), state="raised")).state
            states[coming.raised] = replace(coming, state=state)
            coming, on = next(raises), coming
        row += 1
    return tuple(states.values())

"""The rows of heat maps that a page shows."""

from __future__ import annotations

import msgspec

from tisat_serve.structs import HeatMap

STEPS = 96  # of the heat map


def joined(maps: dict[str, HeatMap], wanted: list[tuple[str, str]], start: float, stop: float) -> HeatMap:
    """Rows of several heat maps over the same stretch as one.

    ``wanted`` are keys ``name @address`` and addresses.
    """
    one = next(iter(maps.values()), None)
    width = (stop - start) / STEPS
    times = one.times if one is not None else [start + width * k for k in range(STEPS)]
    heat_map = HeatMap(start, stop, one.step if one is not None else width, times, [], [], [], [], [])
    places = {address: {name: k for k, name in enumerate(heat.entities)} for address, heat in maps.items()}
    for key, address in wanted:
        k = places.get(address, {}).get(key.rpartition(" @")[0])
        if k is not None:
            heat = maps[address]
            heat_map.entities.append(key)
            heat_map.groups.append(heat.groups[k])
            heat_map.status.append(heat.status[k])
            heat_map.ratio.append(heat.ratio[k])
            heat_map.state.append(heat.state[k])
    return heat_map


def select_rows(heat: HeatMap, names: list[str]) -> HeatMap:
    """The rows of a heat map that are shown, in that order."""
    place = {name: k for k, name in enumerate(heat.entities)}
    rows = [place[name] for name in names if name in place]
    return msgspec.structs.replace(
        heat, entities=[heat.entities[k] for k in rows], groups=[heat.groups[k] for k in rows],
        status=[heat.status[k] for k in rows], ratio=[heat.ratio[k] for k in rows], state=[heat.state[k] for k in rows],
    )  # fmt: skip

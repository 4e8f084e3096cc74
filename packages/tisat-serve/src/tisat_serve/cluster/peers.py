"""One console over several services: what the others say of themselves, asked over their interfaces and only read.

A shard that does not answer is said to be down, with what was last known of it; nothing of it is shown as if it were fresh.
"""

from __future__ import annotations

import os
import threading
import time as clocks
import urllib.error
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tisat_serve.http_client import ask, check_address, without_credentials
from tisat_serve.structs import AlarmInfo, EntityInfo, HeatMap, ShardInfo

if TYPE_CHECKING:
    from tisat_serve.service import Service

TIMEOUT = 4.0
LARGEST = 64 << 20  # bytes of one answer
HERE = ""  # the address of this service, in links


class _About(msgspec.Struct):
    shard: str = ""
    rows_per_second: float = 0.0
    ready: bool = False
    problems: list[str] = []


class Peers:
    """The shards of a fleet: this service and its peers.

    Parameters
    ----------
    service : Service
        Its settings name the peers.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        for address in service.settings.peers:
            check_address(address, "The address of a peer")
        self._known: dict[str, ShardInfo] = {}  # what was last heard of each
        self._lock = threading.Lock()

    @property
    def addresses(self) -> list[str]:
        """Of the other shards."""
        return [without_credentials(address).rstrip("/") for address in self.service.settings.peers]

    def _ask(self, address: str, path: str, kind: object) -> Any:
        token = os.environ.get("TISAT_PEER_TOKEN", "")
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        given = next(one for one in self.service.settings.peers if without_credentials(one).rstrip("/") == address)
        return msgspec.json.decode(ask(given.rstrip("/") + path, headers, timeout=TIMEOUT, most=LARGEST), type=kind)

    def _ask_all(self, addresses: Sequence[str], call: Any) -> list[Any]:
        if not addresses:
            return []
        with ThreadPoolExecutor(min(16, len(addresses))) as pool:
            return list(pool.map(call, addresses))

    def shards(self) -> list[ShardInfo]:
        """How every shard stands, this one first."""
        return [self._own(), *self._ask_all(self.addresses, self._peer)]

    def _own(self) -> ShardInfo:
        service = self.service
        view = service.view
        return ShardInfo(
            address=HERE,
            shard=service.engine.store.meta("shard"),
            up=True,
            why="",
            heard=clocks.time(),
            counts=view.counts(),
            rows_per_second=service.rate,
            problems=service.problems,
            entities=view.entities(),
            alarms=view.alarms(active=True, limit=200),
        )

    def _peer(self, address: str) -> ShardInfo:
        try:
            about = self._ask(address, "/api/v1/about", _About)
            entities = self._ask(address, "/api/v1/entities", list[EntityInfo])
            alarms = self._ask(address, "/api/v1/alarms?active=true", list[AlarmInfo])
        except (OSError, ValueError, msgspec.DecodeError) as error:
            why = str(getattr(error, "reason", error))[:200]
            if isinstance(error, urllib.error.HTTPError):
                why = f"it answered {error.code}"
            known = self._known.get(address) or ShardInfo(address, "", False, "", None, {}, 0.0, [], [], [])
            return replace(known, up=False, why=why, counts={}, rows_per_second=0.0, problems=[], alarms=[])
        info = ShardInfo(
            address=address,
            shard=about.shard,
            up=True,
            why="",
            heard=clocks.time(),
            counts=dict(Counter(one.status for one in entities)),
            rows_per_second=about.rows_per_second,
            problems=about.problems if about.ready else [*about.problems, "It takes no rows now."],
            entities=entities,
            alarms=alarms,
        )
        with self._lock:
            self._known[address] = info
        return info

    def heat_maps(self, shards: Sequence[ShardInfo], start: float, stop: float, steps: int) -> dict[str, HeatMap]:
        """The heat maps of the shards that are up, over the same stretch, by address."""
        path = f"/api/v1/heatmap?start={start}&stop={stop}&steps={steps}"

        def heat_map_of(address: str) -> HeatMap | None:
            if address == HERE:
                return self.service.view.heat_map(start=start, stop=stop, steps=steps)
            try:
                found: HeatMap = self._ask(address, path, HeatMap)
                return found
            except (OSError, ValueError, msgspec.DecodeError):
                return None  # it went down in between: its entities have no strip

        addresses = [shard.address for shard in shards if shard.up]
        return {
            a: found
            for a, found in zip(addresses, self._ask_all(addresses, heat_map_of), strict=True)
            if found is not None
        }

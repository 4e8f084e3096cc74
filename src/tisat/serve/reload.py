"""Another configuration without a restart: on SIGHUP the file is read again; what is wrong in it is said, and all stays as it was."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tisat.errors import TisatError
from tisat.serve.config import Config, groups_of, parts_of, read_config, settings_of

if TYPE_CHECKING:
    from tisat.serve.security import Tokens
    from tisat.serve.service import Service

LIVE = ("match", "lateness", "silent_after", "retention", "ignore_extra", "refit")  # of a group, changed as they are


def apply(service: Service, tokens: Tokens, config: Config) -> list[str]:
    """Put a configuration in force; what changed, one sentence each.

    Thresholds do not change so: a budget is changed by a proposal that somebody takes. A group that is gone goes on until the
    next start.
    """
    settings, limits = settings_of(config)
    parts, routes = parts_of(config)
    groups = groups_of(config)
    said = []
    engine = service.engine
    for part in service.parts:
        part.stop()
    with engine.lock:
        for group in groups:
            known = engine.groups.get(group.name)
            if known is None:
                engine.add_group(group)
                said.append(f"group {group.name} is new")
                continue
            for name in LIVE:
                if getattr(known, name) != getattr(group, name):
                    setattr(known, name, getattr(group, name))
                    said.append(f"group {group.name}: {name} is {getattr(group, name)} now")
        engine.routes, engine.limits = routes, limits
    settings.url, settings.peers = settings.url or service.settings.url, tuple(config.peers)
    service.settings, service.parts = settings, list(parts)
    for part in service.parts:
        part.start(service)
    tokens.reload()
    return [*said, f"{len(parts)} sources and sinks began again"]


def on_hangup(service: Service, tokens: Tokens, path: Path | None, say: Callable[[str], None]) -> None:
    """Read the configuration (and the tokens) again at SIGHUP."""

    def reload() -> None:
        try:
            if path is None:
                tokens.reload()
                say("tokens read again")
                return
            for sentence in apply(service, tokens, read_config(path)):
                say(f"reload: {sentence}")
        except TisatError as error:
            say(f"reload: nothing has changed. {error}")

    if hasattr(signal, "SIGHUP"):
        with contextlib.suppress(ValueError):  # not the main thread: a test
            signal.signal(
                signal.SIGHUP, lambda *_: threading.Thread(target=reload, name="tisat-reload", daemon=True).start()
            )

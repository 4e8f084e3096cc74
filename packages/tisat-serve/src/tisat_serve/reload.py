"""Put another configuration in force without a restart, and say what needs one.

On SIGHUP the file is read again; what is wrong in it is said, and all stays as it was.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from tisat.errors import TisatError
from tisat_serve.config import groups_of, parts_of, read_config, settings_of
from tisat_serve.config_tables import Config
from tisat_serve.engine.group import Group
from tisat_serve.service import Service

LIVE = ("match", "lateness", "silent_after", "retention", "ignore_extra", "refit")  # of a group, changed as they are
FIXED = ("listen.host", "listen.port", "data", "shard")


def apply(service: Service, config: Config, started: Config | None = None) -> list[str]:
    """Put a configuration in force.

    What changed and what could not, one sentence each.

    Parameters
    ----------
    service : Service
    config : Config
    started : Config, optional
        The file as it was when the service started: what differs and needs a restart is said.
    """
    settings, limits = settings_of(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of a threshold was said at the start
        groups = groups_of(config)
    parts, routes = parts_of(config)
    engine = service.engine
    new = [group for group in groups if group.name not in engine.groups]
    engine.entities.add_groups(new)  # one may be refused: nothing has changed yet
    notes = [f"group {group.name} is new" for group in new]
    notes += _renewed(service, config)
    for part in service.parts:
        part.stop()
    with engine.lock:
        for group in groups:
            known = engine.groups[group.name]
            for name in LIVE:
                if getattr(known, name) != getattr(group, name):
                    setattr(known, name, getattr(group, name))
                    notes.append(f"group {group.name}: {name} is {getattr(group, name)} now")
        engine.configure(limits, routes)
    settings.host, settings.url = service.settings.host, settings.url or service.settings.url
    service.settings, service.parts = settings, list(parts)
    for part in service.parts:
        part.start(service)
    return [*notes, *_needs_restart(service, groups, config, started), f"{len(parts)} sources and sinks began again"]


def _renewed(service: Service, config: Config) -> list[str]:
    """Read the certificate again, for connections from now on."""
    if not config.listen.certificate or service.renew is None:
        return []
    service.renew(config.listen.certificate, config.listen.key or None)
    return ["the certificate was read again"]


def _needs_restart(service: Service, groups: list[Group], config: Config, started: Config | None) -> list[str]:
    """Settings that need a restart, one sentence each."""
    notes = []
    for name in FIXED if started is not None else ():
        before, now = _field(started, name), _field(config, name)
        if before != now:
            notes.append(f"not changed: {name} is {now!r} in the file; restart to have it")
    if started is not None and bool(started.listen.certificate) != bool(config.listen.certificate):
        notes.append("not changed: TLS begins or ends with a restart")
    engine = service.engine
    for group in groups:
        known = engine.groups[group.name]
        calibration = known.watches[known.calibration].calibration
        first = known.models[0]
        if group.models[0].print != first.print:
            notes.append(
                f"not changed: group {group.name} has another model or rule in the file; a folder keeps those it began with, "
                "give a refit or another data folder"
            )
        elif group.watch.calibration.budget not in (calibration.budget, first.watch.calibration.budget):
            notes.append(
                f"not changed: group {group.name} is at {calibration.budget}, the file says {group.watch.calibration.budget}; "
                "a threshold changes by a proposal that somebody takes"
            )
    gone = [name for name in engine.groups if name not in {group.name for group in groups}]
    notes += [f"not changed: group {name} is not in the file any more and continues until a restart" for name in gone]
    return notes


def _field(config: object, name: str) -> object:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def on_hangup(service: Service, path: Path | None, say: Callable[[str], None]) -> None:
    """Read the configuration again at SIGHUP; tokens are as they are at every request."""
    started: Config | None = None
    with contextlib.suppress(TisatError):
        started = None if path is None else read_config(path)

    def reload() -> None:
        try:
            if path is None:
                say("reload: nothing has changed. The service was started without --config.")
                return
            for sentence in apply(service, read_config(path), started):
                say(f"reload: {sentence}")
        except TisatError as error:
            say(f"reload: nothing has changed. {error}")

    if hasattr(signal, "SIGHUP"):
        with contextlib.suppress(ValueError):  # not the main thread: a test
            signal.signal(
                signal.SIGHUP, lambda *_: threading.Thread(target=reload, name="tisat-reload", daemon=True).start()
            )

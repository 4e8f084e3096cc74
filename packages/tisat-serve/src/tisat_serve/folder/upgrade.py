"""Take the folder of an earlier version along where its model cannot be read any more: fit again on the rows that were kept.

Tables are converted whenever a folder is opened. What is left is the model: one that an earlier version wrote may not be readable.
Then the same detector is fitted on the kept rows without alarms (but those marked false) and maintenance windows, and every
entity begins anew with its last rows. Labels, alarms, ledger, rules, windows and tokens stay as they are; a budget stays; the
threshold of an entity that had its own stays as far above or below that of its group as it was.
"""

from __future__ import annotations

import json
import sqlite3
import time as clocks
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tisat import registry
from tisat.alarms.calibration import Calibration
from tisat.alarms.incidents import TOGETHER
from tisat.errors import ArtefactError, InputError, ParameterError
from tisat.persistence.model_file import read_artefact
from tisat.series import Series
from tisat.utils.types import JsonDict
from tisat.watch import Watch
from tisat.watch.monitor import Monitor
from tisat_serve.alarms.alarm_log import Policy, about, event_of_alarm, in_pauses, write_event
from tisat_serve.engine.group import FIRST, Group, add_calibration
from tisat_serve.engine.row_encoding import compress, stamps_of
from tisat_serve.folder.archive import FOREVER, stretches, taken_rows, warm_up_start
from tisat_serve.store import RELEASE, ROW, Store, file_in

SHORTEST = 50  # rows without a break that are learned from
LEFT = -1  # the number of the model of thresholds that are kept for the record only


@dataclass
class StoredEntity:
    """An entity as the store has it."""

    id: int
    name: str
    dates: bool
    calibration: int


def upgrade(folder: Path, model: Path, *, group: str = "") -> list[str]:
    """Make a folder usable with this version; what was done, one sentence each.

    Parameters
    ----------
    folder : path
        Of a service that is stopped.
    model : path
        The model of a group, which may be unreadable; where it is, one that was fitted again takes its place, and the old file is
        kept beside it as ``.before``.
    group : str
        The group; needed where the folder has several.
    """
    file_in(folder)
    with Store(folder) as store:
        groups = [key.partition(":")[2] for (key,) in store.read("SELECT key FROM meta WHERE key LIKE 'model:%'")]
        if (group and group not in groups) or not (group or len(groups) == 1):
            raise InputError(f"The group must be one of {', '.join(groups)}. Got {group or 'none'!r} instead.")
        group = group or groups[0]
        try:
            watch, why = Watch.load(model), ""
        except ArtefactError as error:
            watch, why = _refitted(store, group, model), str(error)
        else:
            if watch.fingerprint() == store.meta(f"model:{group}"):
                return [f"Group {group}: the folder opens with its model as it is; its tables are of this version now."]
        channels = json.loads(store.meta(f"channels:{group}"))
        if list(watch.channels) != channels:
            raise InputError(
                f"The model must have the channels of group {group!r}: {', '.join(channels)}. Got {', '.join(watch.channels)}."
            )
        notes = [f"Group {group}: the model could not be read ({why})"] if why else []
        notes += _switch_group(store, group, watch)
        if why:
            kept = model.with_name(model.name + ".before")
            model.replace(kept)
            watch.save(model)
            notes.append(f"The model was fitted again; it is in {model}, the one of before in {kept}.")
    return notes


def _entities(store: Store, group: str) -> Iterator[StoredEntity]:
    query = "SELECT id, name, dates, calibration FROM entities WHERE grp = ? AND retired IS NULL ORDER BY id"
    for number, name, dates, calibration in store.read(query, (group,)):
        yield StoredEntity(number, name, bool(dates), calibration)


def _refitted(store: Store, group: str, model: Path) -> Watch:
    """The detector of an unreadable model, with its settings where they are known, fitted on kept rows."""
    header, _ = read_artefact(model)
    try:
        detector = registry.resolve(str(header.get("detector")))(**header.get("params", {}))
    except (ParameterError, TypeError):
        detector = registry.resolve(registry.DEFAULT)()
    document = _calibrations(store, group)[1][0]
    parts = [part for one in _entities(store, group) for part in _normal(store, group, one)]
    if not parts:
        raise InputError(
            f"The folder must hold {SHORTEST} rows without a break and without an alarm to fit group {group!r} again. It holds none; "
            "fit a model with tisat fit and give that."
        )
    period = document.get("period")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the threshold is in its calibration
        return Watch(detector, budget=_budget(document), period=period).fit(parts)


def _normal(store: Store, group: str, one: StoredEntity) -> Iterator[Series]:
    """The kept rows of an entity that may be learned from, in stretches without a break."""
    with store.reading() as connection:
        pieces = list(taken_rows(connection, one.id, -FOREVER, FOREVER))
    if not pieces:
        return
    times, values, _ = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    keep = np.ones(len(times), dtype=np.bool_)
    query = (
        "SELECT onset, coalesce(cleared, ?) FROM alarms WHERE entity = ? AND sort = 'statistic' AND coalesce((SELECT word FROM labels "
        "WHERE alarm = alarms.id ORDER BY labels.id DESC LIMIT 1), '') != 'false'"
    )
    for onset, cleared in store.read(query, (FOREVER, one.name)):
        keep[(times >= onset) & (times < cleared)] = False
    pauses = store.records("SELECT * FROM pauses WHERE unlearned AND ended IS NULL")
    keep[in_pauses(about(pauses, one.name), times)] = False
    channels = json.loads(store.meta(f"channels:{group}"))
    for part in stretches(keep, SHORTEST):
        yield Series(values[part], timestamps=stamps_of(times[part], dates=one.dates), channels=channels, name=one.name)


def _calibrations(store: Store, group: str) -> tuple[dict[int, JsonDict], tuple[JsonDict, int]]:
    """Thresholds of a group that are in use, by number.

    The second value is the one in force for all, with its number.
    """
    query = "SELECT id, entity, document FROM calibrations WHERE grp = ? AND model != ? ORDER BY id"
    rows = [(number, entity, json.loads(text)) for number, entity, text in store.read(query, (group, LEFT))]
    force = [(document, number) for number, entity, document in rows if entity is None]
    return {number: document for number, _, document in rows}, force[-1]


def _switch_group(store: Store, group: str, watch: Watch) -> list[str]:
    """Put a model in the place of the one a folder began with."""
    calibrations, (before, in_force) = _calibrations(store, group)
    now = clocks.time()
    home = Group(group, watch)
    own = 0
    numbers: dict[int, int] = {}  # the new numbers of thresholds
    policy = Policy()
    with store.writing() as write:
        write.execute("UPDATE calibrations SET model = ? WHERE grp = ?", (LEFT, group))
        write.execute("UPDATE proposals SET state = 'left', decided = ? WHERE grp = ? AND state = 'open'", (now, group))
        _neutralise_log(write)
        for entity in _entities(store, group):
            if entity.calibration not in numbers:
                old = calibrations.get(entity.calibration, before)
                name = None if entity.calibration == in_force or entity.calibration not in calibrations else entity.name
                own += name is not None
                calibration = watch.calibration if name is None else _own_calibration(watch.calibration, before, old)
                numbers[entity.calibration] = add_calibration(
                    write, group, name, calibration, "tisat", "upgrade", FIRST, now
                )
                home.watch_at(numbers[entity.calibration], calibration)
            monitor = Monitor(home.watches[numbers[entity.calibration]], name=entity.name)
            times = _warm_up(store, entity, monitor)
            state = compress(monitor.to_bytes())
            write.execute(
                "UPDATE entities SET calibration = ?, state = ? WHERE id = ?",
                (numbers[entity.calibration], state, entity.id),
            )
            query = "UPDATE alarms SET cleared = ? WHERE entity = ? AND cleared IS NULL AND sort != 'silence'"
            write.execute(query, (times[-1] if times else int(now * 1e9), entity.name))
            for alarm in (*monitor.ongoing, *filter(None, [monitor.alarm])):
                event = event_of_alarm(alarm, home.models[FIRST].print, group, 0, times[-1])
                reach = round(TOGETHER * (watch.period or 60.0) * 1e9)
                write_event(write, replace(event, what="raised"), policy, (), now, reach=reach)
        if in_force not in numbers:
            add_calibration(write, group, None, watch.calibration, "tisat", "upgrade", FIRST, now)
        write.execute("UPDATE meta SET value = ? WHERE key = ?", (home.models[FIRST].print, f"model:{group}"))
        write.execute(
            "INSERT INTO journal VALUES (NULL, ?, 'tisat', ?, '')", (now, f"upgrade of group {group} to another model")
        )
    said = [f"Labels, alarms, ledger, rules and windows are as they were; the budget is {watch.calibration.budget}."]
    if own:
        said.append(f"Thresholds of single entities: {own}, as far from that of the group as before.")
    return said


def _budget(calibration: JsonDict) -> str:
    """A budget in the words of this version."""
    return str(calibration["budget"]).replace("instants", "rows")


def _own_calibration(calibration: Calibration, group: JsonDict, own: JsonDict) -> Calibration:
    """The threshold of an entity that had its own: as far from that of the group as it was."""
    times = own["threshold"] / group["threshold"] if group["threshold"] else 1.0
    target = calibration.target * own["target"] / group["target"]
    return replace(calibration, threshold=calibration.threshold * times, budget=_budget(own), target=target)


def _warm_up(store: Store, one: StoredEntity, monitor: Monitor) -> list[int]:
    """Show a monitor the last rows of its entity; their times."""
    start = warm_up_start(store, one.id, monitor.watch)
    with store.reading() as connection:
        pieces = list(taken_rows(connection, one.id, start, FOREVER))
    times: list[int] = []
    for moments, values, _ in pieces:
        times += moments.tolist()
        monitor.extend(list(values), list(stamps_of(moments, dates=one.dates)))
    return times


def _neutralise_log(write: sqlite3.Connection) -> None:
    """Let labels and thresholds in the log have no effect: they speak of rows of the model of before."""
    decode, encode = msgspec.msgpack.Decoder(list[list[Any]]).decode, msgspec.msgpack.encode
    for seq, body in write.execute("SELECT seq, body FROM log").fetchall():
        entries = decode(body)
        if any(entry[0] not in (ROW, RELEASE) for entry in entries):
            kept = [entry if entry[0] == ROW else [RELEASE, entry[1]] for entry in entries]
            write.execute("UPDATE log SET body = ? WHERE seq = ?", (encode(kept), seq))

"""The configuration file: groups of entities, sources, sinks, limits.

One TOML file; every mistake is a sentence.

Another configuration needs no restart: see :mod:`tisat_serve.reload`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tisat import registry
from tisat.alarms.budget import Budget
from tisat.alarms.rules import AlarmRule, make_rule
from tisat.errors import InputError, ParameterError
from tisat.io.durations import seconds_of
from tisat.utils.near_names import meant_file
from tisat.utils.types import JsonDict
from tisat.watch import Watch
from tisat_serve.config_tables import Config, GroupTable, SinkTable, SourceTable, meant_field
from tisat_serve.engine.engine import Limits
from tisat_serve.engine.group import Group
from tisat_serve.http_client import basic, check_address
from tisat_serve.model_folder import one_each
from tisat_serve.service import Part, Settings
from tisat_serve.sinks.alertmanager import Alertmanager
from tisat_serve.sinks.outbox import TOGETHER, Apprise, Outbox, Sink, Webhook
from tisat_serve.sources.kafka import KafkaSink, KafkaSource
from tisat_serve.sources.mqtt import Broker, MqttSink, MqttSource
from tisat_serve.sources.nats import NatsSource
from tisat_serve.sources.promql import PromQL
from tisat_serve.sources.samples import Samples

WARM = 300  # steps a query looks back at its first start, so that no detector has to wait for its window to fill


T = TypeVar("T")


def read_config(path: Path) -> Config:
    """A configuration from its file; paths in it are relative to the file."""
    if not path.is_file():
        raise InputError(f"File not found: {str(path)!r}. The configuration must be a file.{meant_file(path)}")
    try:
        config = msgspec.toml.decode(path.read_bytes(), type=Config)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise InputError(
            f"The configuration {str(path)!r} must be TOML with groups, sources and sinks. It is not: {error}.{meant_field(str(error))}"
        ) from None
    if not config.group:
        raise InputError(f"The configuration {str(path)!r} must have at least one [[group]]. It has none.")
    home = path.parent
    config.data = str(home / config.data)
    for group in config.group:
        group.model = str(home / group.model)
        try:
            Budget.check(group.budget or "1/day")
        except ParameterError as error:
            raise InputError(f"The 'budget' of group {group.name!r} {error.predicate}") from None
    config.group = [one for group in config.group for one in one_each(group)]
    names = [group.name for group in config.group]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"The groups of {str(path)!r} must have different names. Two are called {twice!r}.")
    for source in config.source:
        source.handover = None if source.handover is None else str(home / source.handover)
    for one in (*config.source, *config.sink):
        for field in ("token_file", "password_file", "secret_file", "ca"):
            if getattr(one, field, ""):
                setattr(one, field, str(home / getattr(one, field)))
    for name in ("certificate", "key"):
        if getattr(config.listen, name):
            setattr(config.listen, name, str(home / getattr(config.listen, name)))
    tables: list[SourceTable | SinkTable] = [*config.source, *config.sink]
    for number, table in enumerate(tables):
        table.name = table.name or f"{table.kind}{number + 1}"
    if len({table.name for table in tables}) != len(tables):
        raise InputError(f"The sources and sinks of {str(path)!r} must have different names. Two are called alike.")
    return config


def _seconds(text: str, name: str, whose: str) -> float:
    said = text.strip()
    if said in ("0", "0 s", "0s"):
        return 0.0
    try:
        return seconds_of(said)
    except ParameterError as error:
        raise InputError(f"The {name!r} of {whose} {error.predicate}") from None


def _durations(table: GroupTable | SourceTable | SinkTable, *names: str) -> JsonDict:
    """Fields that say how long, in seconds; None where nothing is said."""
    whose = f"{'group' if isinstance(table, GroupTable) else table.kind} {table.name!r}"
    return {name: None if (said := getattr(table, name)) is None else _seconds(said, name, whose) for name in names}


def _fields(table: SourceTable | SinkTable, *names: str) -> JsonDict:
    return {name: getattr(table, name) for name in names}


def settings_of(config: Config) -> tuple[Settings, Limits]:
    """The limits of the front and of the engine."""
    limits = config.limits
    for name in msgspec.structs.asdict(limits):
        if getattr(limits, name) < 1:
            raise InputError(f"The limit {name!r} must be at least 1. Got {getattr(limits, name)}.")
    if not 0 <= config.listen.port <= 65535:
        raise InputError(f"The port of [listen] must be 0 to 65535. Got {config.listen.port} instead.")
    if config.listen.url:
        check_address(config.listen.url, "The url of [listen]")  # without a scheme it would be nobody's origin
    for name in ("certificate", "key"):
        if (file := getattr(config.listen, name)) and not Path(file).is_file():
            raise InputError(f"The {name} of [listen] must be a file. There is no {file!r}.")
    told = {name: getattr(limits, name) for name in ("rows_waiting", "body_bytes", "rows_in_request")}
    front = Settings(**told, host=config.listen.host, url=config.listen.url.rstrip("/"), peers=tuple(config.peers))
    kept = {f"keep_{name}": _seconds(getattr(config.keep, name), name, "[keep]") for name in ("alarms", "journal")}
    return front, Limits(entities=limits.entities, save_rows=limits.save_rows, **kept)


def promql_of(table: SourceTable) -> PromQL:
    """A PromQL source."""
    times = _durations(table, "step", "backfill", "offset")
    times["step"] = 15.0 if times["step"] is None else times["step"]
    times["backfill"] = WARM * times["step"] if times["backfill"] is None else times["backfill"]
    return PromQL(**_fields(table, "name", "url", "queries", "entity", "channel", "group"), **_http(table), **times)


def samples_of(table: SourceTable) -> Samples:
    """Samples that are pushed; the grid is the model's period unless told."""
    told = _fields(table, "name", "group", "entity", "match", "rename")
    return Samples(**told, **_durations(table, "step", "lateness"))


def _environment(variable: str, what: str) -> str:
    if variable not in os.environ:
        raise InputError(f"The {what} must be in the environment as {variable}. It is not.")
    return os.environ[variable]


def _broker(table: SourceTable | SinkTable) -> Broker:
    """Address and credentials of an MQTT broker."""
    return Broker(**_fields(table, "host", "port", "user", "tls"), password=_secret(table, "password"))


def _http(table: SourceTable | SinkTable) -> JsonDict:
    """Headers with who we are, and the certificates to trust."""
    headers = dict(table.headers)
    token = _secret(table, "token")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    elif table.user:
        headers["Authorization"] = basic(table.user, _secret(table, "password"))
    return {"headers": headers, "ca": table.ca or None}


def _secret(table: SourceTable | SinkTable, what: str) -> str:
    """A secret from the environment or from a file, which is read again at each reload."""
    variable, file = getattr(table, f"{what}_env", ""), getattr(table, f"{what}_file", "")
    if variable:
        return _environment(variable, f"{what} of {table.name!r}")
    if file and not Path(file).is_file():
        raise InputError(f"File not found: {file!r}. The {what} of {table.name!r} must be in the file.")
    return Path(file).read_text(encoding="utf-8").strip() if file else ""


def groups_of(config: Config, *, say: object = None) -> list[Group]:
    """The groups with their models; one that is not there is fitted on history, where the group says so."""
    return [_group(config, table, say) for table in config.group]


def _group(config: Config, table: GroupTable, say: Any) -> Group:
    path = Path(table.model)
    if not path.exists() and table.history is not None:
        watch = fit_from_history(config, table)
        watch.save(path)
        if say is not None:
            say(f"fitted {path.name} on {table.history} of history. {watch.calibration}".replace("\n", " "))
    else:
        watch = Watch.load(path)
    rule = _rule(table, watch)
    if rule is not None:
        watch = watch.recalibrated(table.budget, rule=rule)
    elif table.budget is not None and watch.calibration.budget != table.budget:
        watch = Watch.load(path, budget=table.budget)
    told = _durations(table, "lateness", "silent_after", "retention", "refit")
    return Group(table.name, watch, match=table.match, ignore_extra=table.ignore_extra, **told)


def _rule(table: GroupTable, watch: Watch) -> AlarmRule | None:
    """The rule of a group where it is another than the model's.

    Options that are not said are as the model has them.
    """
    if table.rule is None:
        return None
    said = {"name": table.rule} if isinstance(table.rule, str) else dict(table.rule)
    name = said.pop("name", watch.rule.name)
    same = watch.rule.params() if name == watch.rule.name else {}
    rule = make_rule(name, **{**same, **said})
    return None if name == watch.rule.name and rule.params() == watch.rule.params() else rule


def fit_from_history(config: Config, table: GroupTable) -> Watch:
    """A watch fitted on what the group's PromQL source says of the past."""
    source = next((one for one in config.source if one.kind == "promql" and one.group in ("", table.name)), None)
    if source is None:
        raise InputError(
            f"The group {table.name!r} must have a model or a source of kind 'promql' to fit one from. It has neither."
        )
    series = promql_of(source).history(_durations(table, "history")["history"] or 86400.0)
    detector = registry.resolve(table.detector or registry.DEFAULT)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Watch(detector, budget=table.budget).fit(series if len(series) > 1 else series[0])


def _together(table: SinkTable, usual: float) -> float:
    return usual if table.together is None else float(_durations(table, "together")["together"])


def _kafka_of(table: SourceTable) -> KafkaSource:
    told = {**_fields(table, "name", "brokers", "topic", "options"), **_durations(table, "every")}
    return KafkaSource(**told, group=table.consumers, shelf=table.handover)


SINKS: dict[str, Callable[[SinkTable], Alertmanager | Sink]] = {
    "alertmanager": lambda one: Alertmanager(
        one.name, one.url, labels=one.labels, **_durations(one, "every"), **_http(one)
    ),
    "webhook": lambda one: Webhook(
        one.name, one.url, _secret(one, "secret"), together=_together(one, 0.0), **_http(one)
    ),
    "apprise": lambda one: Apprise(one.name, one.urls or [one.url], together=_together(one, TOGETHER)),
    "mqtt": lambda one: MqttSink(one.name, one.topic, _broker(one)),
    "kafka": lambda one: KafkaSink(one.name, one.brokers, one.topic.replace("/", "."), options=one.options),
}
SOURCES: dict[str, Callable[[SourceTable], Part]] = {
    "promql": promql_of,
    "samples": samples_of,
    "mqtt": lambda one: MqttSource(one.name, one.topic, samples_of(one), _broker(one)),
    "kafka": _kafka_of,
    "nats": lambda one: NatsSource(one.name, one.brokers, one.topic),
}


def _maker(kind: str, kinds: dict[str, T], what: str) -> T:
    """Find the maker of a source or sink, ours or of an entry point."""
    makers = {one.name: one for one in entry_points(group=f"tisat_serve.{what}s")}
    if kind not in kinds and kind not in makers:
        *first, last = [*kinds, *makers]
        raise InputError(f"The kind of a {what} must be {', '.join(first)} or {last}. Got {kind!r} instead.")
    return kinds[kind] if kind in kinds else makers[kind].load()


def parts_of(config: Config) -> tuple[list[Part], tuple[str, ...]]:
    """Make the sources and sinks; with the names of those behind the outbox."""
    sinks = [_maker(table.kind, SINKS, "sink")(table) for table in config.sink]
    outbox: list[Sink] = [sink for sink in sinks if not isinstance(sink, Alertmanager)]
    parts: list[Part] = [sink for sink in sinks if isinstance(sink, Alertmanager)]
    parts += [Outbox(outbox)] if outbox else []
    parts += [_maker(table.kind, SOURCES, "source")(table) for table in config.source]
    return parts, tuple(sink.name for sink in outbox)

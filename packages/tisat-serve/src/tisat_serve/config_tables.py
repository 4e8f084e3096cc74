"""The tables of the configuration file, with what they hold unless given."""

from __future__ import annotations

import re

import msgspec

from tisat.utils.near_names import meant
from tisat.utils.types import JsonDict


class Listen(msgspec.Struct, forbid_unknown_fields=True):
    """Listening address; ``url`` is how others reach the console."""

    host: str = "127.0.0.1"
    port: int = 8765
    url: str = ""
    certificate: str = ""
    key: str = ""


class LimitsTable(msgspec.Struct, forbid_unknown_fields=True):
    """Limits on requests and entities."""

    entities: int = 20_000
    rows_waiting: int = 20_000
    rows_in_request: int = 10_000
    body_bytes: int = 16 << 20
    save_rows: int = 64


class KeepTable(msgspec.Struct, forbid_unknown_fields=True):
    """How long alarms that are over (with their labels) and the journal are kept; history is kept as its group says."""

    alarms: str = "730 days"
    journal: str = "730 days"


class GroupTable(msgspec.Struct, forbid_unknown_fields=True):
    """A group of entities with one model, or with a folder of models: then a group for each machine that ``match`` fits.

    Where ``model`` is not there yet, it is fitted on ``history`` of the group's source.

    ``rule`` is the name of an alarm rule, or a table ``[group.rule]`` with a ``name`` and its options; the model's own unless given.
    """

    name: str
    model: str
    match: str = "*"
    budget: str | None = None
    rule: str | JsonDict | None = None
    lateness: str = "0 s"
    silent_after: str | None = None
    retention: str = "14 days"
    ignore_extra: bool = False
    history: str | None = None
    detector: str | None = None
    refit: str | None = None  # propose a refit so often: "7 days"


class _Remote(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Who we are to a server or a broker, and what we trust.

    Secrets are in the environment or in files.

    ``url``: by HTTP, with ``headers``, a bearer token or a user; ``mqtt`` by host and port, ``kafka`` and ``nats`` by a list.
    """

    headers: dict[str, str] = {}
    token_env: str = ""
    token_file: str = ""
    password_file: str = ""
    ca: str = ""  # a file of certificates to trust

    host: str = "127.0.0.1"
    port: int = 1883
    user: str = ""
    password_env: str = ""
    tls: bool = False
    brokers: str = ""
    options: dict[str, str] = {}


class SourceTable(_Remote, forbid_unknown_fields=True, kw_only=True):
    """Where rows come from: ``promql`` (pulled), ``samples`` (pushed one by one: remote write, Influx, OTLP), ``mqtt``, ``kafka``, ``nats``."""

    kind: str
    name: str = ""
    group: str = ""
    url: str = ""
    queries: dict[str, str] = {}
    entity: str = "instance"
    channel: str = "__name__"
    step: str | None = None
    offset: str = "5 s"
    backfill: str | None = None
    lateness: str | None = None
    match: dict[str, str] = {}
    rename: dict[str, str] = {}
    topic: str = ""
    consumers: str = "tisat"  # the consumer group
    handover: str | None = None  # a folder that every service of the consumer group sees
    every: str = "30 s"


class SinkTable(_Remote, forbid_unknown_fields=True, kw_only=True):
    """Who is told: ``alertmanager``, ``webhook``, ``apprise``, ``mqtt`` or ``kafka``.

    Secrets come from the environment or a file.

    ``together``: alarms that begin within so long are one message (``apprise`` 10 s, ``webhook`` 0 s unless told).
    """

    kind: str
    name: str = ""
    url: str = ""
    urls: list[str] = []
    every: str = "1 min"
    together: str | None = None
    labels: dict[str, str] = {}
    secret_env: str = ""
    secret_file: str = ""
    topic: str = "tisat/alarms"


class Config(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    data: str
    group: list[GroupTable]
    shard: str = ""  # such as "2/8"
    peers: list[str] = []  # the addresses of other shards, for one console over all
    listen: Listen = msgspec.field(default_factory=Listen)
    limits: LimitsTable = msgspec.field(default_factory=LimitsTable)
    keep: KeepTable = msgspec.field(default_factory=KeepTable)
    source: list[SourceTable] = []
    sink: list[SinkTable] = []


TABLES: dict[str, type[msgspec.Struct]] = {
    "listen": Listen, "limits": LimitsTable, "keep": KeepTable, "group": GroupTable, "source": SourceTable, "sink": SinkTable,
}  # fmt: skip


def meant_field(error: str) -> str:
    """`` Did you mean 'port'?`` where an unknown field of a table is close to one it has, else nothing.

    Examples
    --------
    >>> meant_field("Object contains unknown field `prot` - at `$.listen`")
    " Did you mean 'port'?"
    """
    found = re.search(r"unknown field `([^`]*)`(?: - at `\$\.(\w+))?", error)
    return "" if found is None else meant(found[1], TABLES.get(found[2], Config).__struct_fields__)

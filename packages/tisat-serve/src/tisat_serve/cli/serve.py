"""``tisat serve``: the watch as a service. Thin: what it does is in :mod:`tisat_serve`."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tisat.cli.options import Budget
from tisat.utils.types import JsonDict, JsonMap, Options

if TYPE_CHECKING:
    from tisat_serve.config_tables import Config
    from tisat_serve.engine.group import Group

MOST_GROUPS = 10  # with a line of their own at the start

app = typer.Typer(
    help="Run models as a service: rows in over HTTP, alarms out, and a console that shows the budget.",
    invoke_without_command=True,
    no_args_is_help=True,
)


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _needs() -> None:
    from tisat.utils.extras import require

    for module in ("starlette", "uvicorn", "msgspec", "prometheus_client"):
        require(module, whose="tisat serve")


@app.callback()
def serve(
    ctx: typer.Context,
    model: Annotated[Path | None, typer.Option(help="A model, as written by tisat fit, or a folder of them, as written by tisat fit --each.")] = None,
    data: Annotated[Path | None, typer.Option(help="The folder that holds everything; made where it is not there.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with groups, sources and sinks.")] = None,
    budget: Budget = None,
    host: Annotated[str | None, typer.Option(help="Where to listen; beyond this machine only with a token.")] = None,
    port: Annotated[int | None, typer.Option(help="8765 unless given; 0: any that is free.", min=0, max=65535)] = None,
    lateness: Annotated[str | None, typer.Option(help="Wait so long for late rows before judging, such as '2 min'.")] = None,
    silent_after: Annotated[str | None, typer.Option(help="An entity without rows for so long is an alarm, such as '10 min'.")] = None,
    prometheus: Annotated[str | None, typer.Option(help="Pull rows from this Prometheus API, such as http://localhost:9090.")] = None,
    query: Annotated[list[str] | None, typer.Option(help="A channel and its PromQL: 'cpu=avg by (instance) (rate(...))'. Again for each channel.")] = None,
    entity: Annotated[str, typer.Option(help="The label that names the entity.")] = "instance",
    step: Annotated[str, typer.Option(help="Seconds between two rows of a query, such as 15s.")] = "15s",
    offset: Annotated[str, typer.Option(help="Ask for what is at least so old, so that late scrapes are there.")] = "5s",
    history: Annotated[str | None, typer.Option(help="Where the model is not there yet: fit it on so much history of the queries.")] = None,
    detector: Annotated[str | None, typer.Option(help="The detector to fit so.")] = None,
    alertmanager: Annotated[str | None, typer.Option(help="Tell this Alertmanager, such as http://localhost:9093.")] = None,
    webhook: Annotated[str | None, typer.Option(help="Post every alarm here; signed where TISAT_WEBHOOK_SECRET is set.")] = None,
    source: Annotated[str | None, typer.Option(help="kafka: read rows from a topic, as one of a consumer group; nats: from a stream of JetStream.")] = None,
    brokers: Annotated[str, typer.Option(help="Of --source: host:port, with commas between several; localhost unless given.")] = "",
    topic: Annotated[str, typer.Option(help="Of --source: the topic with rows, whose key is the entity; for nats the stream, with subjects TOPIC.ENTITY.")] = "rows",
    group: Annotated[str, typer.Option(help="Of --source kafka: the consumer group.")] = "tisat",
    handover: Annotated[Path | None, typer.Option(help="Of --source kafka: a folder that every service of the group sees, for states of partitions that move.")] = None,
    alarms_topic: Annotated[str | None, typer.Option(help="Of --source kafka: send alarms to this topic.")] = None,
    shard: Annotated[str | None, typer.Option(help="Watch only the entities that a stable hash gives to this one of several: 2/8.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="The address of another shard, to be shown in this console too. Again for each; a token in TISAT_PEER_TOKEN.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, say what the fleet will need, and stop.")] = False,
    entities: Annotated[int, typer.Option(help="For --dry-run: how many there will be in each group that is not one machine's.", min=1)] = 1000,
    demo: Annotated[bool, typer.Option("--demo", help="A generated fleet of 30 pumps with faults that arrive live; needs no files.")] = False,
) -> None:  # fmt: skip
    """Watch entities whose rows come in over HTTP, or are pulled by query.

    `tisat serve --model plant.tisat --data watch/`
    """
    if ctx.invoked_subcommand is not None:
        return
    _needs()
    if demo:
        _demo(data, host or "127.0.0.1", 8765 if port is None else port)
        return
    from tisat_serve.config import read_config

    settings = _of_options(ctx.params) if config is None else read_config(config)
    settings.shard = shard or settings.shard
    settings.peers = list(peer or settings.peers)
    settings.listen.host = host or settings.listen.host
    settings.listen.port = settings.listen.port if port is None else port
    if dry_run:
        _dry_run(settings, entities, config)
        return
    _run(settings, config)


def _of_options(given: Options) -> Config:
    """Make a configuration of command-line options."""
    import msgspec

    from tisat.errors import InputError
    from tisat_serve.config_tables import Config
    from tisat_serve.model_folder import one_each

    streamed, told = ([], []) if given["source"] is None else _streamed(given)
    sources, sinks = [*_pulled(given), *streamed], [*_sinks(given), *told]
    if given["model"] is None or given["data"] is None:
        raise InputError(
            "tisat serve must be given --model and --data, or --config. Make a model with tisat fit, or look at --demo."
        )
    options = ("budget", "lateness", "silent_after", "history", "detector")
    group = {key: given[key] for key in options if given[key] is not None}
    tables = [{"name": "main", "model": str(given["model"]), **group}]
    made = msgspec.convert({"data": str(given["data"]), "group": tables, "source": sources, "sink": sinks}, Config)
    made.group = one_each(made.group[0])
    return made


def _pulled(given: JsonMap) -> list[JsonDict]:
    from tisat.errors import InputError

    queries = given["query"] or ()
    if given["prometheus"] is None:
        if queries:
            raise InputError("--query must come with --prometheus URL. Got none.")
        return []
    pairs = [text.partition("=") for text in queries]
    if not pairs or any(not sign or not name.strip() or not asked.strip() for name, sign, asked in pairs):
        raise InputError(
            "--query must be channel=query, once for each channel: --query 'cpu=avg by (instance) (rate(...))'."
        )
    options = {key: given[key] for key in ("entity", "step", "offset")}
    options["queries"] = {name.strip(): asked.strip() for name, _, asked in pairs}
    return [{"kind": "promql", "name": "prometheus", "url": given["prometheus"], **options}]


def _streamed(given: JsonMap) -> tuple[list[JsonDict], list[JsonDict]]:
    """Configure a broker as source of rows and as sink of alarms."""
    from tisat.errors import InputError

    kind, usual = given["source"], {"nats": "nats://localhost:4222", "kafka": "localhost:9092"}
    if kind not in usual:
        raise InputError(
            f"--source must be kafka or nats; other sources have options of their own or a --config. Got {kind[:40]!r} instead."
        )
    brokers = given["brokers"] or usual[kind]
    source = {"kind": kind, "name": kind, "brokers": brokers, "topic": given["topic"]}
    if kind == "nats":
        return [source], []
    source["consumers"] = given["group"]
    if given["handover"] is None:
        _say("without --handover DIR a partition that moves to another service begins again from its first message")
    else:
        source["handover"] = str(given["handover"])
    sink = {"kind": "kafka", "name": "alarms", "brokers": brokers, "topic": given["alarms_topic"]}
    return [source], [sink] if given["alarms_topic"] else []


def _sinks(given: JsonMap) -> list[JsonDict]:
    secret = "TISAT_WEBHOOK_SECRET" if "TISAT_WEBHOOK_SECRET" in os.environ else ""
    options: dict[str, dict[str, str]] = {"alertmanager": {}, "webhook": {"secret_env": secret}}
    return [{"kind": kind, "name": kind, "url": given[kind], **more} for kind, more in options.items() if given[kind]]


def _say_groups(groups: Sequence[Group]) -> None:
    """Print the budget and threshold of each group; of very many in one line."""
    found = [group.watch.calibration for group in groups]
    if len(groups) <= MOST_GROUPS:
        for group, one in zip(groups, found, strict=True):
            _say(f"{group.name}: {one.budget}, threshold {one.threshold:.4g} ({one.rule})")
        return
    budgets, rules = (", ".join(sorted({getattr(one, name) for one in found})) for name in ("budget", "rule"))
    low, high = min(one.threshold for one in found), max(one.threshold for one in found)
    _say(f"{len(groups)} groups: {budgets}, thresholds {low:.4g} to {high:.4g} ({rules})")


def _run(config: Config, path: Path | None) -> None:
    from tisat_serve.api.app import make_app
    from tisat_serve.cluster.shards import Shard
    from tisat_serve.config import groups_of, parts_of, settings_of
    from tisat_serve.reload import on_hangup
    from tisat_serve.runner import check_listening, listen, more_routes, running
    from tisat_serve.security import Tokens

    settings, limits = settings_of(config)
    parts, routes = parts_of(config)
    groups = groups_of(config, say=_say)
    _say_groups(groups)
    shard = Shard.parse(config.shard) if config.shard else None
    opened = running(
        Path(config.data), groups, settings=settings, limits=limits, parts=parts, routes=routes, shard=shard, say=_say
    )
    with opened as service:
        service.fatal = lambda: os.kill(os.getpid(), signal.SIGTERM)  # whoever started us starts us again
        tokens = Tokens(service.engine.store)
        check_listening(config.listen.host, tokens, url=config.listen.url)
        for group in groups:
            used = group.watches[group.calibration].calibration
            if used.threshold != group.watch.calibration.threshold:
                _say(
                    f"{group.name}: in force is {used.budget}, h = {used.threshold:.4g}; a threshold changes by a proposal that somebody takes"
                )
        if resting := service.engine.entities.resting:
            name, home = next(iter(resting.items()))
            _say(
                f"{len(resting)} kept {'entity is' if len(resting) == 1 else 'entities are'} not watched and their rows are refused: their group is not "
                f"in the configuration, such as {home!r} of {name!r}. Is it the model that the folder began with?"
            )
        if service.engine.replayed:
            _say(f"{service.engine.replayed} rows of the log scored again")

        def ready(url: str) -> None:
            service.settings.url = service.settings.url or url
            _say(f"listening on {url} ({len(service.engine.cells)} entities); open it in a browser")

        on_hangup(service, path, _say)
        made = make_app(service, tokens, more=more_routes(service))
        keys = [Path(name) if name else None for name in (config.listen.certificate, config.listen.key)]
        host, port = config.listen.host, config.listen.port
        listen(made, host=host, port=port, certificate=keys[0], key=keys[1], ready=ready, service=service)
        if service.broken:
            raise typer.Exit(1)


def _demo(data: Path | None, host: str, port: int) -> None:
    import tempfile

    from tisat_serve.api.app import make_app
    from tisat_serve.demo import DemoSource, demo_watch
    from tisat_serve.engine.group import Group
    from tisat_serve.runner import check_listening, listen, more_routes, running
    from tisat_serve.security import Tokens
    from tisat_serve.service import Settings

    _say("fitting a model on generated pumps ...")
    group = Group("pumps", demo_watch(), silent_after=30.0)
    _say("30 pumps, one row a second; the past quarter of an hour first, then a fault about every 18 seconds")
    with (
        tempfile.TemporaryDirectory(prefix="tisat-demo-") as folder,
        running(data or Path(folder), [group], parts=[DemoSource()], settings=Settings(host=host)) as service,
    ):
        tokens = Tokens(service.engine.store)
        check_listening(host, tokens)
        made = make_app(service, tokens, more=more_routes(service))
        listen(made, host=host, port=port, ready=lambda url: _say(f"listening on {url}; open it in a browser"))


def _names_one(match: str) -> bool:
    """Whether a pattern is the name of one entity: each of its special characters is in brackets, as ``glob.escape`` writes them."""
    return not any(sign in re.sub(r"\[[*?[]\]", "", match) for sign in "*?[")


def _dry_run(config: Config, entities: int, path: Path | None) -> None:
    from tisat_serve.config import groups_of, parts_of, settings_of
    from tisat_serve.folder.backup import estimate
    from tisat_serve.runner import check_listening
    from tisat_serve.security import Tokens
    from tisat_serve.store import FILE, Store

    settings_of(config)
    parts_of(config)
    if (Path(config.data) / FILE).is_file():
        with Store(config.data, beside=True) as store:
            check_listening(config.listen.host, Tokens(store), url=config.listen.url)
    else:
        check_listening(config.listen.host, None, url=config.listen.url)
    groups = groups_of(config, say=_say)
    _say_budget(groups, path)
    counts = [1 if _names_one(group.match) else entities for group in groups]
    days = [group.retention / 86400.0 for group in groups]
    measured: dict[object, dict[str, float]] = {}  # models alike in detector and channels are measured once
    sizes = []
    for group, count, kept_days in zip(groups, counts, days, strict=True):
        kind = (type(group.watch.detector), len(group.watch.channels), group.watch.period, count, kept_days)
        if kind not in measured:
            measured[kind] = estimate(group.watch, entities=count, days=kept_days)
        sizes.append(measured[kind])
    whole = {name: sum(size[name] for size in sizes) for name in sizes[0]} | {
        "memory_bytes": max(size["memory_bytes"] for size in sizes)  # of this process, with all models
    }
    kept = f"{min(days):g}" if min(days) == max(days) else f"{min(days):g} to {max(days):g}"
    if len(groups) > 1:
        typer.echo(f"{len(groups)} groups: {sum(counts)} entities")
        _echo_needs(whole, kept)
    for group, count, size in zip(groups, counts, sizes, strict=True):
        each = f", {size['disk_bytes'] / 1e6:.0f} MB of disk" if len(groups) > 1 else ""
        typer.echo(
            f"group {group.name}: {count} {'entity' if count == 1 else 'entities'} x {len(group.watch.channels)} channels, a row every {group.watch.period or 60:g} s each{each}"
        )
    if len(groups) == 1:
        _echo_needs(whole, kept)


def _echo_needs(size: Mapping[str, float], days: str) -> None:
    here = size["rows_per_second_needed"] / size["share_of_a_core"]
    typer.echo(
        f"  rows/s     {size['rows_per_second_needed']:.1f} needed, {here:.0f} scored and written here ({size['share_of_a_core']:.1%} of a core)"
    )
    typer.echo(f"  memory     {size['memory_bytes'] / 1e6:.0f} MB")
    typer.echo(f"  disk       {size['disk_bytes'] / 1e9:.2f} GB for {days} days of history")
    typer.echo(f"  restart    {size['restart_seconds']:.0f} s after a kill, beside the start of Python")


def _say_budget(groups: Sequence[Group], path: Path | None) -> None:
    """Say what the budget is of one machine and of all, where each has a model of its own."""
    from tisat.cli.machines import fleet_words

    budgets = {group.watch.calibration.budget for group in groups}
    if len(groups) > 1 and len(budgets) == 1 and all(_names_one(group.match) for group in groups):
        budget = budgets.pop()
        shared = f"'{budget} over {len(groups)} machines'"
        _say(
            fleet_words(
                budget, len(groups), share=f"--budget {shared}" if path is None else f"budget = {shared} in {path}"
            )
        )


from tisat_serve.cli import feedback as _feedback  # noqa: E402, F401 - more verbs of the same command
from tisat_serve.cli import folder as _folder  # noqa: E402, F401

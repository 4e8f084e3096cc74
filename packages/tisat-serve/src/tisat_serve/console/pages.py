"""The pages: fleet, entity, alarms, alarm, budget, what-if, proposals, care.

Every view is an address.

Pages are rendered whole, so that they can be read without a script; scripts draw charts, send what a person decides and keep
what is on the page fresh. Nothing is loaded from another host, and no script or style is inline: the policy of
:mod:`tisat_serve.security` forbids both.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tisat import __version__
from tisat.errors import InputError, NotFoundError
from tisat.io.timestamps import read_time
from tisat.utils.types import JsonDict
from tisat_serve.console import labels as words
from tisat_serve.console.heat_rows import STEPS, joined, select_rows
from tisat_serve.service import Service
from tisat_serve.structs import EntityInfo
from tisat_serve.views.wrong_clocks import newest_time

ALL_ROWS = 120  # entities on the page of all shards
LINES = 200  # of the list of alarms, one for each that recurs
ROWS = 60  # entities on one page of the heat map
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
UPLOT = {"uplot.js": "uPlot.iife.min.js", "uplot.css": "uPlot.min.css"}
DAY = 86400.0
USUAL = 700  # rows of one entity that a page shows unless told otherwise
LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")  # browsers read "\\" as "/" and drop tabs and line ends
AROUND = 120  # rows shown before and after an alarm


def _static() -> dict[str, tuple[bytes, str]]:
    """Every file that may be asked for, read once: nothing from an address reaches the file system."""
    static_files = {}
    for file in files(__package__).joinpath("static").iterdir():
        kind = KINDS.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            static_files[file.name] = (file.read_bytes(), kind)
    vendored = files("tisat.plotting.static")
    for name, source in UPLOT.items():
        static_files[name] = (vendored.joinpath(source).read_bytes(), KINDS["." + name.rpartition(".")[2]])
    return static_files


class Console:
    """The pages of one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.view = service.view
        self.static = _static()
        self.environment = Environment(
            loader=PackageLoader("tisat_serve.console"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.environment.filters |= {
            "number": words.number,
            "moment": words.moment,
            "clock": words.clock,
            "stretch": words.stretch,
            "level": words.level,
            "plain": msgspec.to_builtins,
        }
        self.environment.globals |= {
            "version": __version__,
            "STATUS": words.STATUS,
            "LABELS": words.LABELS,
            "RANGES": list(words.RANGES),
            "has_peers": lambda: bool(service.settings.peers),
        }

    # ------------------------------------------------------------------ answers

    def page(self, name: str, request: Request, *, code: int = 200, **values: object) -> Response:
        """A page from its template."""
        template = self.environment.get_template(f"{name}.html")
        query = {key: value for key, value in request.query_params.items() if value}

        def here(**changed: object) -> str:
            """The present address with other parameters."""
            merged = {key: value for key, value in {**query, **changed}.items() if value is not None}
            return str(request.url.replace(query="").path) + ("?" + urlencode(merged) if merged else "")

        author = request.scope.get("tisat.author") or ""
        content = template.render(
            page=name, here=here, author="" if author == "local" else author, query=query,
            problems=self.service.problems if author else [], **values,  # nothing to who is not logged in
        )  # fmt: skip
        return HTMLResponse(content, code, {"Cache-Control": "no-store"})

    def guarded(self, render: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """A page whose refusals are pages too."""

        def page_or_error(request: Request) -> Response:
            try:
                return render(request)
            except (InputError, ValueError) as error:
                code = 404 if isinstance(error, NotFoundError) else 400
                return self.page("error", request, code=code, sentence=str(error))

        return page_or_error

    def asset(self, request: Request) -> Response:
        """A script, a style or a picture."""
        found = self.static.get(request.path_params["name"])
        if found is None:
            return self.page("error", request, code=404, sentence="There is nothing at this address.")
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "max-age=3600"})

    # ------------------------------------------------------------------ what pages ask about

    def _newest(self, entities: list[EntityInfo]) -> float | None:
        return newest_time((one.time for one in entities), self.service.engine.clock())

    def _period(self, group: str = "") -> float:
        """Seconds between two rows: of a group, or the shortest of all."""
        groups = self.service.engine.groups
        periods = [groups[name].watch.period for name in ([group] if group in groups else groups)]
        return min((period for period in periods if period), default=60.0)

    def _usual(self, group: str = "") -> str:
        """The range that shows about :data:`USUAL` rows of an entity."""
        wanted = USUAL * self._period(group)
        return next((name for name, size in words.RANGES.items() if size >= wanted), "30d")

    def _whole(self, entities: list[EntityInfo]) -> str:
        """The shortest range that holds the kept history, so that a picture of it is not all at one end."""
        oldest, newest = self.view.oldest(), self._newest(entities)
        kept = 0.0 if oldest is None or newest is None else newest - oldest
        return next((name for name, size in words.RANGES.items() if size >= kept), "30d")

    def _span(self, request: Request, newest: float | None, default: str) -> tuple[str, float | None, float | None]:
        """The stretch of time an address speaks of: its name, its start and its stop."""
        start, stop = self._free(request)
        if start is not None and stop is not None and start < stop:
            return "", start, stop
        name = request.query_params.get("range", default)
        if name == "all" or newest is None:
            return "all", None, None
        if name not in words.RANGES:
            raise InputError(f"The range must be one of {', '.join(words.RANGES)} or all. Got {name!r} instead.")
        return name, newest - words.RANGES[name], newest + 1.0

    @staticmethod
    def _free(request: Request) -> tuple[float | None, float | None]:
        """The stretch an address says itself: ``start`` and ``stop`` in seconds, or ``from`` and ``to`` by a reader's clock."""
        if not (request.query_params.get("from") and request.query_params.get("to")):
            start, stop = (_real(request, name) for name in ("start", "stop"))
            return start, stop
        shift = 60.0 * (_real(request, "zone") or 0.0)
        start, stop = (read_time(request.query_params[name]).value * 1e-9 - shift for name in ("from", "to"))
        if start >= stop:
            raise InputError("A range must begin before it ends. It does not.")
        return start, stop

    # ------------------------------------------------------------------ the pages

    def fleet(self, request: Request) -> Response:
        """Entities x time."""
        every = self.view.entities()
        search, status = request.query_params.get("search", ""), request.query_params.get("status", "")
        group = request.query_params.get("group", "")
        entities = self.view.entities(search=search, status=status)
        if group:
            entities = [one for one in entities if one.group == group]
        order = {name: place for place, name in enumerate(words.STATUS)}
        entities.sort(key=lambda one: (order.get(one.status, 9), -(one.ratio or 0.0), one.name))
        pages = max(1, -(-len(entities) // ROWS))
        number = min(max(_whole(request, "page", 1), 1), pages)
        visible = entities[(number - 1) * ROWS : number * ROWS]
        span, start, stop = self._span(request, self._newest(every), self._usual(group))
        heat = self.view.heat_map(start=start, stop=stop, steps=STEPS, only={one.name for one in visible})
        return self.page(
            "fleet", request, entities=visible, heat=select_rows(heat, [one.name for one in visible]), span=span,
            counts=self.view.counts(), total=len(every), found=len(entities), number=number, pages=pages, search=search,
            together=[one for one in self.view.incidents(active=True, limit=9) if len(one.entities) > 1],
            status=status, group=group, groups=sorted({one.group for one in every}), week=self._week(every),
            ahead=self.view.ahead(), alarms=self.view.alarms(active=True, limit=9), example="" if every else self._example(request),
        )  # fmt: skip

    def _example(self, request: Request) -> str:
        """A line for a shell that sends one row with the model's own channels."""
        watch = next(iter(self.service.engine.groups.values())).watch
        middle = (float(value) for value in watch.detector.usual_[0])
        values = {
            name: float(f"{value:.6g}") if math.isfinite(value) else 0.0
            for name, value in zip(watch.channels, middle, strict=True)
        }
        row = shlex.quote(json.dumps([{"entity": "machine-1", "values": values}]))
        example = (
            ""
            if request.scope.get("tisat.author") in ("local", "", None)
            else ' -H "Authorization: Bearer $TISAT_TOKEN"'
        )
        return f"curl -H 'Content-Type: application/json'{example} -d {row} {request.url.scheme}://{request.url.netloc}/api/v1/rows"

    def _week(self, entities: list[EntityInfo]) -> Any:
        newest = self._newest(entities)
        return self.view.ledger(start=None if newest is None else newest - 7 * DAY, stop=None).fleet

    def entity(self, request: Request) -> Response:
        """One entity."""
        entity = self.view.entity(request.path_params["name"])
        span, start, stop = self._span(request, entity.time, self._usual(entity.group))
        channels = min(max(_whole(request, "channels", 6), 1), 1000)
        history = self.view.history(entity.name, start=start, stop=stop, points=400, channels=channels)
        return self.page(
            "entity", request, entity=entity, history=history, span=span, channels=channels,
            all_channels=len(self.service.engine.groups[entity.group].watch.channels),
            alarms=self.view.alarms(entity=entity.name, limit=50),
        )  # fmt: skip

    def alarms(self, request: Request) -> Response:
        """Alarms, the latest first."""
        query = request.query_params
        label, entity, sort = query.get("label", ""), query.get("entity", ""), query.get("sort", "")
        active = {"on": True, "over": False}.get(query.get("active", ""))
        show = query.get("show", "lines")
        start, stop = self._free(request)
        filters: JsonDict = {"entity": entity, "label": label, "sort": sort, "start": start, "stop": stop}
        if active is not None:
            filters["active"] = active
        table = {"lines": "recurrences", "incidents": "incidents"}.get(show, "alarms")
        told = {key: str(value).lower() if value is True or value is False else value for key, value in filters.items()}
        csv = f"/api/v1/{table}?" + urlencode(
            {"format": "csv", **{k: v for k, v in told.items() if v not in ("", None)}}
        )
        alarms, again, more, groups = [], {}, "", []
        if show == "incidents":
            groups = self.view.incidents(**filters)
        elif show == "lines":
            lines = self.view.recurrences(**filters)[:LINES]
            alarms, again = [one.last for one in lines], {one.last.id: one.words for one in lines if one.words}
        else:
            alarms = self.view.alarms(**filters, limit=101, before=query.get("before", ""))
            alarms, more = alarms[:100], alarms[99].id if len(alarms) > 100 else ""
        return self.page(
            "alarms", request, alarms=alarms, again=again, incidents=groups, more=more, label=label, entity=entity,
            sort=sort, active=query.get("active", ""), show=show, start=start, stop=stop, csv=csv,
        )  # fmt: skip

    def alarm(self, request: Request) -> Response:
        """One alarm, to decide on."""
        whole = self.view.alarm(request.path_params["id"])
        alarm = whole.alarm
        if alarm.entity not in self.service.engine.cells:
            raise NotFoundError(
                f"The service must know the entity of an alarm to show it. {alarm.entity!r} was handed over to another one."
            )
        now = self.view.entity(alarm.entity).time
        end = max(alarm.raised, now or 0.0) if alarm.cleared is None else alarm.cleared
        around = max(0.5 * (end - alarm.onset), AROUND * self._period(alarm.group))
        stop = end + around if now is None else min(end + around, max(now, end)) + self._period(alarm.group)
        history = self.view.history(alarm.entity, start=alarm.onset - around, stop=stop, points=300, channels=4)
        return self.page("alarm", request, whole=whole, alarm=alarm, history=history)

    def budget(self, request: Request) -> Response:
        """The ledger."""
        entities = self.view.entities()
        span, start, stop = self._span(request, self._newest(entities), "7d")
        ledger = self.view.ledger(start=start, stop=stop)
        lines = [ledger.fleet, *ledger.groups, *ledger.entities]
        top = max([line.raised_high for line in lines] + [line.allowed for line in lines] + [1.0])
        worst = sorted(ledger.entities, key=lambda line: (not line.over, not line.doubt, -line.raised, line.name))
        own = max([line.raised_high for line in ledger.entities] + [line.allowed for line in ledger.entities] + [1.0])
        return self.page(
            "budget", request, ledger=ledger, span=span, shown=worst[:200], hidden=max(0, len(worst) - 200),
            fleet_bar=words.bar_of(ledger.fleet, top), group_bars=[words.bar_of(line, top) for line in ledger.groups],
            bars=[words.bar_of(line, own) for line in worst[:200]],
        )  # fmt: skip

    def whatif(self, request: Request) -> Response:
        """A slider over stored history."""
        entities = self.view.entities()
        groups = sorted({one.group for one in entities})
        entity, group = request.query_params.get("entity", ""), request.query_params.get("group", "")
        if not entity and not group and groups:
            group = groups[0]
        entity_info = self.view.entity(entity) if entity else None
        span, start, stop = self._span(request, self._newest(entities), self._whole(entities))
        budgets = {one.group: one for one in self.view.budgets()}
        budget = budgets.get(entity_info.group if entity_info else group)
        threshold = self.view.calibrated(entity_info.name) if entity_info else budget.threshold if budget else None
        result = None if threshold is None else self.view.what_if(
            entity=entity, group="" if entity else group, threshold=threshold, budget=None, start=start, stop=stop
        )  # fmt: skip
        return self.page(
            "whatif", request, entities=entities, groups=groups, entity=entity, group=group, threshold=threshold,
            found=result, span=span, start=start, stop=stop, budget=budget,
        )  # fmt: skip

    def proposals(self, request: Request) -> Response:
        """Proposals, in force only once they are taken."""
        return self.page(
            "proposals", request, proposals=self.view.proposals(), entities=self.view.entities(),
            journal=self.view.journal()[:40], groups=list(self.service.engine.groups),
        )  # fmt: skip

    def care(self, request: Request) -> Response:
        """Maintenance windows and rules that hold messages back."""
        view = self.view
        return self.page("care", request, pauses=view.pauses(ended=True), rules=view.rules(ended=True), patterns=view.patterns(ended=True))  # fmt: skip

    def shards(self, request: Request) -> Response:
        """The fleets of all shards on one page, read from the others.

        One that is down is said to be.
        """
        peers = self.service.peers
        shards = peers.shards()
        order = {name: place for place, name in enumerate(words.STATUS)}
        rows = [
            (f"{one.name} @{shard.address}", shard.address, shard.shard or shard.address or "here", shard.up, one)
            for shard in shards
            for one in shard.entities
        ]
        rows.sort(key=lambda row: (row[3], order.get(row[4].status, 9), -(row[4].ratio or 0.0), row[4].name))
        shard_rows = rows[:ALL_ROWS]
        newest = self._newest([row[4] for row in rows])
        span, start, stop = self._span(request, newest, self._usual())
        if start is None or stop is None:
            stop = newest or self.service.engine.clock()
            start = stop - DAY
        maps = peers.heat_maps(shards, start, stop, STEPS)
        heat = joined(maps, [row[:2] for row in shard_rows if row[3]], start, stop)
        return self.page(
            "shards", request, shards=shards, rows=shard_rows, hidden=len(rows) - len(shard_rows), span=span, heat=heat,
            down=sum(not shard.up for shard in shards), total=len([row for row in rows if row[3]]),
            on=sum(shard.counts.get("alarm", 0) for shard in shards),
            alarms=sorted(
                ((shard.address, shard.shard or shard.address or "here", one) for shard in shards for one in shard.alarms),
                key=lambda row: -row[2].raised,
            )[:20],
        )  # fmt: skip

    def login(self, request: Request) -> Response:
        """The page that asks for a token."""
        wanted = request.query_params.get("next", "/")
        return self.page("login", request, next=wanted if LOCAL_PATH.fullmatch(wanted) else "/")


def _whole(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 7 else default


def _real(request: Request, name: str) -> float | None:
    value = request.query_params.get(name, "")
    try:
        number = float(value) if value else None
    except ValueError:
        raise InputError(f"The {name} of an address must be seconds since 1970. Got {value!r} instead.") from None
    if number is not None and not abs(number) < 1e12:
        raise InputError(f"The {name} of an address must be seconds since 1970. Got {value!r} instead.")
    return number


def routes(service: Service) -> list[BaseRoute]:
    """The addresses of the console.

    Parameters
    ----------
    service : Service
    """
    console = Console(service)
    table: list[tuple[str, Callable[[Request], Response]]] = [
        ("/", console.fleet),
        ("/entity/{name:path}", console.entity),
        ("/alarms", console.alarms),
        ("/alarm/{id}", console.alarm),
        ("/budget", console.budget),
        ("/whatif", console.whatif),
        ("/proposals", console.proposals),
        ("/care", console.care),
        ("/shards", console.shards),
        ("/login", console.login),
    ]
    found: list[BaseRoute] = [Route(path, console.guarded(render)) for path, render in table]
    found.append(Route("/static/{name}", console.asset))
    found.append(Route("/favicon.ico", lambda _: RedirectResponse("/static/icon.svg")))
    return found

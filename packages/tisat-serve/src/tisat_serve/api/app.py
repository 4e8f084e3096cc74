"""The application: routes from the table, rows in, events out, and the checks every request passes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time as clocks
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from tisat.errors import TisatError
from tisat.utils.near_names import meant
from tisat.utils.types import JsonDict
from tisat_serve.api.bodies import BodyError, answer, body_of, refusal, rows_endpoint
from tisat_serve.api.openapi import description
from tisat_serve.api.table import ENDPOINTS, Endpoint
from tisat_serve.api.tables_as_csv import as_csv, rows_in
from tisat_serve.security import COOKIE, Guard, Tokens
from tisat_serve.service import Service
from tisat_serve.views.band import band
from tisat_serve.views.prometheus import Metrics

HEARTBEAT = 15.0  # seconds between two signs of life on an event stream
LISTENERS = 200  # event streams at once
WAITING_EVENTS = 256  # events one listener may be behind


def check_names(request: Request, one: Endpoint) -> None:
    """Refuse a parameter that this address does not have: what is ignored looks as if it had been done."""
    known = [*sorted(one.query.__struct_encode_fields__), "format"]
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        must = f"The parameters of {one.path} must be among {', '.join(known)}. Got {unknown[:40]!r} instead."
        raise BodyError(must, 422)


def check_word(error: msgspec.ValidationError, kind: object) -> None:
    """Refuse a word that a field or parameter does not take with those that it does."""
    found = re.search(r"enum value '(.*)' - at `\$\.(\w+)`", str(error), re.DOTALL)
    if found is not None:
        word, name = found.groups()
        fields = msgspec.inspect.type_info(kind).fields  # type: ignore[attr-defined]
        words = [str(one) for field in fields if field.encode_name == name for one in field.type.values if one]
        must = f"{name!r} must be one of {', '.join(words)}. Got '{word[:40]}' instead.{meant(word, words)}"
        raise BodyError(must, 422) from None


def read_fields(content: bytes, one: Endpoint) -> object:
    """Read the body of a request; one that does not fit is refused with the fields there are."""
    try:
        return msgspec.json.decode(content, type=one.body)
    except msgspec.ValidationError as error:
        check_word(error, one.body)
        fields = ", ".join(getattr(one.body, "__struct_encode_fields__", ()))
        must = f"The body of {one.path} must have fields of {fields}, as /openapi.json says. It has not: {error}."
        raise BodyError(must, 422) from None


def read_query(request: Request, one: Endpoint) -> object:
    """Read the parameters of a request."""
    try:
        return msgspec.convert(dict(request.query_params), one.query, strict=False)
    except msgspec.ValidationError as error:
        check_word(error, one.query)
        raise


def _handler(service: Service, one: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            check_names(request, one)
            query = read_query(request, one)
            for name in request.query_params:
                if getattr(query, name, 0) is None:
                    raise msgspec.ValidationError(f"the parameter {name[:40]!r} must be left out instead of null")
            body = None
            if one.body is not None:
                if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                    raise BodyError("The Content-Type must be application/json. Got another one.", 415)
                body = read_fields(await body_of(request, 1 << 20), one)
            author = request.scope.get("tisat.author", "local")
            result = await run_in_threadpool(one.call, service, dict(request.path_params), query, body, author)
        except (TisatError, msgspec.DecodeError) as error:
            return refusal(error)
        wanted = request.query_params.get("format")
        rows = rows_in(result) if wanted == "csv" else None
        if wanted == "csv" and rows is None:
            return refusal(BodyError(f"{one.path} must be had as JSON: it is no table. Got format='csv'.", 422))
        if rows is not None:
            name = request.url.path.rstrip("/").rpartition("/")[2]
            headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
            return Response(await run_in_threadpool(as_csv, rows), 200, headers, "text/csv; charset=utf-8")
        return answer(result)

    return handle


def _table(service: Service) -> list[BaseRoute]:
    """One route for each address, whatever it is asked: a wrong method is told all the right ones (Allow)."""
    paths: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
    for one in ENDPOINTS:
        paths.setdefault(one.path, {})[one.method] = _handler(service, one)

    def route(path: str, handlers: dict[str, Callable[[Request], Awaitable[Response]]]) -> BaseRoute:
        async def handle(request: Request) -> Response:
            return await handlers["GET" if request.method == "HEAD" else request.method](request)

        return Route(path, handle, methods=list(handlers))

    return [route(path, handlers) for path, handlers in paths.items()]


class Events:
    """Server-sent events: what happens, as it happens.

    A listener that falls behind is told so and goes on.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.queues: set[asyncio.Queue[JsonDict]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None
        service.engine.listeners.append(self.publish)

    def publish(self, event: JsonDict) -> None:
        """From any thread."""
        if self.loop is not None and self.queues:
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._spread, event)

    def _spread(self, event: JsonDict) -> None:
        for one in self.queues:
            if one.full():
                one.get_nowait()
            one.put_nowait(event)

    async def listen(self, request: Request) -> Response:
        """A stream that goes on until the client leaves or the service stops."""
        if len(self.queues) >= LISTENERS:
            return answer(
                {"error": f"No more than {LISTENERS} may listen at once. Close one, or ask again later."}, 503
            )
        self.loop = asyncio.get_running_loop()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._stream(request), headers=headers, media_type="text/event-stream")

    async def _stream(self, request: Request) -> AsyncIterator[bytes]:
        mine: asyncio.Queue[JsonDict] = asyncio.Queue(WAITING_EVENTS)
        self.queues.add(mine)
        try:
            yield b": hello\n\n"
            beat = clocks.monotonic()
            while not await request.is_disconnected() and not self.service._stopping:
                try:
                    event = await asyncio.wait_for(mine.get(), 1.0)
                except TimeoutError:
                    if clocks.monotonic() - beat > HEARTBEAT:
                        beat = clocks.monotonic()
                        yield b": beat\n\n"
                    continue
                yield b"event: " + str(event["what"]).encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"
        finally:
            self.queues.discard(mine)


def make_app(service: Service, tokens: Tokens, *, more: list[BaseRoute] | None = None) -> Starlette:
    """The application around a service.

    Parameters
    ----------
    service : Service
    tokens : Tokens
    more : list of routes, optional
        The console's, and what sources bring.
    """
    metrics = Metrics(service)
    document = msgspec.json.encode(description())

    async def healthz(_: Request) -> Response:
        return PlainTextResponse(service.broken or "ok\n", 500 if service.broken else 200)

    async def readyz(_: Request) -> Response:
        if service.ready:
            return PlainTextResponse("ready\n")
        why = "the disk is full\n" if service.engine.store.full else service.broken or "not ready\n"
        return PlainTextResponse(why, 503)

    async def figures(_: Request) -> Response:
        return Response(await run_in_threadpool(metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def series(request: Request) -> Response:
        try:
            content = await run_in_threadpool(band, service, request.query_params.get("match", "*"))
        except TisatError as error:
            return refusal(error)
        return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(_: Request) -> Response:
        return Response(document, media_type="application/json")

    async def session(request: Request) -> Response:
        """A console's session: the token in a cookie no script can read."""
        response = answer({"done": True})
        if request.method == "DELETE":
            response.delete_cookie(COOKIE)
            return response
        try:
            token = msgspec.json.decode(await body_of(request, 4096), type=dict[str, str]).get("token", "")
        except (TisatError, msgspec.DecodeError) as error:
            return refusal(error)
        allowed, _ = tokens.may(token, "read")
        if not allowed and tokens:
            full = await request.scope["tisat.refuse"]("the console's login")
            if full is not None:
                return answer({"error": full[1]}, full[0], {"Retry-After": "5"})
            return answer(
                {"error": "The token must be one with the scope 'read', 'label' or 'admin'. This one is not."}, 401
            )
        response.set_cookie(
            COOKIE, token, httponly=True, samesite="strict", secure=request.scope["tisat.secure"], max_age=30 * 86400
        )
        return response

    routes: list[BaseRoute] = _table(service)
    routes += [
        Route("/api/v1/rows", rows_endpoint(service), methods=["POST"]),
        Route("/api/v1/events", Events(service).listen),
        Route("/api/v1/session", session, methods=["POST", "DELETE"]),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", figures),
        Route("/metrics/band", series),
        Route("/openapi.json", openapi),
        *(more or []),
    ]

    async def http_error(request: Request, error: Exception) -> Response:
        code, headers = getattr(error, "status_code", 500), getattr(error, "headers", None) or {}
        methods = " or ".join(sorted(headers.get("Allow", "").split(", ")))
        said = {
            404: "There is nothing at this address.",
            405: f"The method of this address must be {methods}. Got {request.method[:20]} instead.",
        }
        return answer({"error": said.get(code, str(getattr(error, "detail", error)))}, code, headers)

    async def server_error(_: Request, error: Exception) -> Response:
        return answer({"error": f"A fault of the service, which its log tells more of: {type(error).__name__}."}, 500)

    async def client_left(_: Request, error: Exception) -> Response:
        return answer({"error": "The client left."}, 400)

    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, service=service, tokens=tokens, metrics=metrics)],
        exception_handlers={HTTPException: http_error, ClientDisconnect: client_left, Exception: server_error},
    )

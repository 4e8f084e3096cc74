"""Check every request before anything else: whose it is, what it may do; and measure how long the answer took."""

from __future__ import annotations

import asyncio
import time as clocks
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Match, compile_path

from tisat_serve.api.table import ENDPOINTS
from tisat_serve.security import FORWARDED, LOOPBACK, MAKE_ONE, FailedLogins, Tokens, is_loopback, token_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tisat_serve.service import Service
    from tisat_serve.views.prometheus import Metrics

HEALTH = ("/healthz", "/readyz")  # of everybody: they say nothing but yes or no
OPEN = (*HEALTH, "/login", "/static/", "/api/v1/session")  # no token needed
INGEST = ("/api/v1/rows", "/api/v1/write", "/api/v2/write", "/write", "/v1/metrics")
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'",
    ),
)
HSTS = (b"strict-transport-security", b"max-age=31536000")
REQUESTS = 1000  # answered at once, beside health checks
WAITING = 20  # failed logins whose answers wait at once; more are turned away
_LABEL = [compile_path(one.path)[0] for one in ENDPOINTS if one.scope == "label"]


def scope_of(method: str, path: str) -> str:
    """Find the scope a request needs; empty: none."""
    if path in OPEN or path.startswith("/static/"):
        return ""
    if method == "POST" and any(pattern.match(path) for pattern in _LABEL):
        return "label"
    if path in INGEST and method == "POST":
        return "ingest"
    return "read" if method in ("GET", "HEAD") else "admin"


class Guard:
    """See the module."""

    def __init__(self, app: ASGIApp, *, service: Service, tokens: Tokens, metrics: Metrics) -> None:
        self.app, self.service, self.tokens, self.metrics = app, service, tokens, metrics
        self.failures = FailedLogins(lambda sentence: service.say(sentence))
        self._waiting = self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        begin = clocks.perf_counter()
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {name for name, _ in message["headers"]}
                more = [pair for pair in HEADERS if pair[0] not in names]
                message["headers"] = [*message["headers"], *more, *([HSTS] if self._secure(request) else [])]
            await send(message)

        scope["tisat.refuse"] = lambda what: self._slow(request, what)
        scope["tisat.secure"] = self._secure(request)
        self._running += 1
        wrong = self._check(request, scope)
        if wrong is not None and wrong[0] == 401 and token_of(request.headers, request.cookies) is not None:
            wrong = await self._slow(request, request.url.path) or wrong
        try:
            if wrong is None:
                await self.app(scope, receive, watched)
            else:
                from tisat_serve.api.app import answer

                code, sentence = wrong
                path = request.url.path
                if code == 401 and "text/html" in request.headers.get("accept", "") and not path.startswith("/api/"):
                    whole = path + (f"?{request.url.query}" if request.url.query else "")
                    way_in = RedirectResponse(f"/login?next={quote(whole, safe='')}", 303)
                    await way_in(scope, receive, watched)
                    return
                headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(code)
                await answer({"error": sentence}, code, headers)(scope, receive, watched)
        finally:
            self._running -= 1
            route: object = scope.get("route")
            name = getattr(route, "path", "other")
            if name != "/api/v1/events":
                self.metrics.requests.labels(name, str(status)).observe(clocks.perf_counter() - begin)

    def _check(self, request: Request, scope: Scope) -> tuple[int, str] | None:
        """Why a request is turned away."""
        if request.url.path in HEALTH:
            return None
        if self._running > REQUESTS:
            return 503, f"No more than {REQUESTS} requests are answered at once. Try again in a moment."
        guarded = bool(self.tokens)
        if not guarded:
            why = self._not_local(request)
            if why:
                return 403, f"{why} Make a token with: {MAKE_ONE}."
        origin = request.headers.get("origin")
        ours = {request.headers.get("host", ""), urlsplit(self.service.settings.url).netloc} - {""}
        if request.method not in ("GET", "HEAD") and origin and urlsplit(origin).netloc not in ours:
            return (
                403,
                "A change must be asked for from our own pages. This request comes from another site; "
                "behind a proxy, set [listen] url to the address that people type.",
            )
        needed = scope_of(request.method, request.url.path)
        if not needed:
            return None
        if not guarded:
            scope["tisat.author"] = "local"
            return None
        token = token_of(request.headers, request.cookies)
        allowed, scope["tisat.author"] = self.tokens.may(token, needed)
        if allowed:
            return None
        if not scope["tisat.author"]:
            return 401, "This needs a token: send 'Authorization: Bearer ...', made with tisat serve token."
        if all(one.matches(scope)[0] == Match.NONE for one in scope["app"].routes):
            return None  # nothing is there for any token, and the application says so
        return 403, f"The token {scope['tisat.author']!r} must have the scope {needed!r}. It has not."

    def _not_local(self, request: Request) -> str:
        """Find why a request is refused while no token is in force; empty: it comes from this machine."""
        settings = self.service.settings
        reached = urlsplit(settings.url).hostname or settings.host
        if not is_loopback(settings.host) or not is_loopback(reached):
            return "No token is in force, and this service can be reached from other machines: everything is refused."
        peer = request.client.host if request.client is not None else ""
        if not is_loopback(peer):
            return "Without a token only this machine is served. This request comes from another one."
        if any(name in request.headers for name in FORWARDED):
            return "Without a token only this machine is served. This request was forwarded by a proxy."
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name.lower() not in LOOPBACK:
            return "Without a token only this machine is served: the Host must be localhost."
        return ""

    async def _slow(self, request: Request, what: str) -> tuple[int, str] | None:
        """Log a failed login and wait; a refusal where too many wait already."""
        if self._waiting >= WAITING:
            return 429, f"No more than {WAITING} failed logins may wait for their answers. Try again in a moment."
        peer = request.client.host if request.client is not None else "an unknown address"
        delay = self.failures.note(peer, what)
        self._waiting += 1
        try:
            await asyncio.sleep(delay)
        finally:
            self._waiting -= 1
        return None

    def _secure(self, request: Request) -> bool:
        """Check whether browsers reach us over TLS, ours or a proxy's."""
        return request.url.scheme == "https" or self.service.settings.url.startswith("https://")

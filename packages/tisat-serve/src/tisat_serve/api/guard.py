"""What every request passes before anything else: whose it is, what it may do, and how long the answer took."""

from __future__ import annotations

import time as clocks
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse

from tisat_serve.security import LOOPBACK, Tokens, token_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tisat_serve.metrics import Metrics
    from tisat_serve.service import Service

OPEN = ("/healthz", "/readyz", "/login", "/static/", "/api/v1/session")  # no token needed
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


def scope_of(method: str, path: str) -> str:
    """The scope a request needs; empty: none."""
    if path.startswith(OPEN):
        return ""
    if path in INGEST and method == "POST":
        return "ingest"
    return "read" if method in ("GET", "HEAD") else "admin"


class Guard:
    """See the module."""

    def __init__(self, app: ASGIApp, *, service: Service, tokens: Tokens, metrics: Metrics) -> None:
        self.app, self.service, self.tokens, self.metrics = app, service, tokens, metrics

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
                message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in names)]
            await send(message)

        wrong = self._check(request, scope)
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
                headers = {"WWW-Authenticate": "Bearer"} if code == 401 else None
                await answer({"error": sentence}, code, headers)(scope, receive, watched)
        finally:
            route: Any = scope.get("route")
            name = getattr(route, "path", "other")
            if name != "/api/v1/events":
                self.metrics.requests.labels(name, str(status)).observe(clocks.perf_counter() - begin)

    def _check(self, request: Request, scope: Scope) -> tuple[int, str] | None:
        """Why a request is turned away."""
        if not self.tokens:
            host = request.headers.get("host", "")
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name.lower() not in LOOPBACK:
                return (
                    403,
                    "Without a token the service is for this machine alone: the Host must be localhost. Make one with tisat serve token.",
                )
        origin = request.headers.get("origin")
        if (
            request.method not in ("GET", "HEAD")
            and origin
            and urlsplit(origin).netloc != request.headers.get("host", "")
        ):
            return 403, "A change must be asked for from our own pages. This request comes from another site."
        needed = scope_of(request.method, request.url.path)
        if not needed:
            return None
        token = token_of(request.headers, request.cookies)
        allowed, scope["tisat.author"] = self.tokens.may(token, needed)
        if allowed:
            return None
        if not scope["tisat.author"]:
            return 401, "This needs a token: send 'Authorization: Bearer ...', made with tisat serve token."
        return 403, f"The token {scope['tisat.author']!r} must have the scope {needed!r}. It has not."

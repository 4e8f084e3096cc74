"""Decide who may do what: tokens with scopes, kept as hashes.

A guard before every request. Without a token only this machine is served.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
import time as clocks
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Match, compile_path

from tisat.errors import ConflictError, NotFoundError, ParameterError
from tisat_serve.api.bodies import answer
from tisat_serve.api.table import ENDPOINTS
from tisat_serve.store import Store

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tisat_serve.service import Service
    from tisat_serve.views.prometheus import Metrics

SCOPES = ("read", "ingest", "label", "admin")
IMPLIED = {"label": ("read",), "admin": SCOPES}  # who labels an alarm has to see it
COOKIE = "tisat_token"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
FIRST_DELAY, LONGEST_DELAY = 0.25, 5.0  # seconds before a failed login is answered: doubled each time
FORGIVEN = 60.0  # seconds after which failures of an address are forgotten
ADDRESSES = 1000  # addresses whose failures are remembered
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
MAKE_ONE = "tisat serve token --data DIR --name NAME --scope admin"


def is_loopback(host: str) -> bool:
    """Check whether an address is of this machine alone.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", "0.0.0.0", "testclient")]
    [True, True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def hash_token(token: str) -> str:
    """Hash a token for storage: tokens are long and random, so one round is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    """The tokens of a store, as they are now: an ended one is refused at once.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self._connection = store.open_reader()  # its own: a request never waits here for a long query

    def in_force(self) -> list[tuple[str, str, str]]:
        """Read the tokens that are in force: hash, name, scopes."""
        return self._connection.execute("SELECT hash, name, scopes FROM tokens WHERE ended IS NULL").fetchall()

    def may(self, token: str | None, scope: str) -> tuple[bool, str]:
        """Check whether a token allows a scope.

        The name of the token comes with it, empty where it is unknown.
        """
        mine = hash_token(token or "")
        role, name = "", ""
        for known, owner, scopes in self.in_force():
            if hmac.compare_digest(known, mine):
                role, name = scopes, owner
        granted = {one for part in role.split(",") for one in (part, *IMPLIED.get(part, ()))}
        return scope in granted, name


class FailedLogins:
    """Count failed logins by address: each is logged, and answered later than the one before.

    Parameters
    ----------
    log : callable
        Takes one sentence; the token is not in it.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._failures: dict[str, tuple[int, float]] = {}

    def record(self, address: str, what: str) -> float:
        """Record a failure; the seconds to wait before it is answered."""
        now = clocks.monotonic()
        count, last = self._failures.pop(address, (0, 0.0))
        count = 1 if now - last > FORGIVEN else count + 1
        self._failures[address] = (count, now)  # the last in order: the first is the one to forget
        if len(self._failures) > ADDRESSES:
            del self._failures[next(iter(self._failures))]
        if count & (count - 1) == 0:  # 1, 2, 4, 8 ...: a log that nobody can fill
            self._log(f"a token was refused from {address}, attempt {count}: {what}")
        return float(min(FIRST_DELAY * 2.0 ** min(count - 1, 10), LONGEST_DELAY))


def make_token(store: Store, name: str, scopes: list[str], now: float) -> str:
    """Make a token; it is shown once."""
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise ParameterError(
            f"The scopes of a token must be among {', '.join(SCOPES)}. Got {', '.join(wrong) or 'none'} instead.",
            parameter="scope",
        )
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise ParameterError(
            f"The name of a token must be 1 to 100 printable characters. Got {name[:40]!r} instead.", parameter="name"
        )
    if store.read("SELECT 1 FROM tokens WHERE name = ? AND ended IS NULL", (name,)):
        raise ConflictError(f"The name of a token must be free. {name!r} is in use; end it first with --end.")
    token = "tisat_" + secrets.token_urlsafe(32)
    with store.writing() as write:
        write.execute("DELETE FROM tokens WHERE name = ?", (name,))
        write.execute(
            "INSERT INTO tokens VALUES (NULL, ?, ?, ?, ?, NULL)", (name, ",".join(scopes), hash_token(token), now)
        )
    return token


def end_token(store: Store, name: str, now: float) -> None:
    """End a token: it is refused from the next request on."""
    with store.writing() as write:
        if not write.execute("UPDATE tokens SET ended = ? WHERE name = ? AND ended IS NULL", (now, name)).rowcount:
            raise NotFoundError(f"There must be a token of this name in force. Got {name[:60]!r}.")


def token_of(headers: Any, cookies: Any) -> str | None:
    """Read the token of a request: from its header, or from the cookie of a console's session."""
    word, _, token = headers.get("authorization", "").partition(" ")
    if word.lower() in ("bearer", "token") and token:
        return str(token).strip()
    found = cookies.get(COOKIE)
    return None if found is None else str(found)


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
    """Check every request before anything else: whose it is, what it may do.

    Measure how long the answer took.
    """

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
        secure = request.url.scheme == "https" or self.service.settings.url.startswith("https://")  # ours, or a proxy's

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {name for name, _ in message["headers"]}
                more = [pair for pair in HEADERS if pair[0] not in names]
                message["headers"] = [*message["headers"], *more, *([HSTS] if secure else [])]
            await send(message)

        scope["tisat.refuse"] = lambda what: self._delay_failure(request, what)
        scope["tisat.secure"] = secure
        self._running += 1
        wrong = self._check(request, scope)
        if wrong is not None and wrong[0] == 401 and token_of(request.headers, request.cookies) is not None:
            wrong = await self._delay_failure(request, request.url.path) or wrong
        try:
            if wrong is None:
                await self.app(scope, receive, watched)
            else:
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
        guarded = bool(self.tokens.in_force())
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
        if not scope["tisat.author"] and token is not None:
            return 401, "The token must be in force. It is not known, or has ended; make one with tisat serve token."
        if not scope["tisat.author"]:
            return 401, "This needs a token: send 'Authorization: Bearer ...', made with tisat serve token."
        if all(one.matches(scope)[0] == Match.NONE for one in scope["app"].routes):
            return None  # nothing is there for any token, and the application says so
        return 403, f"The token {scope['tisat.author']!r} must have the scope {needed!r}. It has not."

    def _not_local(self, request: Request) -> str:
        """Find why a request is refused while no token is in force.

        Empty: it comes from this machine.
        """
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

    async def _delay_failure(self, request: Request, what: str) -> tuple[int, str] | None:
        """Log a failed login and wait; a refusal where too many wait already."""
        if self._waiting >= WAITING:
            return 429, f"No more than {WAITING} failed logins may wait for their answers. Try again in a moment."
        peer = request.client.host if request.client is not None else "an unknown address"
        delay = self.failures.record(peer, what)
        self._waiting += 1
        try:
            await asyncio.sleep(delay)
        finally:
            self._waiting -= 1
        return None

"""Decide who may do what: tokens with scopes, kept as hashes. Without a token only this machine is served."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time as clocks
from collections.abc import Callable
from typing import Any

from tisat.errors import ConflictError, NotFoundError, ParameterError
from tisat_serve.store import Store

SCOPES = ("read", "ingest", "label", "admin")
IMPLIED = {"label": ("read",), "admin": SCOPES}  # who labels an alarm has to see it
COOKIE = "tisat_token"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
FIRST_DELAY, LONGEST_DELAY = 0.25, 5.0  # seconds before a failed login is answered: doubled each time
FORGIVEN = 60.0  # seconds after which failures of an address are forgotten
ADDRESSES = 1000  # addresses whose failures are remembered
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


def hashed(token: str) -> str:
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

    def _known(self) -> list[tuple[str, str, str]]:
        return self._connection.execute("SELECT hash, name, scopes FROM tokens WHERE ended IS NULL").fetchall()

    def __bool__(self) -> bool:
        return bool(self._known())

    def may(self, token: str | None, scope: str) -> tuple[bool, str]:
        """Check whether a token allows a scope; with the name of the token, empty where it is unknown."""
        mine = hashed(token or "")
        found, name = "", ""
        for known, owner, scopes in self._known():
            if hmac.compare_digest(known, mine):
                found, name = scopes, owner
        granted = {one for part in found.split(",") for one in (part, *IMPLIED.get(part, ()))}
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

    def note(self, address: str, what: str) -> float:
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
            "INSERT INTO tokens VALUES (NULL, ?, ?, ?, ?, NULL)", (name, ",".join(scopes), hashed(token), now)
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

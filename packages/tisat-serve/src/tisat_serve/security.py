"""Who may do what: tokens with scopes, kept only as hashes. Without any token the service is for this machine alone."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

from tisat.errors import InputError
from tisat_serve.store import Store

SCOPES = ("ingest", "read", "admin")  # admin may do everything
COOKIE = "tisat_token"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1", "testserver")


def hashed(token: str) -> str:
    """What is kept of a token: tokens are long and random, so one round is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    """The tokens of a store.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reload()

    def reload(self) -> None:
        """Read what is in force."""
        found = self.store.read("SELECT hash, name, scopes FROM tokens WHERE ended IS NULL")
        self._known = {hash_: (name, tuple(scopes.split(","))) for hash_, name, scopes in found}

    def __bool__(self) -> bool:
        return bool(self._known)

    def scopes(self, token: str) -> tuple[str, tuple[str, ...]]:
        """The name and the scopes of a token; nothing where it is unknown."""
        mine = hashed(token)
        found = ("", ())
        for known, answer in self._known.items():
            if hmac.compare_digest(known, mine):
                found = answer
        return found

    def may(self, token: str | None, scope: str) -> tuple[bool, str]:
        """Whether a request may be answered, and as whom."""
        if not self._known:
            return True, "local"
        name, scopes = self.scopes(token or "")
        return scope in scopes or "admin" in scopes, name


def make_token(store: Store, name: str, scopes: list[str], now: float) -> str:
    """A new token; it is shown once."""
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise InputError(
            f"The scopes of a token must be among {', '.join(SCOPES)}. Got {', '.join(wrong) or 'none'} instead."
        )
    if not name.strip() or len(name) > 100:
        raise InputError(f"The name of a token must be 1 to 100 characters. Got {name[:40]!r} instead.")
    if store.read("SELECT 1 FROM tokens WHERE name = ? AND ended IS NULL", (name,)):
        raise InputError(f"The name of a token must be free. {name!r} is in use; end it first with --end.")
    token = "tisat_" + secrets.token_urlsafe(32)
    with store.writing() as write:
        write.execute("DELETE FROM tokens WHERE name = ?", (name,))
        write.execute(
            "INSERT INTO tokens VALUES (NULL, ?, ?, ?, ?, NULL)", (name, ",".join(scopes), hashed(token), now)
        )
    return token


def end_token(store: Store, name: str, now: float) -> None:
    """A token that is not to be accepted any more."""
    with store.writing() as write:
        if not write.execute("UPDATE tokens SET ended = ? WHERE name = ? AND ended IS NULL", (now, name)).rowcount:
            raise InputError(f"There must be a token of this name in force. Got {name[:60]!r}.")


def token_of(headers: Any, cookies: Any) -> str | None:
    """The token of a request: in its header, or in the cookie of a console's session."""
    word, _, token = headers.get("authorization", "").partition(" ")
    if word.lower() in ("bearer", "token") and token:
        return str(token).strip()
    found = cookies.get(COOKIE)
    return None if found is None else str(found)

"""Requests to others over HTTP: to Alertmanager, webhooks, Prometheus, other shards. One way to check an address, one way to ask."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from http.client import HTTPException

from tisat.errors import InputError


def check_address(url: str, what: str) -> str:
    """The address without its last slash; refused where it is none of the web."""
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{what} must begin with http:// or https://. Got {url[:80]!r} instead.")
    return url.rstrip("/")


def ask(url: str, headers: Mapping[str, str], body: bytes | None = None, *, timeout: float, most: int = 1) -> bytes:
    """At most ``most`` bytes of the answer; a body is posted. Whatever goes wrong on the way is an OSError."""
    request = urllib.request.Request(url, body, {"User-Agent": "tisat", **headers})  # noqa: S310 - the scheme was checked
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            content: bytes = answer.read(most)
            return content
    except HTTPException as error:  # what answers speaks no HTTP, or leaves in the middle of it
        raise OSError(f"{type(error).__name__}: {error}") from None

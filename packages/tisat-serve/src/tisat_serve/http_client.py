"""Send requests to others over HTTP: Alertmanager, webhooks, Prometheus, other shards.

Redirects are not followed: a POST would become an empty GET, and credentials would go to another server. Credentials in an address are sent
as basic authentication and are in no message (:func:`without_credentials`).
"""

from __future__ import annotations

import base64
import functools
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from tisat.errors import InputError, ParameterError


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Refuse: what is asked for is asked for where it was said to be."""
        raise urllib.error.HTTPError(
            req.full_url, code, f"{msg}; redirects are not followed, give the address it leads to", headers, fp
        )


def without_credentials(url: str) -> str:
    """The address as it may be shown.

    Examples
    --------
    >>> without_credentials("https://user:secret@plant.example:9093/x")
    'https://plant.example:9093/x'
    """
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def check_address(url: str, what: str) -> str:
    """The address without its last slash; refused where it is none of the web."""
    if not url.startswith(("http://", "https://")):
        raise ParameterError(
            f"{what} must begin with http:// or https://. Got {without_credentials(url)[:80]!r} instead.",
            parameter="url",
        )
    return url.rstrip("/")


def basic(user: str, password: str) -> str:
    """The value of an Authorization header.

    Examples
    --------
    >>> basic("user", "secret")
    'Basic dXNlcjpzZWNyZXQ='
    """
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@functools.cache
def _opener(ca: str | None) -> Callable[..., Any]:
    handlers: list[Any] = [_NoRedirect()]
    if ca is not None:
        try:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca)))
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"The file of certificates {ca!r} must be one. It is not: {error}.") from None
    return urllib.request.build_opener(*handlers).open


def check_authority(ca: str | None) -> str | None:
    """Refuse a file of certificates that cannot be read."""
    _opener(ca)
    return ca


def ask(
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float,
    most: int = 1,
    ca: str | None = None,
) -> bytes:
    """At most ``most`` bytes of the answer; a body is posted.

    Whatever goes wrong on the way, a redirect too, is an OSError.
    """
    parts = urlsplit(url)
    said = {"User-Agent": "tisat", **headers}
    if parts.username is not None and "Authorization" not in said:
        said["Authorization"] = basic(unquote(parts.username), unquote(parts.password or ""))
    request = urllib.request.Request(without_credentials(url), body, said)  # noqa: S310 - the scheme was checked
    try:
        with _opener(ca)(request, timeout=timeout) as answer:
            content: bytes = answer.read(most)
            return content
    except HTTPException as error:  # what answers speaks no HTTP, or leaves in the middle of it
        raise OSError(f"{type(error).__name__}: {error}") from None

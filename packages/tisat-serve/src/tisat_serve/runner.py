"""From a model and a folder to a listening service, and back down in order."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tisat.errors import InputError
from tisat_serve import console
from tisat_serve.cluster.shards import Shard
from tisat_serve.engine.engine import Engine, Limits
from tisat_serve.engine.group import Group
from tisat_serve.security import MAKE_ONE, Tokens, is_loopback
from tisat_serve.service import Part, Service, Settings
from tisat_serve.sources import push
from tisat_serve.store import Store


def check_listening(host: str, tokens: Tokens | None, *, url: str = "") -> None:
    """Refuse to listen to others, directly or by a proxy at ``url``, where nobody needs a token; None: there is no store yet."""
    reached = urlsplit(url).hostname or host
    if not (is_loopback(host) and is_loopback(reached)) and not (tokens and tokens.in_force()):
        raise InputError(
            f"Without a token the service must listen on this machine alone. Got {host if not is_loopback(host) else url}; make one first: {MAKE_ONE}."
        )


def few_arenas() -> None:
    """Let threads share two heaps of the C library instead of eight for each core: 10 MB less, and no slower here."""
    with contextlib.suppress(OSError, AttributeError):  # another C library has other ways
        ctypes.CDLL(None).mallopt(-8, 2)  # M_ARENA_MAX


@contextlib.contextmanager
def running(
    folder: Path,
    groups: Sequence[Group],
    *,
    settings: Settings | None = None,
    limits: Limits | None = None,
    parts: Sequence[Part] = (),
    routes: tuple[str, ...] = (),
    shard: Shard | None = None,
    say: Callable[[str], None] | None = None,
) -> Iterator[Service]:
    """A service on a folder, started; stopped and saved at the end."""
    few_arenas()
    with Store(folder) as store:
        engine = Engine(store, groups, limits=limits, routes=routes)
        if shard is not None:
            shard.settle(engine)
        service = Service(engine, settings, parts=parts)
        service.say = say or service.say
        service.start()
        try:
            yield service
        finally:
            service.stop()


def more_routes(service: Service) -> list[Any]:
    """The addresses others push samples to, and the console."""
    return [*push.routes(service), *console.routes(service)]


def _renew(config: Any, certificate: str, key: str | None) -> None:
    """Read a certificate, for connections from now on."""
    try:
        ssl.create_default_context().load_cert_chain(certificate, key)  # a wrong one must not replace a good one
        if not config.loaded:
            config.load()
        config.ssl.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"The certificate {certificate!r} must be PEM with its key. It cannot be used: {error.strerror or error}."
        ) from None


def listen(
    app: Any,
    *,
    host: str,
    port: int,
    certificate: Path | None = None,
    key: Path | None = None,
    ready: Callable[[str], None],
    service: Service | None = None,
) -> None:
    """Answer requests until the process is told to end.

    ``ready`` gets the address, ``service`` a way to renew the certificate.
    """
    import uvicorn

    from tisat_serve.api.connections import TimedProtocol

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,  # the peer is who connects, whatever a header says
        server_header=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=30,
        http=TimedProtocol,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    renew = functools.partial(_renew, config)
    if certificate is not None:
        renew(str(certificate), None if key is None else str(key))  # before anybody is told that we listen
        if service is not None:
            service.renew = renew
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)  # those who come before we are there wait
    except OSError as error:
        listener.close()
        raise InputError(
            f"The address {host}:{port} must be free. It is not: {error.strerror}. Give another --port."
        ) from None
    server = uvicorn.Server(config)
    ours: Any = contextlib.nullcontext
    server.capture_signals = ours  # type: ignore[method-assign]  # its own would end us before all is saved

    def end(*_: object) -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    name = f"[{host}]" if ":" in host else host
    ready(f"{'https' if certificate else 'http'}://{name}:{listener.getsockname()[1]}")
    server.run(sockets=[listener])

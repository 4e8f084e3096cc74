"""One request cannot hurt: bodies that are mostly nothing, headers that never end, and health checks through all of it."""

import contextlib
import gzip
import json
import socket
import threading
import time
import tracemalloc

import pytest

from serve.conftest import START, local_client
from tisat_serve.api import bodies, connections
from tisat_serve.api.app import make_app
from tisat_serve.api.bodies import BodyError, rows_of
from tisat_serve.runner import listen
from tisat_serve.security import Tokens

MANY = 2_000_000
EMPTY = '{"entity":"","values":[]}'
HOSTILE = {
    "numbers in lines": ("application/x-ndjson", b"1\n" * MANY),
    "numbers in a list": ("application/json", b"[" + b"1," * (MANY - 1) + b"1]"),
    "lines of csv": ("text/csv", b"entity,a\n" + b"x,\n" * MANY),
    "empty lines of csv": ("text/csv", b"entity,a\n" + b'""\n' * MANY),
    "empty objects": ("application/json", b"[" + b"{}," * (MANY - 1) + b"{}]"),
    "small rows": ("application/json", ("[" + ",".join([EMPTY] * 400_000) + "]").encode()),
    "one long row": ("application/json", b'[{"entity":"a","values":[' + b"1," * MANY + b"1]}]"),
    "one wide row": ("application/json", ('[{"entity":"a","values":{' + ",".join(f'"{k}":1' for k in range(900_000)) + "}}]").encode()),
    "an object of many": ("application/json", ("{" + ",".join(f'"{k}":1' for k in range(900_000)) + "}").encode()),
    "plain text": ("application/x-ndjson", b"x" * (16 << 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_body_of_nothing_is_refused_before_it_is_large(name):
    kind, body = HOSTILE[name]
    tracemalloc.start()
    begin = time.process_time()
    with contextlib.suppress(BodyError):
        rows_of(body, kind, most=10_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 130e6, f"{peak / 1e6:.0f} MB"  # tracing itself counts 16 bytes for each part
    assert time.process_time() - begin < 10.0, "with tracing, which makes it many times slower"


def test_rows_that_are_wrong_alike_share_one_reason():
    _, bad = rows_of(b"1\n" * 5000, "application/x-ndjson", most=10_000)
    assert len(bad) == 5000
    assert len({id(one.reason) for one in bad.values()}) == 1
    with pytest.raises(BodyError, match="not have more than 4999 rows"):
        rows_of(b"1\n" * 5000, "application/x-ndjson", most=4999)


def test_unpacked_is_no_larger_than_a_plain_body_may_be(service):
    client = local_client(make_app(service, Tokens(service.engine.store)))
    packed = gzip.compress(b" " * (17 << 20))
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert client.post("/api/v1/rows", content=packed, headers=headers).status_code == 413


def test_a_body_that_does_not_come_is_ended(service, monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    with Listening(service) as port, socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(
            b"POST /api/v1/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n["
        )
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")
    assert bodies._arriving == 0


def test_half_headers_are_closed_and_keep_nobody_out(service, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    monkeypatch.setattr(connections, "MOST_WAITING", 20)
    with Listening(service) as port:
        half = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        for one in half:
            one.sendall(b"GET / HTTP/1.1\r\nHost: local")
        row = json.dumps([{"entity": "a", "time": START, "values": [60, 5, 1]}]).encode()
        for head, body in ((b"GET /healthz", b""), (b"POST /api/v1/rows", row)):
            with socket.create_connection(("127.0.0.1", port)) as good:
                good.sendall(head + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)  # fmt: skip
                assert good.recv(1000).startswith(b"HTTP/1.1 200 ")
        deadline = time.monotonic() + 10
        for one in half:
            one.settimeout(max(deadline - time.monotonic(), 0.1))
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(100) == b"", "closed without an answer"
            one.close()
    assert not connections._waiting


def test_health_is_answered_however_many_requests_run(service, monkeypatch):
    from tisat_serve import security

    monkeypatch.setattr(security, "REQUESTS", 0)
    client = local_client(make_app(service, Tokens(service.engine.store)))
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    busy = client.get("/api/v1/about")
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")


def test_health_is_answered_while_a_body_is_decoded(service, monkeypatch):
    entered, go_on = threading.Event(), threading.Event()
    decode = bodies.rows_of

    def slow(*given, **options):
        entered.set()
        assert go_on.wait(10)
        return decode(*given, **options)

    monkeypatch.setattr(bodies, "rows_of", slow)
    with Listening(service) as port, socket.create_connection(("127.0.0.1", port)) as rows:
        rows.sendall(
            b"POST /api/v1/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
        )
        assert entered.wait(10)
        with socket.create_connection(("127.0.0.1", port)) as health:
            health.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            health.settimeout(5)
            assert health.recv(1000).startswith(b"HTTP/1.1 200 ")
        go_on.set()
        assert rows.recv(1000).startswith(b"HTTP/1.1 200 ")


class Listening:
    """The service behind a real socket, in this process."""

    def __init__(self, service):
        self.app = make_app(service, Tokens(service.engine.store))

    def __enter__(self):
        import uvicorn

        ready, self.made = threading.Event(), []
        run = uvicorn.Server.run

        def remembered(server, sockets=None):
            self.made.append(server)
            run(server, sockets=sockets)

        patch = pytest.MonkeyPatch()
        patch.setattr(uvicorn.Server, "run", remembered)
        patch.setattr("signal.signal", lambda *_: None)
        urls = []
        options = {"host": "127.0.0.1", "port": 0, "ready": lambda url: (urls.append(url), ready.set())}
        self.thread = threading.Thread(target=listen, args=(self.app,), kwargs=options, daemon=True)
        self.thread.start()
        assert ready.wait(10)
        deadline = time.monotonic() + 10
        while not (self.made and self.made[0].started):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        patch.undo()
        return int(urls[0].rpartition(":")[2])

    def __exit__(self, *_):
        self.made[0].should_exit = True
        self.thread.join(10)
        assert not self.thread.is_alive()

"""Answers at their edges: bodies of rows in every state, a console's session, events as they happen."""

import asyncio
import gzip
import json
import zlib
from types import SimpleNamespace

import pytest

from serve.conftest import START, local_client, plant_rows

pytest.importorskip("httpx2", reason="pip install 'tisat[dev]'")

from tisat.errors import ConflictError, InputError, NotFoundError, ParameterError
from tisat_serve.api import app as front
from tisat_serve.api.app import Events, make_app, refusal
from tisat_serve.api.bodies import BodyError, rows_of, unpacked
from tisat_serve.api.table import ENDPOINTS
from tisat_serve.security import COOKIE, Guard, Tokens, make_token, scope_of
from tisat_serve.structs import Row


def test_a_body_is_unpacked_or_refused_with_its_code():
    body = b'[{"entity": "a"}]' * 10
    assert unpacked(body, "identity", 10) == body
    assert unpacked(gzip.compress(body), "gzip", 1000) == unpacked(zlib.compress(body), " Deflate ", 1000) == body
    for packed, encoding, most, code in (
        (body, "br", 1000, 415),
        (body, "gzip", 1000, 400),
        (gzip.compress(body), "gzip", 100, 413),
        (gzip.compress(body)[:-9], "gzip", 1000, 400),
    ):
        with pytest.raises(BodyError) as refused:
            unpacked(packed, encoding, most)
        assert refused.value.status == code


@pytest.mark.parametrize(("kind", "body", "rows", "bad"), [
    ("application/json", b'{"entity": "a", "values": [1]}', [Row("a", [1.0])], []),
    ("application/json; charset=utf-8", b'{"rows": [{"entity": "a", "values": [null]}, {"entity": 3}]}', [Row("a", [None])], [1]),
    ("application/x-ndjson", b'{"entity": "a", "values": {"x": 1}}\n\nnonsense\n\xff\n', [Row("a", {"x": 1.0})], [1, 2]),
    ("text/csv", b"\xef\xbb\xbfEntity,Timestamp,x\na,5,1.5\nb,6,n/a\nc,7\nd,8,inf\ne,9,1_000\nf,9,soon\n", [Row("a", {"x": 1.5}, "5"), Row("b", {"x": None}, "6"), Row("e", {"x": "1_000"}, "9"), Row("f", {"x": "soon"}, "9")], [2, 3]),
])  # fmt: skip
def test_rows_are_read_in_their_places_and_the_others_are_told(kind, body, rows, bad):
    found, refused = rows_of(body, kind, most=10)
    assert found == rows
    assert sorted(refused) == bad
    assert all(one.status == "refused" and one.reason for one in refused.values())
    with pytest.raises(BodyError, match="must not have more than"):
        rows_of(body, kind, most=len(rows) + len(bad) - 1)


def test_csv_of_one_entity_needs_no_column_for_it():
    found, _ = rows_of(b"x,y\n1,2\n", "text/csv", entity="a", most=1)
    assert found == [Row("a", {"x": 1.0, "y": 2.0})]
    for body, must in ((b"x\n1\n", "a column 'entity', or the address must say"), (b'"' + b"x" * 200_000 + b'"\n1', "must be csv"), (b"", "a column 'entity'")):  # fmt: skip
        with pytest.raises(BodyError, match=must):
            rows_of(body, "text/csv", most=1)


def test_a_session_keeps_the_token_from_scripts(service):
    store = service.engine.store
    token, other = make_token(store, "anna", ["read"], 0.0), make_token(store, "logger", ["ingest"], 0.0)
    client = local_client(make_app(service, Tokens(store)))
    assert client.get("/api/v1/entities").status_code == 401
    assert client.post("/api/v1/session", json={"token": other}).status_code == 401
    assert client.post("/api/v1/session", content=b"nonsense").status_code == 400
    assert client.post("/api/v1/session", content=b" " * 5000).status_code == 413
    made = client.post("/api/v1/session", json={"token": token})
    assert made.status_code == 200
    assert {"HttpOnly", "SameSite=strict"} <= set(made.headers["set-cookie"].split("; "))
    assert client.get("/api/v1/entities").status_code == 200, "the client keeps it"
    assert COOKIE in client.delete("/api/v1/session").headers["set-cookie"]


def test_doors_say_what_is_wrong_with_how_they_are_asked(service):
    client = local_client(make_app(service, Tokens(service.engine.store)), raise_server_exceptions=False)
    assert client.post("/api/v1/pauses", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert client.get("/api/v1/alarms?active=null").status_code == 422
    assert client.head("/api/v1/entities").status_code == 200
    assert (
        client.put("/api/v1/entities").json()["error"]
        == "The method of this address must be GET or HEAD. Got PUT instead."
    )
    service.view.entities = lambda **_: 1 / 0
    fault = client.get("/api/v1/entities")
    assert (fault.status_code, "ZeroDivisionError" in fault.json()["error"]) == (500, True)
    service.broken = "The judge is gone."
    assert client.get("/healthz").status_code == 500
    service._stopping = True
    assert (client.get("/readyz").status_code, client.get("/readyz").text) == (503, "The judge is gone.")
    service.engine.store.full = True
    assert client.get("/readyz").text == "the disk is full\n"
    service.engine.store.full = service._stopping = False


@pytest.mark.parametrize("sentence", ["The service must know the entity.", "It must be open.", "It must be there."])
def test_the_code_of_a_refusal_is_its_type_whatever_it_says(sentence):
    kinds = {InputError: 400, NotFoundError: 404, ConflictError: 409}
    assert {kind: refusal(kind(sentence)).status_code for kind in kinds} == kinds
    named = refusal(ParameterError(sentence, parameter="budget"))
    assert (named.status_code, json.loads(named.body)["parameter"]) == (400, "budget")


@pytest.mark.parametrize("word", ["x", "must be open", "must be there", "must know the entity"])
def test_no_word_of_a_client_chooses_the_code(service, word):
    client = local_client(make_app(service, Tokens(service.engine.store)))
    assert client.post("/api/v1/proposals", json={"group": word}).status_code == 404
    assert client.post("/api/v1/alarms/x/label", json={"label": "true", "reason": word}).status_code == 404
    rule = {"suppress": f"{word}:{word}"}
    assert client.post("/api/v1/rules", json=rule).status_code == 400


@pytest.mark.parametrize(("method", "path", "scope"), [
    ("GET", "/healthz", ""), ("POST", "/api/v1/rows", "ingest"), ("GET", "/api/v1/rows", "read"), ("HEAD", "/x", "read"), ("POST", "/api/v1/rules", "admin"),
    ("POST", "/api/v1/alarms/x/label", "label"), ("GET", "/healthz/x", "read"), ("GET", "/loginx", "read"),
])  # fmt: skip
def test_each_request_needs_its_scope(method, path, scope):
    assert scope_of(method, path) == scope


def test_what_is_no_request_passes_the_guard():
    seen = []

    async def inner(scope, receive, send):
        seen.append(scope["type"])

    asyncio.run(Guard(inner, service=None, tokens=None, metrics=None)({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]


def test_a_listener_hears_what_happens_and_one_that_falls_behind_the_newest(service, monkeypatch):
    monkeypatch.setattr(front, "WAITING_EVENTS", 2)
    monkeypatch.setattr(front, "HEARTBEAT", -1.0)
    events = Events(service)
    gone = []

    async def is_disconnected():
        return bool(gone)

    async def listen():
        answer = await events.listen(SimpleNamespace(is_disconnected=is_disconnected))
        stream = answer.body_iterator
        assert await anext(stream) == b": hello\n\n"
        for number in range(3):
            events.publish({"what": "alarm", "number": number})
        heard = [await anext(stream), await anext(stream)]
        real = asyncio.wait_for

        async def at_once(waiting, _):
            return await real(waiting, 0.001)

        monkeypatch.setattr(asyncio, "wait_for", at_once)
        assert await anext(stream) == b": beat\n\n"
        gone.append(True)
        assert [part async for part in stream] == []
        return heard

    heard = asyncio.run(listen())
    assert [json.loads(one.split(b"data: ")[1])["number"] for one in heard] == [1, 2], "the oldest is let go"
    assert heard[0].startswith(b"event: alarm\n")
    assert not events.queues
    events.publish({"what": "nobody listens"})
    monkeypatch.setattr(front, "LISTENERS", 0)
    assert asyncio.run(events.listen(None)).status_code == 503


def test_rows_of_the_plant_are_taken_after_all_this(service):
    client = local_client(make_app(service, Tokens(service.engine.store)))
    rows = [{"entity": "a", "values": row, "time": START + 60 * k} for k, row in enumerate(plant_rows(2).tolist())]
    assert client.post("/api/v1/rows", json=[*rows, {"entity": "a"}]).json()["taken"] == 2


def test_the_table_says_the_scopes_that_are_asked_for():
    for one in ENDPOINTS:
        assert scope_of(one.method, one.path.replace(":path", "").format(name="x", id="x", number=1)) == one.scope, one

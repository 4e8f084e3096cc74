"""The HTTP interface, in this process: rows in every form, answers for each, doors that stay shut."""

import gzip
import json
import threading
import time
from pathlib import Path

import pytest

from serve.conftest import START, limit, local_client, plant_rows, requests_of

pytest.importorskip("httpx2", reason="pip install 'tisat[dev]'")

from tisat_serve.api.app import make_app
from tisat_serve.api.table import ENDPOINTS
from tisat_serve.security import Tokens, end_token, make_token
from tisat_serve.service import Service, Settings


@pytest.fixture
def client(service):
    return local_client(make_app(service, Tokens(service.engine.store)))


def as_json(rows):
    return [{"entity": row.entity, "time": row.time, "values": row.values} for row in rows]


def fill(client):
    for rows in requests_of():
        assert client.post("/api/v1/rows", json=as_json(rows)).status_code == 200


def test_every_form_of_rows_gives_the_same_outcomes(client):
    values = plant_rows(4).tolist()
    rows = [{"time": START + 60 * k, "values": row} for k, row in enumerate(values)]
    named = {name: [{"entity": name, **row} for row in rows] for name in "abcdef"}
    csv = "entity,time,temp,flow,power\n" + "".join(
        f"c,{row['time']},{','.join(map(repr, row['values']))}\n" for row in rows
    )
    objects = [
        {**row, "values": dict(zip(("temp", "flow", "power"), row["values"], strict=True))} for row in named["d"]
    ]
    kind = {"content-type": "application/x-ndjson"}
    found = [
        client.post("/api/v1/rows", json=named["a"]),
        client.post("/api/v1/rows", content="\n".join(map(json.dumps, named["b"])), headers=kind),
        client.post("/api/v1/rows", content=csv, headers={"content-type": "text/csv"}),
        client.post("/api/v1/rows", json={"rows": objects}),
        client.post("/api/v1/rows", content=gzip.compress(json.dumps(named["e"]).encode()), headers={"content-type": "application/json", "content-encoding": "gzip"}),
        client.post("/api/v1/rows?entity=f", content=csv.replace("entity,", "").replace("c,", ""), headers={"content-type": "text/csv"}),
    ]  # fmt: skip
    for one in found:
        assert one.status_code == 200, one.text
        assert one.json()["taken"] == 4
        assert [o["status"] for o in one.json()["outcomes"]] == ["warming up"] * 4


def test_each_row_is_answered_in_its_place(client):
    good = {"entity": "a", "time": START, "values": [60, 5, 1]}
    rows = [good, {"entity": "a"}, {**good, "values": "x"}, {**good, "time": START + 60}, {**good, "values": [1]}, 7]
    answer = client.post("/api/v1/rows", json=rows).json()
    assert [one["status"] for one in answer["outcomes"]] == [
        "warming up",
        "refused",
        "refused",
        "warming up",
        "refused",
        "refused",
    ]
    assert (answer["taken"], answer["refused"]) == (2, 4)


@pytest.mark.parametrize(
    ("content", "headers", "code"),
    [
        (b"{", {"content-type": "application/json"}, 400),
        (b"[" * 100000, {"content-type": "application/json"}, 400),
        (b"[]", {"content-type": "text/plain"}, 415),
        (b"[]", {"content-type": "application/json", "content-encoding": "br"}, 415),
        (b"nonsense", {"content-type": "application/json", "content-encoding": "gzip"}, 400),
        (gzip.compress(b" " * (70 << 20)), {"content-type": "application/json", "content-encoding": "gzip"}, 413),
        (b"a,b\n1,2\n", {"content-type": "text/csv"}, 400),
        (b"\xff\xfe", {"content-type": "text/csv"}, 400),
        (b"x" * (17 << 20), {"content-type": "text/csv"}, 413),
        (b"[]", {"content-type": "application/json", "origin": "http://evil.example"}, 403),
        (b"[]", {"content-type": "application/json", "host": "evil.example"}, 403),
    ],
)
def test_a_bad_request_is_a_sentence(client, content, headers, code):
    answer = client.post("/api/v1/rows", content=content, headers=headers)
    assert answer.status_code == code
    assert answer.json()["error"].rstrip().endswith((".", "token."))


def test_everything_can_be_asked(client):
    fill(client)
    get = lambda path: client.get(path)  # noqa: E731
    alarm = get("/api/v1/alarms?about=statistic").json()[0]
    for path in (
        "about", "entities", "entities/e1", f"entities/e1/history?start={START}&stop={START + 9000}&points=50", "heatmap?steps=10",
        "alarms?active=false&limit=5", f"alarms/{alarm['id']}", "labels", "ledger", "whatif?entity=e1&threshold=2.5", "whatif?budget=1/day",
        "proposals", "pauses", "rules?ended=true", "journal",
    ):  # fmt: skip
        answer = get(f"/api/v1/{path}")
        assert answer.status_code == 200, (path, answer.text)
    assert (
        client.post(f"/api/v1/alarms/{alarm['id']}/label", json={"label": "true", "author": "ann"}).json()["word"]
        == "true"
    )
    number = client.post("/api/v1/proposals", json={"entity": "e1", "budget": "1/day"}).json()["id"]
    assert client.post(f"/api/v1/proposals/{number}/take", json={}).json()["state"] == "taken"
    assert client.post(f"/api/v1/proposals/{number}/revert", json={}).json()["state"] == "reverted"
    pause = client.post("/api/v1/pauses", json={"pattern": "e*", "start": START, "stop": START + 60}).json()["id"]
    assert client.post(f"/api/v1/pauses/{pause}/end", json={}).json() == {"done": True}
    rule = client.post("/api/v1/rules", json={"suppress": "flow:up"}).json()["id"]
    assert client.post(f"/api/v1/rules/{rule}/end", json={}).status_code == 200
    for path, code in (
        ("entities/nobody", 404),
        ("alarms/none", 404),
        ("proposals/99", 404),
        ("proposals/x", 400),
        ("alarms?limit=x", 422),
        ("nothing", 404),
    ):
        answer = get(f"/api/v1/{path}")
        assert answer.status_code == code, path
        assert answer.json()["error"]
    for path in ("entities/e1/history", "heatmap", "ledger", "whatif", "alarms"):
        for span in ("start=-4e9", "start=-4e9&stop=4.2e9", "start=4e9&stop=1", "stop=-4e9"):
            assert get(f"/api/v1/{path}?{span}").status_code == 200, (path, span)
    metrics = get("/metrics").text
    names = {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE tisat_")}
    assert 'tisat_alarm_ratio{entity="e1",group="main"}' in metrics
    assert len(names) >= 25
    assert get("/healthz").text == "ok\n"
    assert get("/readyz").status_code == 200
    paths = get("/openapi.json").json()["paths"]
    assert "/api/v1/rows" in paths
    assert "/api/v1/entities/{name}/history" in paths


@pytest.mark.parametrize("asked", ["sort=statistic", "order=ratio"])
def test_a_parameter_that_would_be_ignored_is_refused_with_those_there_are(client, asked):
    found = client.get(f"/api/v1/alarms?{asked}")
    assert found.status_code == 422
    name = asked.partition("=")[0]
    listed = "about, active, before, entity, label, limit, start, stop, suppressed, format"
    assert found.json()["error"] == f"The parameters of /api/v1/alarms must be among {listed}. Got {name!r} instead."
    assert client.get("/api/v1/alarms?about=nothing").status_code == 422


def test_tokens_open_only_their_own_doors(service):
    store = service.engine.store
    made = {scope: make_token(store, scope, [scope], 0.0) for scope in ("ingest", "read", "admin")}
    assert all(token not in str(store.read("SELECT * FROM tokens")) for token in made.values())
    tokens = Tokens(store)
    client = local_client(make_app(service, tokens))
    asks = {
        "ingest": lambda h: client.post("/api/v1/rows", json=[], headers=h),
        "read": lambda h: client.get("/api/v1/entities", headers=h),
        "admin": lambda h: client.post("/api/v1/rules", json={"suppress": "flow:up"}, headers=h),
    }
    for scope, ask in asks.items():
        assert ask({}).status_code == 401
        assert ask({"authorization": "Bearer nonsense"}).status_code == 401
        for owner, token in made.items():
            code = ask({"authorization": f"Bearer {token}"}).status_code
            assert code == (200 if owner in (scope, "admin") else 403), (scope, owner)
    assert client.get("/healthz").status_code == 200
    end_token(store, "read", 1.0)

    assert asks["read"]({"authorization": f"Bearer {made['read']}"}).status_code == 401


def test_too_many_rows_are_turned_away_and_nothing_grows(engine_in, tmp_path):
    service = Service(engine_in(tmp_path), Settings(rows_waiting=100))
    rows = requests_of(size=60)
    service.submit(rows[0])  # nobody judges yet
    client = local_client(make_app(service, Tokens(service.engine.store)))
    answer = client.post("/api/v1/rows", json=as_json(rows[1]))
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert service.waiting == 60
    assert service.turned_away == 60
    service.start()
    service.stop()
    assert service.engine.cells["e0"].seq > 0


def test_a_full_disk_is_507_and_readyz_says_so(client, service):
    fill(client)
    (pages,) = service.engine.store.read("PRAGMA page_count")[0]
    limit(service.engine.store, pages)
    codes = set()
    for rows in requests_of(size=400, entities=6):
        codes.add(client.post("/api/v1/rows", json=as_json(rows)).status_code)
    assert 507 in codes
    assert client.get("/readyz").status_code == 503
    limit(service.engine.store, 2**32 - 2)
    deadline = time.monotonic() + 20
    while client.get("/readyz").status_code != 200:  # it looks for room by itself
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert client.post("/api/v1/rows", json=as_json(requests_of()[0])).status_code == 200


def test_a_judge_that_cannot_go_on_is_said_and_nothing_hangs(engine_in, tmp_path, monkeypatch):
    service = Service(engine_in(tmp_path))
    said = []
    service.say, service.fatal = said.append, lambda: said.append("end")
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    monkeypatch.setattr(service.engine, "ingest_many", lambda *_: 1 / 0)
    service.start()
    with pytest.raises(ZeroDivisionError):
        service.ingest(requests_of()[0])
    service._thread.join()
    assert said == [service.broken, "end"]
    client = local_client(make_app(service, Tokens(service.engine.store)))
    assert client.get("/healthz").status_code == 500
    assert client.post("/api/v1/rows", json=as_json(requests_of()[0])).status_code == 429


def test_a_rule_names_a_channel_there_is_and_a_pattern_that_fits_nobody_is_said(client):
    fill(client)
    wrong = client.post("/api/v1/rules", json={"pattern": "worker-*", "suppress": "flwo:up"})
    must = "What is suppressed must name a channel of the model: temp, flow, power."
    assert (wrong.status_code, wrong.json()["error"]) == (400, f"{must} Got 'flwo' instead. Did you mean 'flow'?")
    assert client.get("/api/v1/rules").json() == []
    window = {"start": START, "stop": START + 60}
    for path, body in (("rules", {"suppress": "fl*:up"}), ("pauses", window)):
        notes = [
            client.post(f"/api/v1/{path}", json={**body, "pattern": name}).json()["note"] for name in ("e*", "worker-*")
        ]
        assert notes == ["", "No entity fits the pattern 'worker-*' now."]
        assert sorted(one["note"] for one in client.get(f"/api/v1/{path}").json()) == notes


def test_maintenance_windows_take_dates_as_rows_do(client):
    begin = 1_792_886_400.0  # 2026-10-25T00:00:00Z
    for start, stop in (
        ("2026-10-25T00:00:00Z", "2026-10-25T03:00:00+02:00"),
        ("2026-10-25T00:00", begin + 3600),
        (str(begin), str(begin + 3600)),
    ):
        made = client.post("/api/v1/pauses", json={"pattern": "db-*", "start": start, "stop": stop})
        assert (made.status_code, made.json().get("start"), made.json().get("stop")) == (200, begin, begin + 3600)
    wrong = client.post("/api/v1/pauses", json={"start": "tomorrow", "stop": begin})
    assert (wrong.status_code, wrong.json()["error"][:44]) == (400, "The 'start' of a window must be a date such ")
    assert client.post("/api/v1/pauses", json={"start": begin, "stop": "2250-01-01"}).status_code == 422


def test_a_refusal_says_what_would_be_taken(client):
    words = "'label' must be one of expected, false, new normal, true, unmarked. Got"
    for word, more in (("falsch", " Did you mean 'false'?"), ("§", ""), ("a\nb", "")):
        wrong = client.post("/api/v1/alarms/nope/label", json={"label": word})
        assert (wrong.status_code, wrong.json()["error"]) == (422, f"{words} {word!r} instead.{more}")
    about = client.get("/api/v1/alarms?about=channels").json()["error"]
    assert (
        about == "'about' must be one of channel, silence, statistic. Got 'channels' instead. Did you mean 'channel'?"
    )
    known = client.post("/api/v1/alarms/nope/label", json={"label": "true"})
    assert (known.status_code, known.json()["error"]) == (404, "No alarm has the id 'nope'.")
    assert client.get("/api/v1/alarms/nope").json()["error"] == "No alarm has the id 'nope'."
    assert client.get("/api/v1/incidents/nope").json()["error"] == "No incident has the id 'nope'."
    method = client.get("/api/v1/rows")
    assert (method.status_code, method.json()["error"]) == (
        405,
        "The method of this address must be POST. Got GET instead.",
    )


def test_a_body_that_does_not_fit_is_refused_with_its_fields_and_the_guide_has_them(client):
    found = client.post("/api/v1/rules", json={"match": "pump-*", "rule": "flow:up", "by": "eva"})
    assert found.status_code == 422
    listed = "author, reason, suppress, pattern"
    assert f"The body of /api/v1/rules must have fields of {listed}" in found.json()["error"]
    guide = (Path(__file__).parents[4] / "docs" / "serve.md").read_text().partition("## HTTP")[2].partition("## ")[0]
    for one in ENDPOINTS:
        if one.method == "POST":
            for field in one.body.__struct_encode_fields__:
                assert f"`{field}`" in guide, (one.path, field)

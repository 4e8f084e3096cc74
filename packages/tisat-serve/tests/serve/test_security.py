"""Who is served: without a token this machine alone, whatever a request says; with tokens their scopes, at once."""

import time

import pytest

from serve.conftest import START, local_client, requests_of
from tisat_serve import security
from tisat_serve.api.app import make_app
from tisat_serve.console import routes
from tisat_serve.runner import listen
from tisat_serve.security import Tokens, end_token, make_token

PAUSE = {"pattern": "*", "start": START, "stop": START + 60}
OTHER = ("203.0.113.9", 50000)


@pytest.fixture
def app(service, monkeypatch):
    monkeypatch.setattr(security, "FIRST_DELAY", 0.0)
    return make_app(service, Tokens(service.engine.store), more=routes(service))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8765", "[::1]"])
def test_without_a_token_only_a_peer_on_this_machine_is_served_whatever_host_says(app, host):
    here, there = local_client(app), local_client(app, client=OTHER)
    assert here.get("/api/v1/journal", headers={"host": host}).status_code == 200
    assert local_client(app, client=("::ffff:127.0.0.1", 1)).get("/api/v1/journal").status_code == 200
    for answer in (
        there.post("/api/v1/pauses", json=PAUSE, headers={"host": host}),
        there.get("/api/v1/journal", headers={"host": host}),
        there.get("/", headers={"host": host}),
        there.post("/api/v1/rows", json=[], headers={"host": host}),
    ):
        assert answer.status_code == 403
        assert "tisat serve token" in answer.json()["error"]
    assert there.get("/healthz").status_code == 200
    assert here.get("/api/v1/journal", headers={"host": "evil.example"}).status_code == 403, "a name that leads here"
    assert here.get("/api/v1/journal", headers={"host": "testserver"}).status_code == 403


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Proto", "X-Forwarded-Host"])
def test_a_forwarded_request_without_a_token_is_refused(app, name):
    answer = local_client(app).post("/api/v1/pauses", json=PAUSE, headers={name: "203.0.113.9"})
    assert answer.status_code == 403
    assert "forwarded by a proxy" in answer.json()["error"]


def test_ending_a_token_acts_at_once_and_ending_the_last_refuses_everything(app, service):
    store = service.engine.store
    service.settings.host = "0.0.0.0"
    tokens = {name: make_token(store, name, [name], 0.0) for name in ("read", "admin")}
    there = local_client(app, client=OTHER)

    def code(name, client=there):
        return client.get("/api/v1/journal", headers={"authorization": f"Bearer {tokens[name]}"}).status_code

    assert (code("read"), code("admin")) == (200, 200)
    end_token(store, "read", 1.0)
    assert (code("read"), code("admin")) == (401, 200), "no signal was sent"
    for wrong in (tokens["read"], "bad"):
        said = there.get("/api/v1/journal", headers={"authorization": f"Bearer {wrong}"}).json()["error"]
        assert said.startswith("The token must be in force. It is not known, or has ended"), "the message for no token"
    assert there.get("/api/v1/journal").json()["error"].startswith("This needs a token: send")
    end_token(store, "admin", 1.0)
    for client in (there, local_client(app)):  # a proxy on this machine is a peer on this machine
        answer = client.post("/api/v1/pauses", json=PAUSE, headers={"authorization": f"Bearer {tokens['admin']}"})
        assert answer.status_code == 403
        assert "everything is refused" in answer.json()["error"]
        assert "tisat serve token --data DIR" in answer.json()["error"]
    assert not service.view.pauses()
    tokens["admin"] = make_token(store, "admin", ["admin"], 2.0)
    assert code("admin") == 200, "a new one is taken at once, too"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_where_nothing_is_a_token_is_told_so_and_nobody_else(app, service, method):
    store = service.engine.store
    client = local_client(app)
    for scope in ("read", "ingest", "label", "admin"):
        token = make_token(store, scope, [scope], 0.0)
        answer = client.request(method, "/api/v1/row", headers={"authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["error"]) == (404, "There is nothing at this address.")
    assert client.request(method, "/api/v1/row").status_code == 401
    refused = client.post(
        "/api/v1/pauses", json=PAUSE, headers={"authorization": f"Bearer {make_token(store, 'r', ['read'], 0.0)}"}
    )
    assert refused.status_code == 403


def test_behind_a_proxy_the_allowed_origin_is_the_configured_address(app, service):
    token = make_token(service.engine.store, "desk", ["admin"], 0.0)
    service.settings.url = "https://plant.example"
    client = local_client(app)

    def code(origin):
        headers = {"authorization": f"Bearer {token}", "x-forwarded-for": "203.0.113.9", "origin": origin}
        return client.post("/api/v1/pauses", json=PAUSE, headers=headers).status_code

    assert [code(one) for one in ("https://plant.example", "http://127.0.0.1:8765")] == [200, 200]
    assert [code(one) for one in ("https://evil.example", "null", "https://plant.example.evil")] == [403] * 3
    end_token(service.engine.store, "desk", 1.0)
    assert client.get("/api/v1/journal").status_code == 403, "reached from elsewhere, and no token is in force"


@pytest.mark.parametrize("wanted", ["/\\evil.example/", "//evil.example", "/\t/evil.example", "https://evil.example", "/\n/evil.example", "\\\\evil", "/a\\b"])  # fmt: skip
def test_after_the_login_a_browser_stays_here(app, wanted):
    client = local_client(app)
    assert 'data-then="/"' in client.get("/login", params={"next": wanted}).text
    assert 'data-then="/budget?range=7d"' in client.get("/login", params={"next": "/budget?range=7d"}).text


def test_failed_logins_are_logged_without_the_token_and_slowed(service, monkeypatch):
    monkeypatch.setattr(security, "FIRST_DELAY", 0.01)
    token = make_token(service.engine.store, "desk", ["read"], 0.0)
    said = []
    service.say = said.append
    client = local_client(make_app(service, Tokens(service.engine.store)), client=OTHER)
    took = []
    for k in range(6):
        begin = time.monotonic()
        secret = f"secret-{k}"
        if k % 2:
            assert client.post("/api/v1/session", json={"token": secret}).status_code == 401
        else:
            assert client.get("/api/v1/journal", headers={"authorization": f"Bearer {secret}"}).status_code == 401
        took.append(time.monotonic() - begin)
    assert took[5] > 0.3 > took[0], "each waits twice as long as the one before"
    assert [line.partition(":")[0] for line in said] == [
        f"a token was refused from 203.0.113.9, attempt {n}" for n in (1, 2, 4)
    ]
    assert "secret" not in "".join(said)
    begin = time.monotonic()
    answer = client.post("/api/v1/session", json={"token": token})
    assert (answer.status_code, time.monotonic() - begin < 0.3) == (200, True), "the right one does not wait"
    assert client.get("/api/v1/journal").status_code == 200


def test_a_technician_labels_and_changes_nothing_else(app, service):
    for rows in requests_of():
        service.ingest(rows)
    alarm = service.view.alarms(sort="statistic")[0].id
    token = make_token(service.engine.store, "tom", ["label"], 0.0)
    client = local_client(app, headers={"authorization": f"Bearer {token}"})
    assert client.post(f"/api/v1/alarms/{alarm}/label", json={"label": "true"}).json()["author"] == "tom"
    assert client.get("/api/v1/alarms").status_code == 200, "who labels has to see"
    for path, body in (("pauses", PAUSE), ("rules", {"suppress": "flow:up"}), ("rows", []), ("proposals", {})):
        assert client.post(f"/api/v1/{path}", json=body).status_code == 403


def test_tls_is_remembered_by_browsers_and_cookies_stay_in_it(app, service):
    token = make_token(service.engine.store, "desk", ["read"], 0.0)
    plain, safe = local_client(app), local_client(app, base_url="https://127.0.0.1:8765")
    assert "strict-transport-security" not in plain.get("/healthz").headers
    assert safe.get("/healthz").headers["strict-transport-security"] == "max-age=31536000"
    assert "Secure" in safe.post("/api/v1/session", json={"token": token}).headers["set-cookie"]
    assert "Secure" not in plain.post("/api/v1/session", json={"token": token}).headers["set-cookie"]
    service.settings.url = "https://plant.example"
    assert "Secure" in plain.post("/api/v1/session", json={"token": token}).headers["set-cookie"]


def test_no_header_changes_the_peer_address(monkeypatch):
    import uvicorn

    made = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: made.append(self.config) or sockets[0].close())
    listen(lambda: None, host="127.0.0.1", port=0, ready=lambda url: None)
    assert made[0].proxy_headers is False


def test_the_store_is_of_its_owner_alone_from_the_first_moment(service):
    folder = service.engine.store.folder
    assert {path.stat().st_mode & 0o777 for path in folder.glob("tisat-serve.db*")} == {0o600}

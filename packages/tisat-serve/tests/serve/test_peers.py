"""One console over several shards: read from the others, and one that is down is plainly so."""

import threading
import time

import pytest

from serve.conftest import START, local_client, requests_of
from tisat.errors import InputError
from tisat_serve.api.app import make_app
from tisat_serve.cluster.shards import Shard
from tisat_serve.console import routes
from tisat_serve.security import Tokens
from tisat_serve.service import Service, Settings

uvicorn = pytest.importorskip("uvicorn", reason="pip install '.[serve]'")
NOW = float(START + 60 * 200)


class Listening:
    """A service that others can ask, until it is stopped."""

    def __init__(self, service):
        app = make_app(service, Tokens(service.engine.store), more=routes(service))
        self.server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def stop(self):
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(10)


@pytest.fixture
def fleet(engine_in, tmp_path):
    """Two shards with eight entities between them, and a third that was never there."""
    engines = [engine_in(tmp_path / str(k), clock=lambda: NOW) for k in (1, 2)]
    for number, engine in enumerate(engines, 1):
        Shard(number, 2).settle(engine)
        for request in requests_of(entities=8, faulty=("e1", "e4"), size=400):
            engine.ingest(request)
    second = Service(engines[1]).start()
    other = Listening(second)
    service = Service(engines[0], Settings(peers=(other.url + "/", "http://127.0.0.1:9"))).start()
    client = local_client(make_app(service, Tokens(engines[0].store), more=routes(service)))
    yield client, other, engines
    other.stop()
    second.stop()
    service.stop()


def test_all_shards_on_one_page(fleet):
    client, other, engines = fleet
    shards = client.get("/api/v1/shards").json()
    assert [(one["address"], one["shard"], one["up"]) for one in shards] == [
        ("", "1/2", True), (other.url, "2/2", True), ("http://127.0.0.1:9", "", False),
    ]  # fmt: skip
    assert {one["name"] for shard in shards for one in shard["entities"]} == {f"e{i}" for i in range(8)}
    assert not set(engines[0].cells) & set(engines[1].cells)
    page = client.get("/shards?range=24h").text
    assert "1 of 3 shards does not answer" in page
    for name in engines[0].cells:
        assert f'href="/entity/{name}"' in page
    for name in engines[1].cells:
        assert f'href="{other.url}/entity/{name}"' in page
        assert f"{name} @{other.url}" in page, "its strip is in the heat map"
    assert "All shards" in client.get("/").text, "the way to it"


def test_a_shard_that_goes_down_is_plainly_down(fleet):
    client, other, engines = fleet
    client.get("/shards")
    other.stop()
    page = client.get("/shards").text
    assert "2 of 3 shards do not answer" in page
    assert "last heard" in page
    assert "never heard since" in page
    name = next(iter(engines[1].cells))
    assert page.count("its shard does not answer") == len(engines[1].cells)
    assert f"{other.url}/entity/{name}" in page, "what it had is still named"
    assert f"{name} @{other.url}" not in page, "and has no strip that looks fresh"


def test_the_address_of_a_peer_is_checked(engine_in, tmp_path):
    with pytest.raises(InputError, match="must begin with http"):
        Service(engine_in(tmp_path), Settings(peers=("file:///etc/passwd",)))

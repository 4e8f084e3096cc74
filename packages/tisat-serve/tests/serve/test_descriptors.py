"""Connections that read are lent from a bounded pool: no number of threads or page views uses up descriptors."""

import os
import threading

from serve.conftest import local_client, requests_of
from tisat_serve.api.app import make_app
from tisat_serve.console import routes
from tisat_serve.security import Tokens
from tisat_serve.service import Service, Settings
from tisat_serve.store import READERS, Store

EACH = 3  # descriptors of a connection: the file, its write-ahead log, and the index of that


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_any_number_of_threads_reads_through_a_few_connections(tmp_path):
    with Store(tmp_path) as store:
        before, most = descriptors(), 0
        found = []
        for _ in range(5):
            threads = [
                threading.Thread(target=lambda: found.append(store.read("SELECT count(*) FROM log"))) for _ in range(40)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            most = max(most, descriptors())
        assert found == [[(0,)]] * 200
        assert most - before <= EACH * READERS
        with store.reading() as first, store.reading() as second:
            assert first is not second
    assert descriptors() <= before, "closed with the store"


def test_views_of_pages_use_no_more_descriptors(engine_in, tmp_path):
    service = Service(engine_in(tmp_path), Settings(peers=("http://127.0.0.1:9",))).start()
    for rows in requests_of(count=60):
        service.ingest(rows)
    client = local_client(make_app(service, Tokens(service.engine.store), more=routes(service)))
    pages = ["/", "/entity/e1", "/alarms", "/budget", "/whatif", "/proposals", "/care", "/shards", "/metrics", "/api/v1/about"]  # fmt: skip

    def view(times):
        for _ in range(times):
            assert {client.get(page).status_code for page in pages} == {200}
        return descriptors()

    first = view(2)
    assert view(20) <= first + EACH * READERS
    service.stop()

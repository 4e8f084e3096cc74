"""The console's pages: all there, nothing inline, every name escaped, refusals are pages."""

import re

import msgspec
import pytest

from serve.conftest import START, local_client, requests_of
from tisat_serve.api.app import make_app
from tisat_serve.console import routes
from tisat_serve.console.labels import moment
from tisat_serve.security import Tokens, make_token
from tisat_serve.service import Service
from tisat_serve.structs import Row

NASTY = "<img src=x onerror=alert(1)>/\"'&"


@pytest.fixture
def service(engine_in, tmp_path):
    engine = engine_in(tmp_path / "data", clock=lambda: float(START + 60 * 200))
    service = Service(engine).start()
    for rows in requests_of():
        service.ingest(rows)
    service.ingest([Row(entity=NASTY, values=[60.0, 5.0, 1.0], time=START + 60 * 199)])
    yield service
    service.stop()


@pytest.fixture
def client(service):
    app = make_app(service, Tokens(service.engine.store), more=routes(service))
    return local_client(app)


def test_every_page_is_there_and_says_what_it_is_for(client, service):
    (alarm, *_) = service.view.alarms(entity="e1")
    pages = {
        "/": "e1",
        "/?search=e1&range=1h&status=": "e1",
        "/entity/e1": "history-data",
        f"/entity/e1?start={START}&stop={START + 6000}&channels=3": "history-data",
        "/alarms": alarm.id,
        "/alarms?label=unmarked&active=over": "Alarms",
        f"/alarm/{alarm.id}": "temp",
        "/budget": "allowed",
        "/budget?range=all": "allowed",
        "/whatif": "whatif-data",
        "/whatif?entity=e1&range=24h": "whatif-data",
        "/proposals": "Proposals",
        "/care": "Maintenance",
        "/login": "Token",
    }
    for address, word in pages.items():
        found = client.get(address)
        assert found.status_code == 200, (address, found.text[-500:])
        assert word in found.text, address


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(client, service):
    (alarm, *_) = service.view.alarms(entity="e1")
    for address in ("/", "/entity/e1", "/alarms", f"/alarm/{alarm.id}", "/budget", "/whatif", "/proposals", "/care"):
        found = client.get(address)
        assert "default-src 'self'" in found.headers["content-security-policy"]
        for script in re.findall(r"<script[^>]*>", found.text):
            assert 'src="/static/' in script or 'type="application/json"' in script, (address, script)
        assert not re.search(r"\sstyle=|\son[a-z]+=\"|javascript:", found.text), address
        outside = re.findall(r"""(?:src|href|action)=["'](?:https?:)?//[^"']+""", found.text)
        assert outside == [], address
        for asset in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', found.text)):
            assert client.get(asset).status_code == 200, asset


def test_scripts_together_are_small(client):
    names = ("uplot.js", "common.js", "fleet.js", "entity.js", "whatif.js")
    assert sum(len(client.get(f"/static/{name}").content) for name in names) < 120_000


def test_names_are_escaped_everywhere(client):
    for address in ("/", "/whatif", "/proposals", "/budget"):
        text = client.get(address).text
        assert "<img src=x" not in text, address
    from urllib.parse import quote

    found = client.get("/entity/" + quote(NASTY))
    assert found.status_code == 200
    assert "<img src=x" not in found.text
    assert "&lt;img src=x" in found.text


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("/entity/nobody", 404),
        ("/alarm/0123456789abcdef", 404),
        ("/?range=for+ever", 400),
        ("/entity/e1?start=now&stop=later", 400),
        ("/entity/e1?start=nan&stop=1e400", 400),
        ("/static/../pages.py", 404),
        ("/static/nothing.js", 404),
    ],
)
def test_refusals_are_pages(client, address, code):
    found = client.get(address)
    assert found.status_code == code
    if code == 400:
        assert "This cannot be shown" in found.text


def test_a_label_from_the_page_s_own_form_is_in_the_book(client, service):
    (alarm, *_) = service.view.alarms(entity="e1")
    page = client.get(f"/alarm/{alarm.id}").text
    (address,) = re.findall(r'data-post="(/api/v1/alarms/[^"]+/label)"', page)
    said = client.post(address, json={"label": "false", "author": "ana", "reason": "a <b>test</b>"})
    assert said.status_code == 200
    page = client.get(f"/alarm/{alarm.id}").text
    assert "ana said <b>a false alarm</b>" in page
    assert "&lt;b&gt;test&lt;/b&gt;" in page
    assert "False" in client.get("/budget?range=all").text


def test_with_a_token_a_browser_is_shown_the_way_in(service):
    make_token(service.engine.store, "desk", ["read"], 0.0)
    app = make_app(service, Tokens(service.engine.store), more=routes(service))
    client = local_client(app)
    found = client.get("/budget?range=7d", headers={"accept": "text/html"}, follow_redirects=False)
    assert found.status_code == 303
    assert found.headers["location"] == "/login?next=%2Fbudget%3Frange%3D7d"
    assert client.get("/login").status_code == 200
    assert client.get("/api/v1/ledger", headers={"accept": "text/html"}).status_code == 401


def test_moments_beyond_calendars_are_numbers():
    assert "1,000,000,000,000 s" in moment(1e12).replace("1.000e+12", "1,000,000,000,000")
    assert "2026-02-02" in moment(float(START))


def test_groups_of_one_entity_are_not_listed_twice(monkeypatch, client, service):
    """36 models of 36 machines were 72 rows and 36 paragraphs on the page of the budget."""
    page = client.get("/budget?range=all").text
    assert page.index("<h2>Entities") < page.index("<h2>What the thresholds")
    rows = page[page.index("<h2>Fleet and groups") : page.index("<h2>Entities")]
    assert "<b>main</b>" in rows
    original = service.view.ledger

    def renamed(*given, **named):
        ledger = original(*given, **named)
        return msgspec.structs.replace(ledger, groups=[msgspec.structs.replace(ledger.groups[0], name="e1")])

    monkeypatch.setattr(type(service.view), "ledger", lambda self, *given, **named: renamed(*given, **named))
    page = client.get("/budget?range=all").text
    rows = page[page.index("<h2>Fleet and groups") : page.index("<h2>Entities")]
    assert "<b>e1</b>" not in rows
    assert "<b>all</b>" in rows


@pytest.mark.parametrize("now", [START + 60 * 200, START - 10 * 365 * 86400, START + 365 * 86400])
def test_a_wrong_clock_moves_no_page_of_the_others(engine_in, tmp_path, now):
    """Rows of now, of the past and of the future."""
    service = Service(engine_in(tmp_path / "data", clock=lambda: float(now))).start()
    for rows in requests_of():
        service.ingest(rows)
    decade = START + 10 * 365 * 86400
    service.ingest([Row(entity="e2", values=[60.0, 5.0, 1.0], time=decade + 60 * k) for k in range(3)])
    client = local_client(make_app(service, Tokens(service.engine.store), more=routes(service)))
    heat = client.get("/api/v1/heatmap").json()
    assert heat["stop"] == pytest.approx(START + 60 * 199, abs=1.0)
    assert set(heat["state"][0]) > {"c"}
    page = client.get("/").text
    assert "A clock is far ahead" in page
    shown = msgspec.json.decode(re.findall(r'id="heat-data">(.*?)</script>', page)[0])
    assert shown["stop"] == pytest.approx(START + 60 * 199, abs=2.0)
    assert f"{len(service.view.alarms(sort='statistic'))} raised" in page
    assert "is its clock right?" in client.get("/entity/e2").text
    assert "is its clock right?" not in client.get("/entity/e1").text
    assert service.feedback.refits.newest("main") == (START + 60 * 199) * 10**9
    service.stop()

"""A real browser walks every page, labels an alarm and moves the slider; a request to another host or an error fails."""

import importlib.util
import re
import shutil
import threading
import time
from pathlib import Path

import pytest

from serve.conftest import START, requests_of

pytestmark = [pytest.mark.service]
playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
uvicorn = pytest.importorskip("uvicorn", reason="the extra serve")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def served(engine_in, tmp_path):
    from tisat_serve.api.app import make_app
    from tisat_serve.console import routes
    from tisat_serve.security import Tokens
    from tisat_serve.service import Service

    service = Service(engine_in(tmp_path / "data", clock=lambda: float(START + 60 * 200))).start()
    for rows in requests_of():
        service.ingest(rows)
    app = make_app(service, Tokens(service.engine.store), more=routes(service))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield service, f"http://127.0.0.1:{port}"
    server.should_exit = True
    server.force_exit = True
    thread.join(10)
    service.stop()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_a_person_walks_through_the_console(served, width):
    service, address = served
    outside, wrong = [], []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("request", lambda one: outside.append(one.url) if not one.url.startswith(address) else None)
        page.on("pageerror", lambda one: wrong.append(str(one)))
        page.on("console", lambda one: wrong.append(one.text) if one.type in ("error", "warning") else None)
        for path in (
            "/",
            "/alarms",
            "/alarms?show=incidents",
            "/alarms?show=each",
            "/budget",
            "/whatif",
            "/proposals",
            "/care",
            "/entity/e1",
        ):
            page.goto(address + path)
            page.wait_for_timeout(150)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.locator("#charts .u-wrap").count() >= 4  # the statistic and three channels
        page.goto(address + "/")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.closest('[data-row]') !== null")
        # An alarm is labelled with one key
        page.goto(address + "/alarms")
        page.locator("a[href^='/alarm/']").first.click()
        page.locator("#label-form [name=author]").fill("ana")
        page.locator("h1").click()
        page.keyboard.press("2")
        page.get_by_text("ana said").wait_for()
        # The slider asks what another threshold would have done
        page.goto(address + "/whatif?entity=e1&range=24h")
        before = page.locator("#threshold").text_content()
        page.locator("#slider").focus()
        for _ in range(3):
            page.keyboard.press("PageUp")
        playwright.expect(page.locator("#threshold")).not_to_have_text(before)
        assert re.search(r"\d", page.locator("#sentences").text_content())
        browser.close()
    assert outside == []
    assert wrong == []
    assert service.view.labels()[0].author == "ana"


PAGES = (
    "/",
    "/alarms",
    "/alarms?show=incidents",
    "/budget",
    "/whatif",
    "/proposals",
    "/care",
    "/entity/e1",
    "/alarm/",
    "/login",
)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_no_table_is_cut(served, scheme):
    found = importlib.util.find_spec("axe_core_python")
    if found is None:
        pytest.skip("axe is not installed: pip install axe-core-python")
    axe = (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text()
    service, address = served
    for alarm in service.view.alarms(sort="statistic"):
        service.feedback.label(alarm.id, "false", author="ana")
    serious, cut = [], []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in (390, 1280):
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
            )
            page = context.new_page()
            for path in PAGES:
                page.goto(address + (path + service.view.alarms()[0].id if path == "/alarm/" else path))
                page.wait_for_timeout(150)
                page.evaluate(axe)
                serious += [
                    (width, path, one["id"], [node["html"][:120] for node in one["nodes"]])
                    for one in page.evaluate("axe.run()")["violations"]
                    if one["impact"] in ("serious", "critical")
                ]
                cut += [(width, path, one) for one in page.evaluate(CUT)]
        browser.close()
    assert serious == [], "\n".join(map(str, serious))
    assert cut == [], "\n".join(map(str, cut))


# Tables and menus that are wider than what holds them: a person would have to scroll sideways, or misses them.
CUT = """[...document.querySelectorAll(".wide, .top nav, .ranges, form, .card")]
  .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.className || one.tagName} ${one.scrollWidth} > ${one.clientWidth}`)"""

"""A page in a real browser: it draws, zooms, switches channels, follows dark and paper, asks no network and says nothing on the error console."""

import shutil

import numpy as np
import pytest

from tisat import Series, Watch
from tisat.plotting.alarm_page import alarm_page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed, so the page cannot be opened"),
]
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    names = ("flow", EVIL, "power", "load", "heat")
    watch = Watch("mahalanobis", budget="1/500 rows").fit(Series(rng.normal(size=(3000, 5)), channels=names))
    rows = rng.normal(size=(600, 5))
    rows[300:340, 1] += 12.0
    series = Series(rows, channels=names, labels=np.arange(600) // 40 == 7, name=EVIL)
    page = tmp_path_factory.mktemp("page") / "alarms.html"
    alarms = watch.alarms(series)
    page.write_text(alarm_page(alarms, series, expected=watch.detector.expected(series)), encoding="utf-8")
    return page


@pytest.fixture
def browser():
    playwright = pytest.importorskip("playwright.sync_api").sync_playwright().start()
    opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
    yield opened
    opened.close()
    playwright.stop()


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (800, "dark"), (1280, "light")])
def test_the_page_draws_zooms_and_switches(browser, file, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    errors, asked = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector(".chart canvas")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing runs out of the page"
    visible = "[...document.querySelectorAll('.chart')].filter(one => !one.hidden).length"
    before = page.evaluate(visible)
    page.locator(".switches button[aria-pressed=false]").first.click()
    assert page.evaluate(visible) == before + 1
    ticks = "document.querySelector('.chart:nth-of-type(3) .u-legend')?.textContent"
    over = page.locator(".u-over").nth(1)
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 30)
    page.wait_for_timeout(100)
    assert any(character.isdigit() for character in page.evaluate(ticks) or "0"), "values are shown where one points"
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 30, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="show everything").first.click()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()") == "#ffffff"
    assert page.locator("img").count() == 0
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()

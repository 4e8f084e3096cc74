"""The report: self-contained, escaped, and it opens in a browser."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import shutil
import struct
import subprocess

import pytest

from tisat_bench.report import report_page, write_report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(smoke, tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report"), *smoke)


def test_the_report_needs_no_network_and_no_script_but_its_own(report):
    for page in (report, *report.parent.glob("entities/*.html")):
        text = page.read_text(encoding="utf-8")
        policy = re.search(r"default-src 'none';[^\"]*", text)[0]
        scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
        assert len(scripts) == 2
        for script in scripts:
            assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
        addresses = set(re.findall(r"(?:src|href)=['\"]([^\"']+)['\"]", text))
        assert all(address.startswith(("#", "entities/", "data:")) for address in addresses), addresses
        assert not re.search(r"url\((?!#)", text)


def test_the_report_has_every_part(report):
    text = report.read_text(encoding="utf-8")
    for words in (
        "SPD under: plain threshold",
        "Chance-corrected",
        "Difference to",
        "Mean ranks",
        "SPD curves",
        "Pooled against mean",
        "Cost against quality",
        "Single entities",
        "Of fewer than 6 entities there is no bar.",  # three plants
    ):
        assert words in text, words
    assert text.count("class='dots'") >= 3
    assert text.count("class='charts'") >= 4
    order = ["class='answer'", "class='contents'", "class='dots'", "SPD under: plain threshold"]
    assert sorted(order, key=text.index) == order, "the answer, a list of contents, pictures before tables"
    assert "best" in re.search(r"<td class=\"[^\"]*best", text)[0]
    assert len(list(report.parent.glob("entities/*.html"))) == 3
    assert {"tables.md", "tables.tex", "table-1.csv"} <= {file.name for file in report.parent.iterdir()}


def test_links_lead_to_pages_that_are_there(report):
    for link in re.findall(r'href="(entities/[^"]+)"', report.read_text(encoding="utf-8")):
        assert (report.parent / link).is_file()


def test_the_same_figures_give_the_same_page(smoke):
    frozen, _ = smoke
    assert report_page(frozen) == report_page(frozen)


def test_names_from_files_are_escaped(smoke):
    frozen, _ = smoke
    hostile = dataclasses.replace(
        frozen, about={**frozen.about, "title": "<script>x</script>", "note": "<img src=x>", "failures": ["<b>"]}
    )
    text = report_page(hostile)
    assert "<script>x" not in text
    assert "<img" not in text
    assert "<b>;" not in text


def test_without_stored_scores_the_report_still_has_its_tables(smoke):
    text = report_page(smoke[0])
    assert "SPD under: plain threshold" in text
    assert "SPD curves" not in text


def screenshot(page, target, height):
    profile = target.parent / "profile"
    words = [
        BROWSER,
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--window-size=1100,{height}",
        f"--screenshot={target}",
        page.as_uri(),
    ]
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    return target.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed, so the page cannot be looked at")
def test_a_browser_draws_the_report(report, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    data = screenshot(report, tmp_path / "report.png", 3000)
    assert struct.unpack(">II", data[16:24]) == (1100, 3000)
    pixels = image.imread(tmp_path / "report.png")[..., :3]
    inked = (pixels.max(axis=2) < 0.95).mean(axis=1)  # share of marked pixels in each line of the picture
    assert (inked > 0).mean() > 0.4, "most lines of the page have something on them"
    assert inked.max() < 0.9, "no line is a solid block"
    entity = sorted(report.parent.glob("entities/*.html"))[0]
    screenshot(entity, tmp_path / "entity.png", 1300)
    shaded = image.imread(tmp_path / "entity.png")[..., :3]
    green = (shaded[..., 1] > shaded[..., 0] + 0.03) & (shaded[..., 1] > shaded[..., 2] + 0.01)
    assert green.mean() > 0.002, "events that were found are green"

"""What pages carry inside them is what its author published, and its licence is beside it."""

import hashlib
import re
from importlib.resources import files

import tisat.plotting.static as static

FOLDER = files("tisat.plotting.static")


def test_uplot_is_the_published_file():
    written = dict(re.findall(r"\| `(uPlot[^`]+)` \| `([0-9a-f]{64})` \|", FOLDER.joinpath("README.md").read_text()))
    assert sorted(written) == ["uPlot.iife.min.js", "uPlot.min.css"]
    for name, digest in written.items():
        assert hashlib.sha256(FOLDER.joinpath(name).read_bytes()).hexdigest() == digest
        assert static.read(name)


def test_its_licence_is_there_and_named():
    assert "Leon Sorokin" in static.read("uPlot.LICENSE")
    assert "MIT" in static.read("uPlot.LICENSE")


def test_our_scripts_make_no_html_of_text_and_ask_nobody():
    ours = static.read("charts.js")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "fetch(",
        "XMLHttpRequest",
        "http",
    ):
        assert word not in ours

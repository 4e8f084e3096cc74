"""Pages as products: nothing a name says becomes code, one palette for all of them, and pictures that follow light and dark."""

import html
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from tisat.metrics import audit
from tisat.metrics.comparison import compare
from tisat.plotting.audit_page import audit_page, comparison_page
from tisat.plotting.charts import Group, Mark, curves, lanes, panel, scatter, thinned
from tisat.plotting.page import Dot, Dots, Key, Picture, Section, Table, figure_to_svg, render_page
from tisat.plotting.phrases import TERMS, steps_of
from tisat.utils import palette as _palette
from tisat.utils.html import table

EVIL = "</script></title></style><img src=x onerror=alert(1)>&\"'`<!--"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.scripts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def harmless(page):
    found = Tags()
    found.feed(page)
    assert "img" not in found.tags
    assert not [name for name in found.attributes if name.startswith("on")]
    assert found.tags.count("title") == 1
    assert found.tags.count("script") in (0, 3)
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=['\"]https?:", page)
    return found


def test_every_kind_of_content_escapes_what_it_is_given():
    group = Group(
        [0.0, 1.0],
        [lanes(EVIL, (EVIL,)), panel(EVIL, [{"label": EVIL, "look": "seen", "values": [1.0, 2.0]}]), curves(EVIL, [(EVIL, "c0", [0, 1], [0, 1])])],
        [Mark(0.0, 1.0, "false", EVIL, EVIL, EVIL)],
        axis={"label": EVIL},
        caption=EVIL,
    )  # fmt: skip
    content = [
        EVIL,
        Table((EVIL, EVIL), [(EVIL, 1.0)], EVIL, terms=[(EVIL, EVIL)]),
        Dots(EVIL, [Dot(EVIL, 0.5)], caption=EVIL),
        Picture("<svg></svg>", EVIL),
        group,
    ]
    sections = [Section(EVIL, content), Section(EVIL, content, folded=True), Section("a"), Section("b")]
    page = render_page(
        EVIL,
        sections,
        lead=EVIL,
        answer=EVIL,
        more=[EVIL],
        keys=[Key(EVIL, EVIL)],
        next_steps=[f"`{EVIL}`"],
        command=EVIL,
    )
    harmless(page)
    first, _ = json.loads(re.search(r"id='data'>(.*?)</script>", page)[1])
    assert first["marks"][0]["name"] == EVIL
    assert first["panels"][0]["name"] == EVIL


def test_hostile_names_in_audits():
    rng = np.random.default_rng(0)
    labels = [np.arange(400) // 20 == 7, np.arange(400) // 20 == 12]
    scores = [rng.random(400), rng.random(400)]
    names = [EVIL, "b"]
    one = audit(labels, scores, delta_max=20, names=names)
    page = audit_page(one, names=names, scores=scores, command=EVIL)
    assert "table" in harmless(page).tags
    assert html.escape(EVIL) in page  # shown, as text
    several = {EVIL: scores, "other": [1 - s for s in scores]}
    audits = {name: audit(labels, each, delta_max=20, names=names) for name, each in several.items()}
    page = comparison_page(audits, compare(labels, several, delta_max=20, resamples=100), command=EVIL)
    assert "table" in harmless(page).tags
    assert html.escape(EVIL) in page


def test_a_page_without_charts_has_no_script():
    page = render_page("t", [Section("s", ["`tisat demo` is a command."])])
    assert "script-src 'none'" in page
    assert "<script" not in page
    assert "<code>tisat demo</code> is a command." in page


def test_misses_are_counted_apart_from_delays():
    labels = np.zeros(300)
    labels[100:120] = labels[200:220] = 1
    scores = np.zeros(300)
    scores[100] = 1.0
    page = audit_page(audit(labels, scores, delta_max=20, threshold=0.5, names=["a"]), names=["a"], scores=[scores])
    assert "1 of 2 events found, 0 false alarms at threshold 0.5 (given)" in page
    assert "<b>1</b><span>event missed</span>" in page
    assert "<b>0 rows</b><span>delay of those found, median</span>" in page, (
        "the missed one is not counted as a delay of 20"
    )


def test_the_console_has_the_colours_of_the_pages():
    css = files("tisat_serve.console.static").joinpath("console.css").read_text()
    light, dark = css.split("@media (prefers-color-scheme: dark)")[:2]
    ours = {"ink": "ink", "soft": "soft", "alarm": "alarm", "curve": "curve", "shade": "shade", "band": "band", "good": "found", "warn": "onset"}  # fmt: skip
    for text, colours in ((light, _palette.LIGHT), (dark, _palette.DARK)):
        for theirs, name in ours.items():
            assert re.search(rf"--{theirs}: ([^;]+);", text)[1] == colours[name], theirs


def test_no_picture_has_colours_of_its_own():
    package = files("tisat")
    for module in (
        "alarms/plot.py",
        "alarms/result.py",
        "io/channel_plot.py",
        "metrics/curve.py",
        "plotting/budget_page.py",
    ):
        assert not re.search(r"#[0-9a-fA-F]{6}", package.joinpath(module).read_text()), module
    for name in ("page.css", "charts.js"):
        assert not re.search(
            r"#[0-9a-fA-F]{3,6}\b(?!ata)", files("tisat.plotting.static").joinpath(name).read_text()
        ), name


def test_light_and_dark_name_the_same_colours():
    assert list(_palette.LIGHT) == list(_palette.DARK)
    assert _palette.FOUND != _palette.MISSED != _palette.FALSE


def test_still_pictures_follow_the_paper():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    axes.plot([0, 1], color=_palette.ALARM)
    svg = figure_to_svg(figure)
    assert "stroke: var(--alarm)" in svg
    assert "#ffffff" not in svg
    assert "#000000" not in svg


def test_a_baselines_area_is_no_precision():
    pytest.importorskip("matplotlib")
    from tisat.metrics import spd_curve

    axes = spd_curve([0, 1, 1, 0, 0, 0, 0, 0], [0, 1, 2, 1, 0, 0, 3, 0], delta_max=2).plot()
    assert len(axes.lines) == 1, "the curve alone: trivial baselines have no line on the precision axis"
    (areas,) = axes.child_axes
    assert len(areas.patches) == 4
    axes.figure.clear()


def test_the_steps_enclose_the_score():
    from tisat.metrics import spd_curve

    rng = np.random.default_rng(1)
    curve = spd_curve(np.arange(600) // 30 % 4 == 1, rng.random(600), delta_max=20)
    x, y = steps_of(curve.nadd, curve.precision)
    assert (np.diff(x) > 0).all()
    assert float((np.diff(x) * y[:-1]).sum()) == pytest.approx(float(curve.score), abs=1e-9)


def test_a_thinned_curve_keeps_its_extremes_and_order():
    rows = thinned(100_001, most=1000)
    assert rows.shape == (500, 2)
    assert (np.diff(rows.ravel()) > 0).all()


def test_points_at_one_place_are_all_drawn():
    (line,) = scatter("t", [("a", "c0", [(0.5, 0.1, "x"), (0.5, 0.2, "y"), (0.1, 0.3, "z")])])["lines"]
    assert line["names"] == ["z", "x", "y"]
    assert len(set(line["x"])) == 3


def test_every_term_is_a_sentence():
    for term, meaning in TERMS.items():
        assert meaning.endswith("."), term


def test_promises_are_drawn_beside_what_was_asked_for():
    pytest.importorskip("matplotlib")
    from tisat.alarms.false_alarm_study import Promise
    from tisat_bench.false_alarm_figures import draw_promises

    kept = Promise("a", "paper", "power", "exact", "exact", 100.0, 1.0, 5, 1000, 80.0, 500.0, None)
    silent = Promise("a", "paper", "power", "auto", "bootstrap", 100.0, 1.0, 0, 1000, 300.0, None, None)
    broken = Promise("b", "paper", "weibull", "exact", "exact", 100.0, 1.0, 100, 1000, 8.0, 12.0, None)
    figure = draw_promises([kept, silent, broken])
    drawn = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title() for axis in drawn] == ["a, paper", "b, paper:weibull"]
    dots = [line for axis in drawn for line in axis.lines if line.get_marker() in ("o", ">")]
    assert [line.get_xdata()[0] for line in dots] == [2.0, 100.0, 0.1]
    assert [line.get_color() for line in dots] == [_palette.FOUND, _palette.FOUND, _palette.ALARM]


def test_terminal_and_page_say_found_missed_and_false_alike(capsys, monkeypatch):
    from tisat.cli.output import print_table

    rows = [("found at once", 1), ("missed: no alarm", 2), ("false alarm", 3), ("flow", 4)]
    page = render_page("t", [Section("s", [Table(("what", "n"), rows)])])
    assert [name in page for name in ("t-found", "t-missed", "t-false'")] == [True, True, True]
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table("t", ("what", "n"), rows)
    printed = capsys.readouterr().out
    assert "\x1b[32mfound at once" in printed
    assert "\x1b[1mmissed: no alarm" in printed
    assert "\x1b[31mfalse alarm" in printed
    assert set(_palette.TERMINAL) <= set(_palette.WORDS)
    notebook = table("t", ("what", "n"), rows)
    assert f'color:{_palette.FOUND}">found at once' in notebook
    assert f'color:{_palette.FALSE}">false alarm' in notebook

"""The page of `tisat alarm --html`: the answer in words, the data whole, nothing a file says becomes code."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from tisat import Series, Watch
from tisat.alarms.joined_channels import Further
from tisat.alarms.ongoing import rows_on
from tisat.plotting.alarm_page import MOST_POINTS, alarm_page, answer

EVIL = "</script><img src=x onerror=alert(1)>&\"'<!--"


@pytest.fixture(scope="module")
def watched():
    rng = np.random.default_rng(0)
    watch = Watch("mahalanobis", budget="1/500 rows").fit(
        Series(rng.normal(size=(3000, 2)), channels=("flow", EVIL), name="normal")
    )
    rows = rng.normal(size=(600, 2))
    rows[300:340, 1] += 12.0
    rows[590:, 0] += 30.0
    stamps = np.datetime64("2026-03-09T00:00") + np.arange(600) * np.timedelta64(60, "s")
    test = Series(
        rows,
        timestamps=stamps,
        channels=("flow", EVIL),
        labels=np.arange(600) // 40 == 7,
        name=EVIL,
        offsets=np.full(600, 120),
    )
    return watch, test, watch.alarms(test, any_period=True)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.data, self.inside = [], [], {}, None

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *one) for one in attrs]
        self.inside = dict(attrs).get("id") if tag == "script" else None

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.data[self.inside] = self.data.get(self.inside, "") + data


def parsed(page):
    found = Tags()
    found.feed(page)
    return found


def test_the_answer_comes_first_in_words(watched):
    _, test, alarms = watched
    said = answer(alarms, test)
    assert said.startswith(
        f"{len(alarms)} alarms in 600 rows from 2026-03-09 02:00+02:00 to 2026-03-09 11:59+02:00. The strongest was raised at "
    )
    assert "still on" in said
    page = alarm_page(alarms, test)
    assert (
        page.index("class='answer'") < page.index("class='keys'") < page.index("class='charts'") < page.index("<table")
    )


def test_nothing_a_file_says_becomes_code(watched):
    _, test, alarms = watched
    found = parsed(alarm_page(alarms, test, command=f"tisat alarm {EVIL}"))
    assert "img" not in found.tags
    assert [tag for tag in found.tags if tag == "script"] == ["script"] * 3
    assert not [one for one in found.attributes if one[1].startswith("on")]
    (document,) = json.loads(found.data["data"])
    assert EVIL in [chart["name"] for chart in document["panels"]]
    assert "<" not in found.data["data"]


def test_the_page_forbids_itself_all_but_its_own_scripts(watched):
    _, test, alarms = watched
    page = alarm_page(alarms, test)
    policy = next(
        value
        for tag, name, value in parsed(page).attributes
        if tag == "meta" and name == "content" and "default-src" in value
    )
    assert policy.startswith("default-src 'none'")
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.S)
    assert len(scripts) == 2
    for text in scripts:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2]
    assert not re.search(r"(src|href)=['\"]?https?:", page)


def test_every_number_is_on_it(watched):
    watch, test, alarms = watched
    expected = watch.detector.expected(test)
    assert expected[0].shape == expected[1].shape == (600, 2)
    (document,) = json.loads(parsed(alarm_page(alarms, test, expected=expected)).data["data"])
    assert document["clock"]
    assert document["x"][0] == np.datetime64("2026-03-09T02:00").astype("datetime64[s]").astype(
        int
    )  # as it was written
    kinds = [mark["kind"] for mark in document["marks"]]
    assert kinds.count("true") + kinds.count("false") == len(alarms)
    (fault,) = [mark for mark in document["marks"] if mark["lane"] == "faults"]
    assert (fault["kind"], fault["start"], fault["stop"]) == ("found", document["x"][280], document["x"][320])
    assert kinds.count("false") == sum(one.raised >= 320 or (one.cleared or 600) <= 280 for one in alarms) > 0
    assert document["panels"][0]["lanes"] == ["faults", "alarms", "false alarms"]
    chart = document["panels"][1]
    lines = {line["label"]: line["values"] for line in chart["lines"]}
    c = test.channels.index(chart["name"])
    np.testing.assert_allclose(lines["seen"], test.values[:, c], rtol=1e-5)
    known = [value is not None for value in lines["expected"]]
    np.testing.assert_allclose(np.array(lines["expected"])[known].astype(float), expected[0][known, c], rtol=1e-5)
    assert chart["band"] == [1, 2]


def test_long_series_keep_their_peaks(watched):
    watch, test, _ = watched
    rows = np.random.default_rng(1).normal(size=(3 * MOST_POINTS, 2))
    rows[41_234, 0] = 99.0
    long = Series(rows, channels=test.channels, name="long")
    alarms = watch.alarms(long)
    (document,) = json.loads(parsed(alarm_page(alarms, long)).data["data"])
    flow = next(chart for chart in document["panels"] if chart["name"] == "flow")
    assert len(document["x"]) == len(flow["lines"][0]["values"]) == MOST_POINTS
    assert max(flow["lines"][0]["values"]) == 99.0
    assert document["x"] == sorted(document["x"])
    assert not document["clock"]


def test_a_page_without_alarms_says_so(watched):
    watch, test, _ = watched
    quiet = Series(np.zeros((200, 2)), channels=test.channels, name="quiet")
    alarms = watch.alarms(quiet)
    assert len(alarms) == 0
    page = alarm_page(alarms, quiet)
    assert "No alarm in 200 rows." in page
    assert "<table" not in page


@pytest.mark.parametrize("name", ["last-value", "linear-mean", "prism", "pca"])
def test_expected_is_what_explain_says(name):
    import tisat

    rows = np.sin(np.arange(900) / 9.0)[:, None] + 0.1 * np.random.default_rng(0).normal(size=(900, 3))
    detector = tisat.make(name).fit(rows)
    expected, spread = detector.expected(rows[:300])
    points = detector.points(rows[:300])
    scores = detector.decision_function(rows[:300])
    np.testing.assert_array_equal(np.isnan(expected).all(axis=1), np.isnan(scores))
    for t in (150, 299):
        why = detector.explain(rows[t], points[t])
        np.testing.assert_allclose(expected[t], why.expected)
        np.testing.assert_allclose(spread[t], why.spread)
    at = np.array([5, 150, 299])
    few = np.array(detector.expected(rows[:300], at=at))
    np.testing.assert_array_equal(few[:, at], np.array([expected, spread])[:, at])
    assert np.isnan(np.delete(few, at, axis=1)).all(), "a page of a long series asks only for what it draws"


def test_a_channel_that_fell_silent_is_said_on_top():
    rng = np.random.default_rng(1)
    watch = Watch("mahalanobis", budget="1/500 rows").fit(Series(rng.normal(size=(3000, 2)), channels=("flow", "amps")))
    rows = 0.1 * rng.normal(size=(400, 2))
    rows[100:, 1] = np.nan
    test = Series(rows, channels=("flow", "amps"))
    alarms = watch.alarms(test)
    assert not len(alarms)
    assert answer(alarms, test) == "No alarm in 400 rows. amps fell silent at row 100."


def test_a_fault_that_stays_is_on_in_the_page_as_long_as_in_the_table():
    rng = np.random.default_rng(3)
    drive = rng.normal(size=3000).cumsum() * 0.1
    rows = np.column_stack([drive, drive]) + 0.05 * rng.normal(size=(3000, 2))
    watch = Watch("prism", budget="1/500 rows").fit(Series(rows[:2200], channels=("flow", "power"), name="normal"))
    broken = rows[2200:].copy()
    broken[300:, 1] += 3.0  # until the end
    series = Series(broken, channels=("flow", "power"), name="broken")
    alarms = watch.alarms(series)
    (ongoing,) = [one for one in alarms if one.state == "ongoing"]
    on = rows_on(alarms)
    assert on[ongoing.raised :].all()
    assert on.sum() > alarms.active.sum()
    assert f"{on.mean():.1%}" in alarm_page(alarms, series)


def test_the_table_has_short_times_and_the_second_fault(watched):
    """Three whole dates left the reasons a column of a finger's breadth, and a fault that joined was not on the page."""
    _, test, alarms = watched
    joined = Further(310, "2026-03-09T07:10:00+02:00", "spike", alarms[0].reasons)
    first = replace(alarms[0], further=(joined,))
    page = alarm_page(replace(alarms, alarms=(first, *alarms.alarms[1:])), test)
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    begun = first.onset_time[11:16]
    assert f"<td class='left short'>{begun}</td>" in table
    assert "from 2026-03-09 07:10+02:00 also" in table

"""show_anomalies in one line, and a calibration as a picture."""

import numpy as np
import pytest

import tisat
from tisat import Watch
from tisat.alarms import calibrate, make_rule
from tisat.errors import ParameterError

ROWS = np.random.default_rng(0).normal(size=(3000, 3))
FAULTY = ROWS[:500].copy()
FAULTY[300:320, 1] += 20.0


def test_one_line_shows_series_band_evidence_and_alarms(tmp_path):
    watch = Watch("linear-mean", budget="1/500 rows").fit(ROWS)
    figure = tisat.show_anomalies(watch, FAULTY, channels=2)
    assert len(figure.axes) == 3
    assert figure.axes[0].get_ylabel() == "1"  # the contributing channel first
    assert len(figure.axes[0].collections) >= 1  # the band
    page = tisat.show_anomalies(watch, FAULTY, interactive=True)
    assert 'sandbox="allow-scripts"' in page._repr_html_()
    page.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text() == page.html
    assert "characters" in repr(page)
    detector = watch.detector
    assert tisat.show_anomalies(detector, FAULTY, budget="1/500 rows", interactive=True).html == page.html
    assert "1/900" in tisat.show_anomalies(watch, FAULTY, budget="1/900 rows").get_suptitle()


def test_a_calibration_is_drawn():
    axes = calibrate(make_rule("excess"), np.random.default_rng(0).exponential(size=30_000), "1/1000 rows").plot()
    assert axes.get_xscale() == "log"
    heights = axes.lines[0].get_ydata()
    assert (np.diff(heights) >= 0).all()
    assert axes.lines[1].get_xdata()[0] == pytest.approx(1000)
    axes.figure.clear()


def test_the_page_of_a_notebook_stays_small():
    rows = np.random.default_rng(0).normal(size=(60_000, 6))
    rows[30_000] = 25.0  # one row of many: no peak is left out
    watch = tisat.Watch("last-value", budget="1/1000 rows").fit(rows[:5000])
    page = tisat.show_anomalies(watch, rows, interactive=True)
    assert len(page.html) < 1_300_000
    assert "25" in page.html


def test_swapped_arguments_are_refused_in_one_sentence():
    with pytest.raises(ParameterError, match=r"show_anomalies\(model, series\). Got ndarray instead"):
        tisat.show_anomalies(FAULTY, tisat.Watch("last-value"))


def test_channels_is_how_many_not_which():
    watch = tisat.Watch("last-value", budget="1/500 rows").fit(np.random.default_rng(0).normal(size=(3000, 2)))
    rows = np.random.default_rng(1).normal(size=(200, 2))
    for draw in (
        lambda: watch.alarms(rows).plot(rows, channels=["0"]),
        lambda: tisat.show_anomalies(watch, rows, channels=["0"], interactive=True),
    ):
        with pytest.raises(ParameterError, match=r"'channels' .* must be an integer >= 1\. Got \['0'\] instead"):
            draw()

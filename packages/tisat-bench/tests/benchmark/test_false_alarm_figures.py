"""Promises about false alarms: counted where the theorem's own model holds, and drawn."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tisat.cli import app
from tisat_bench import false_alarm_figures as studies
from tisat_bench.false_alarm_figures import Curve, draw_real, draw_study, held_out_curves, ideal_study, study


@pytest.fixture(scope="module")
def ideal():
    return ideal_study(time_steps=200_000)


def test_where_the_theorem_holds_its_bound_is_kept(ideal):
    found, curves = ideal
    assert len(found) == 3 * len(studies.IDEAL_ALPHAS) * len(studies.IDEAL_TARGETS)
    for one in found:
        if one.method == "exact":
            assert one.high is None or one.high >= one.target, "at least as long between two alarms as was asked for"
    for curve in curves:
        assert set(curve.bounds) == {"exact", "printed", "other-root"}
        assert (np.diff(curve.thresholds) > 0).all()
        assert (np.diff(curve.periods) >= 0).all(), "a higher threshold is passed less often"


def test_one_panel_for_each_curve_with_every_bound_in_the_legend(ideal):
    _, curves = ideal
    figure = draw_study(curves, columns=2)
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title() for axis in shown] == [curve.entity for curve in curves]
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"actual", "exact, bound", "printed, bound", "other-root, bound"}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("far") / "plant.csv"
    with path.open("w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["time", "a", "b"])
        writer.writerows([60 * t, *row] for t, row in enumerate(rng.normal(size=(1200, 2)).round(4).tolist()))
    return path


def test_a_study_of_ones_own_file_counts_on_its_end(file):
    found = study([str(file)], rules=("paper:weibull", "threshold"), targets=[50.0], methods=["auto"])
    assert {(one.entity, one.rule, one.form, one.target, one.time_steps) for one in found} == {("plant", "paper", "weibull", 50.0, 600), ("plant", "threshold", "", 50.0, 600)}  # fmt: skip
    assert study([str(file)], tail=0.995) == [], "nothing can be calibrated on six rows"


def test_the_verb_prints_what_the_study_counts(file, tmp_path, monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, target, **__: target.write(b"picture"))

    def far(*words):
        done = CliRunner().invoke(app, ["data", "far", *map(str, words)])
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    told = json.loads(far(file, "--targets", "50,20", "--rule", "threshold", "--method", "auto", "--json", "--picture", tmp_path / "a.png"))  # fmt: skip
    assert [one["target"] for one in told] == [50.0, 20.0]
    assert (tmp_path / "a.png").exists()
    monkeypatch.setattr(studies, "ideal_study", lambda: ideal_study(time_steps=20_000))
    assert "ideal, alpha" in far("--picture", tmp_path / "b.png")
    assert (tmp_path / "b.png").exists()
    for bad in ("soon", "50,", "0", "inf", ""):
        refused = CliRunner().invoke(app, ["data", "far", str(file), "--targets", bad])
        assert "--targets must be rows between two alarms" in str(refused.exception)


def test_figure_three_of_real_data_has_the_bounds_and_what_was_counted(file):
    (curve,) = held_out_curves([str(file)])
    assert curve.entity == "plant"
    assert {"printed", "other-root"} <= set(curve.bounds) <= {"printed", "other-root", "exact"}
    assert (np.diff(curve.periods) >= 0).all()
    promised = study([str(file)], methods=["printed"], targets=[200.0])[0]
    assert curve.bounds["printed"] == pytest.approx(np.log(200.0) / promised.threshold)
    (axis,) = draw_real([curve]).axes
    assert axis.get_title() == "plant"
    assert axis.get_yscale() == "log"


def test_many_entities_share_a_panel_on_which_the_bound_is_the_diagonal():
    h = np.array([1.0, 2.0, 3.0])
    curves = [Curve(f"set-{i % 2} e{i}", h, np.exp(2 * h), {"printed": 1.0 + i}) for i in range(14)]
    figure = draw_real(curves)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:3] == ["set-0, printed: 7 of 7", "set-0, other-root: 0 of 7", "set-0, exact: 0 of 7"]
    first = figure.axes[0].get_lines()
    np.testing.assert_allclose(first[0].get_xdata(), np.exp(h))
    np.testing.assert_allclose(first[0].get_ydata(), np.exp(2 * h))
    assert first[-1].get_xdata()[1] == first[-1].get_ydata()[1]

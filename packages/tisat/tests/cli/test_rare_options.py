"""Options that no other test passes at the command line reach what they are for."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tisat.cli import app
from tisat.watch import Watch


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def write(file, rows, *, seconds=60, extra=False, high=0):
    values = np.random.default_rng(rows).normal(size=(rows, 2))
    values[rows - high :] += 30.0
    stamps = np.datetime64("2026-01-01") + np.arange(rows) * np.timedelta64(seconds, "s")
    lines = [f"{t},{a:.4f},{b:.4f}" + ",1" * extra for t, (a, b) in zip(stamps, values.tolist(), strict=True)]
    file.write_text("\n".join(["time,a,b" + ",more" * extra, *lines]) + "\n")
    return file


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rare")
    week, model = write(folder / "week.csv", 2000), folder / "m.tisat"
    fitted = run("fit", week, "--out", model, "--detector", "last-value", "--budget", "1/200 rows", "--holdout", "0.3", "--no-control", "--period", "1 min")  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    return folder, model


def test_options_of_fit_are_in_the_model(files):
    watch = Watch.load(files[1])
    assert watch.detector.normal_source_ == "held-out tail"
    assert (watch.control, watch.period) == (False, 60.0)


def test_another_pace_and_another_channel_are_taken_where_they_are_asked_for(files):
    folder, model = files
    slow = write(folder / "slow.csv", 300, seconds=180, high=5)
    assert run("alarm", slow, "--model", model).exit_code != 0
    found = run("alarm", slow, "--model", model, "--any-period", "--rearm", "2 rows", "--json")
    assert json.loads(found.stdout)["alarms"], found.output
    more = write(folder / "more.csv", 300, extra=True, high=5)
    assert run("alarm", more, "--model", model).exit_code != 0
    found = run("alarm", more, "--model", model, "--ignore-extra", "--json")
    assert json.loads(found.stdout)["alarms"], found.output

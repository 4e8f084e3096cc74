"""Options of an alarm rule are one dictionary: the command line, serve.toml, experiment files and Python reach the rule alike."""

import warnings

import numpy as np
import pytest

from tisat import Watch
from tisat.alarms.rules import make_rule
from tisat.cli import main
from tisat.errors import ParameterError
from tisat_bench.experiment import read_experiment
from tisat_serve.config import groups_of, read_config


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rule")
    rows = np.random.default_rng(0).normal(size=(900, 2))
    np.savetxt(path / "week.csv", rows, delimiter=",", header="flow,heat", comments="")
    assert (
        run("fit", path / "week.csv", "--detector", "last-value", "--budget", "1/200 rows", "--out", path / "m.tisat")
        == 0
    )
    return path


def run(*arguments):
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stopped:
        return stopped.code or 0
    return 0


def by_command_line(folder, tmp_path, name, value):
    code = run("fit", folder / "week.csv", "--detector", "last-value", "--budget", "1/200 rows", "--out", tmp_path / "m.tisat",
               "--rule-set", f"{name}={value}")  # fmt: skip
    return Watch.load(tmp_path / "m.tisat").rule if code == 0 else None


def by_serve_toml(folder, tmp_path, name, value):
    lines = [
        'data = "."',
        "[[group]]",
        'name = "main"',
        f'model = "{folder / "m.tisat"}"',
        "[group.rule]",
        f"{name} = {value}",
    ]
    (tmp_path / "serve.toml").write_text("\n".join(lines))
    return groups_of(read_config(tmp_path / "serve.toml"))[0].watch.rule


def by_experiment(folder, tmp_path, name, value):
    lines = ["[[data]]", 'name = "plants"', "[rule.excess]", f"{name} = {value}"]
    (tmp_path / "e.toml").write_text("\n".join(lines))
    return make_rule("excess", **read_experiment(tmp_path / "e.toml").rule_options["excess"])


def by_python(folder, tmp_path, name, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Watch.load(folder / "m.tisat").recalibrated(rule={name: value}).rule


WAYS = (by_command_line, by_serve_toml, by_experiment, by_python)


@pytest.mark.parametrize("way", WAYS)
def test_an_option_reaches_the_rule(way, folder, tmp_path):
    assert way(folder, tmp_path, "hold", 7).params() == {**make_rule("excess").params(), "hold": 7}


@pytest.mark.parametrize("way", WAYS)
def test_an_option_that_the_rule_does_not_have_is_refused_by_name(way, folder, tmp_path, capsys):
    if way is by_command_line:
        assert way(folder, tmp_path, "hodl", 7) is None
        assert "must have options among" in capsys.readouterr().err
        return
    with pytest.raises(ParameterError, match=r"must have options among .*'hodl' instead"):
        way(folder, tmp_path, "hodl", 7)


def test_alarm_watch_and_backtest_take_it_too(folder, tmp_path, capsys):
    """The same alarms as of a model that was fitted with the option."""
    by_command_line(folder, tmp_path, "hold", 7)
    capsys.readouterr()
    for model, more in ((folder / "m.tisat", ["--rule-set", "hold=7"]), (tmp_path / "m.tisat", [])):
        assert run("alarm", folder / "week.csv", "--model", model, "--out", tmp_path / f"{len(more)}.csv", *more) == 0
    assert (tmp_path / "2.csv").read_text() == (tmp_path / "0.csv").read_text()
    capsys.readouterr()
    assert run("backtest", folder / "week.csv", "--train", "400 rows", "--refit", "200 rows", "--detector", "last-value",
               "--budget", "1/200 rows", "--rule-set", "lag=-1") == 1  # fmt: skip
    assert "'lag' parameter" in capsys.readouterr().err


def test_a_model_s_own_options_hold_where_others_are_not_given(folder):
    watch = Watch("last-value", budget="1/200 rows", rule={"name": "excess", "window": 500, "hold": 9})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch.fit(np.random.default_rng(0).normal(size=(900, 2)))
        other = watch.recalibrated(rule={"hold": 7})
    assert (other.rule.window, other.rule.hold, watch.rule.hold) == (500, 7, 9)

"""A rule of one's own, as CONTRIBUTING.md tells it: its text is run here, and it goes through every door a rule goes through."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tisat
from tisat.alarms.rules import RULES
from tisat.cli import app
from tisat.errors import CalibrationWarning
from tisat.watch import Monitor, Watch

ROOT = Path(__file__).resolve().parents[4]

EXPERIMENT = """
title = "a toy rule"
rules = ["threshold", "logarithm"]
reference = "last value"

[[data]]
name = "plants"
entities = ["plant-0"]

[[system]]
name = "last value"
detector = "last-value"

[[system]]
name = "Random Guess"
detector = "random-guess"
"""


@pytest.fixture(autouse=True)
def _toy():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text[text.index("## Add an alarm rule") :]
    code = re.search(r"```py\n(.*?)```", section, flags=re.S)[1]
    space = {"__name__": "toy_rule"}
    exec(code, space)
    yield
    RULES.pop("logarithm", None)


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def test_the_rule_of_the_guide_goes_through_every_door(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 2))
    rows[1500:1510] += 12.0
    stamps = np.datetime64("2026-01-01") + np.arange(2000) * np.timedelta64(60, "s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        watch = Watch("last-value", rule="logarithm", budget="1/200 rows").fit(
            tisat.Series(rows[:1400], timestamps=stamps[:1400], channels=("a", "b"))
        )
        watch.save(tmp_path / "m.tisat")
    monitor = Monitor.load(Watch.load(tmp_path / "m.tisat"), watch.monitor().to_bytes())
    verdicts = monitor.extend(rows[1400:], stamps[1400:])
    raised = [verdict.row for verdict in verdicts if verdict.raised]
    assert any(99 <= row <= 111 for row in raised)
    lines = ["time,b,a", *(f"{t},{b!r},{a!r}" for t, (a, b) in zip(stamps[1400:], rows[1400:].tolist(), strict=True))]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    told = run("alarm", "--model", tmp_path / "m.tisat", tmp_path / "new.csv", "--json")
    assert [alarm["raised"] for alarm in json.loads(told.stdout)["alarms"]] == raised
    told = run("watch", "--model", tmp_path / "m.tisat", input="\n".join(lines) + "\n")
    assert [json.loads(line)["row"] for line in told.stdout.splitlines() if json.loads(line)["raised"]] == raised


def test_the_benchmark_and_its_report_know_the_rule(tmp_path):
    (tmp_path / "toy.toml").write_text(EXPERIMENT)
    told = run(
        "bench",
        tmp_path / "toy.toml",
        "--store",
        tmp_path / "store",
        "--engine",
        "inline",
        "--report",
        tmp_path / "report",
    )
    assert told.exit_code == 0, told.output
    pages = "".join(file.read_text() for file in (tmp_path / "report").rglob("*.md"))
    assert "the logarithm of the score" in pages

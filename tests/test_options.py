"""Every option of every verb is passed by a test, and the ones that no other test passes reach what they are for."""

import ast
import json
import re
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tisat.cli import app

ROOT = Path(__file__).parents[1]
DOCS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]


def leaves(command, words=()):
    """The verbs, with their words."""
    if not hasattr(command, "list_commands"):
        return [(words, command)]
    context = click.Context(command)
    names = command.list_commands(context)
    return [leaf for name in names for leaf in leaves(command.get_command(context, name), (*words, name))]


def options():
    """Spellings and verbs of every option; verbs that share one (the same name and help) share its code."""
    shared = {}
    for words, command in leaves(typer.main.get_command(app)):
        for one in command.params:
            if one.param_type_name == "option" and "--help" not in one.opts:
                spellings = (*one.opts, *one.secondary_opts)
                shared.setdefault((spellings, one.help), []).append(words[-1])
    return [(spellings, verbs) for (spellings, _), verbs in shared.items()]


def passages():
    """The words of each test file, and those of each command that the documentation shows, which a test runs."""
    for file in (*ROOT.glob("packages/*/tests/**/*.py"), *(ROOT / "tests").glob("*.py")):
        tree = ast.walk(ast.parse(file.read_text()))
        texts = [node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        yield {word for text in texts for word in re.split(r"[\s=]+", text)}
    for page in DOCS:
        for block in re.findall(r"```console\n(.*?)```", page.read_text().replace("\\\n", ""), re.DOTALL):
            yield from (set(re.split(r"[\s=]+", line)) for line in block.splitlines())


def test_every_option_of_every_verb_is_passed_by_a_test():
    tested = list(passages())
    rumours = [
        f"{verbs[0]} {spellings[0]}"
        for spellings, verbs in options()
        if not any(words & set(verbs) and words & set(spellings) for words in tested)
    ]
    assert not rumours, "test these options or remove them"


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, f"{done.output} {done.exception}"
    return done.stdout


def written(file, text):
    file.write_text(text)
    return file


def test_how_a_file_is_written_can_be_said(tmp_path):
    """Rows in disorder, one of them twice, in the cells and the clock of another country."""
    days = [9, 7, 8, *range(10, 62)]
    date = [np.datetime64("2026-03-01") + day - 1 for day in days]
    rows = [
        f"{str(at)[8:]}/{str(at)[5:7]}/2026 01:00;{day},5;{int(day == 8)}" for at, day in zip(date, days, strict=True)
    ]
    rows.append(rows[-1])
    file = written(tmp_path / "a.csv", "\n".join(["when;level;fault", *rows]))
    said = ("--delimiter", ";", "--decimal", ",", "--label", "fault", "--sort", "--dedup", "last")
    clock = ("--time", "when", "--time-format", "day-first", "--timezone", "Europe/Berlin")
    found = json.loads(run("look", file, *said, *clock, "--json"))
    assert (found["rows"], found["first"], found["last"]) == (
        55,
        "2026-03-07T01:00:00+01:00",
        "2026-04-30T01:00:00+02:00",
    )
    assert (found["events"], [one["name"] for one in found["channels"]]) == (1, ["level"])
    assert found["channels"][0]["most"] == 61.5


def test_a_sheet_can_be_named(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for name, channel in (("first", "a"), ("second", "b")):
        sheet = book.create_sheet(name)
        for row in ([channel], *([float(t)] for t in range(40))):
            sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    assert '"b"' in run("look", tmp_path / "a.xlsx", "--sheet", "second", "--json")


def test_the_address_of_a_cluster_reaches_the_engine(tmp_path, monkeypatch):
    asked = []

    def engine(name, *, jobs, address):
        asked.append((name, address))
        raise typer.Exit(0)

    monkeypatch.setattr("tisat.batch.engines.make_engine", engine)
    for name in ("a", "b"):
        written(tmp_path / f"{name}.csv", "x\n" + "1\n2\n" * 300)
    run("fit", tmp_path, "--each", "--out", tmp_path / "m", "--engine", "ray", "--address", "auto")
    smoke = ROOT / "experiments" / "smoke.toml"
    run("bench", smoke, "--store", tmp_path / "s", "--engine", "ray", "--address", "auto")
    assert asked == [("ray", "auto"), ("ray", "auto")]


def test_a_run_of_experiments_is_told_what_to_do_about_failures(tmp_path, monkeypatch):
    limits, retried = [], []
    monkeypatch.setattr("tisat.batch.process_engine.Local", lambda *, jobs, timeout: limits.append(timeout))

    def drive(tasks, sources, results, runner, *, retry_failed, watch):
        retried.append(retry_failed)
        return SimpleNamespace(interrupted=True)

    monkeypatch.setattr("tisat_bench.driver.drive", drive)
    words = ["bench", ROOT / "experiments" / "smoke.toml", "--store", tmp_path, "--timeout", "7", "--retry-failed"]
    assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 130
    assert (limits, retried) == ([7.0], [True])


def test_a_column_of_labels_can_be_named(tmp_path):
    rows = "\n".join(f"0,{int(40 <= t < 50)},{int(40 <= t < 50) + t % 7 / 10}" for t in range(200))
    file = written(tmp_path / "both.csv", f"label,real,score\n{rows}\n")
    words = ("--label-column", "real", "--score-column", "score", "--delta-max", "5", "--json")
    assert '"n_events": 1' in run("audit", file, file, *words)


def test_the_seed_of_the_demo_is_that_of_its_plant(tmp_path, monkeypatch):
    seeds = []

    def run_demo(*, detector, random_state, say):
        seeds.append(random_state)
        raise typer.Exit(0)

    monkeypatch.setattr("tisat.plotting.demo_page.run_demo", run_demo)
    run("demo", "--out", tmp_path / "d", "--seed", "5")
    assert seeds == [5]


def test_verbs_of_data_sets_pass_on_what_they_are_told(tmp_path, monkeypatch):
    told = []
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.setattr("tisat_bench.datasets.download", lambda name, data, *, url: told.append(url) or folder)
    run("data", "download", "smd", "--url", "http://mirror")
    monkeypatch.setattr("tisat_bench.datasets.NAMES", ("psm",))
    monkeypatch.setattr("tisat_bench.datasets.labels", lambda name, data: {"psm": np.arange(2000) // 100 == 7})
    rare, often = (
        json.loads(run("data", "random-guess", "--simulations", "1", "--p", p, "--json"))["rows"][0]
        for p in ("0.001", "0.5")
    )
    assert rare["closed_form"][1] < often["closed_form"][1]
    assert told == ["http://mirror"]


def test_verbs_of_a_service_pass_on_what_they_are_told(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("tisat_serve.cli.feedback.ask", lambda url, path, body=None: asked.append((path, body)) or [])
    run("serve", "proposals", "--state", "open")
    monkeypatch.setattr("tisat_serve.cli.feedback._show", lambda _: None)
    run("serve", "refit", "--group", "pumps", "--budget", "1/week")
    groups = []
    monkeypatch.setattr("tisat_serve.folder.upgrade.upgrade", lambda data, model, *, group: groups.append(group) or [])
    run("serve", "upgrade", tmp_path, "--model", tmp_path / "m", "--group", "pumps")
    assert groups == ["pumps"]
    assert asked[0] == ("/api/v1/proposals?state=open", None)
    assert (asked[1][1]["group"], asked[1][1]["budget"]) == ("pumps", "1/week")


def test_a_replay_takes_a_column_of_entities_or_a_pattern_of_them(tmp_path, monkeypatch):
    rows = [f"{60 * t},{'ab'[t % 2]},{t % 7 / 3},{t % 5 / 2}" for t in range(1200)]
    table = written(tmp_path / "long.csv", "\n".join(["time,machine,x,y", *rows]))
    one = written(tmp_path / "one.csv", "\n".join(["time,x,y", *(re.sub(",[ab],", ",", row) for row in rows)]))
    run("fit", one, "--out", tmp_path / "m.tisat", "--detector", "last-value", "--budget", "1/200 rows")
    counts = json.loads(run("serve", "replay", table, "--model", tmp_path / "m.tisat", "--entity", "machine", "--json"))
    assert counts["rows"]["enrolled"] == 2
    patterns = []
    monkeypatch.setattr(
        "tisat_serve.folder.replay.stored_rows", lambda data, *, match, start, stop: patterns.append(match) or []
    )
    run("serve", "replay", "--model", tmp_path / "m.tisat", "--data", tmp_path, "--match", "pump-*")
    assert patterns == ["pump-*"]

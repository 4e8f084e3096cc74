"""The verbs alarm, watch and far: thin, but they must say what the library says."""

import gzip
import html
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tisat
from tisat.alarms.alarms import say_time
from tisat.cli import app
from tisat.detectors import make


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, a csv file with an event, and the folder they are in."""
    root = tmp_path_factory.mktemp("alarms")
    rng = np.random.default_rng(0)
    values = np.sin(np.arange(2400)[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * rng.standard_normal((2400, 2))
    seconds = 60.0 * np.arange(2400)
    make("linear-mean", window=8).fit(
        tisat.Series(values[:1800], timestamps=seconds[:1800], channels=("cpu", "disk"))
    ).save(root / "model.tisat")
    test = values[1800:].copy()
    test[300:320, 1] += 3.0
    rows = [f"{60 * t},{row[0]!r},{row[1]!r}" for t, row in enumerate(test.tolist())]
    (root / "new.csv").write_text("\n".join(["time,cpu,disk", *rows]) + "\n")
    return root


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def test_alarm_writes_prints_and_draws_the_alarms(folder):
    arguments = ("alarm", "--model", folder / "model.tisat", "--budget", "12/day", folder / "new.csv")
    told = run(*arguments, "--json", "--out", folder / "a.jsonl", "--picture", folder / "a.png")
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert document["calibration"]["target"] == 120
    assert [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()] == document["alarms"]
    assert any(300 <= alarm["raised"] < 310 and next(iter(alarm["channels"])) == "disk" for alarm in document["alarms"])
    assert (folder / "a.png").stat().st_size > 1000
    assert "1 in 120 rows" in " ".join(run(*arguments).stdout.split())


def test_of_very_many_alarms_the_strongest_are_listed_and_the_page_asks_for_what_it_draws(folder, monkeypatch):
    drawn = []
    expected = tisat.Detector.expected
    monkeypatch.setattr(
        tisat.Detector, "expected", lambda self, series, at=None: drawn.append(at) or expected(self, series, at=at)
    )
    rng = np.random.default_rng(1)
    values = np.sin(np.arange(21_000)[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * rng.standard_normal((21_000, 2))
    for number, start in enumerate(range(400, 20_900, 500)):
        values[start : start + 5, 0] += 5 + number / 4
    rows = [f"{60 * t},{row[0]!r},{row[1]!r}" for t, row in enumerate(values.tolist())]
    (folder / "many.csv").write_text("\n".join(["time,cpu,disk", *rows]) + "\n")
    arguments = ("alarm", "--model", folder / "model.tisat", "--budget", "1/day", folder / "many.csv")
    every = json.loads(run(*arguments, "--json").stdout)["alarms"]
    assert len(every) > 30
    told = run(*arguments, "--html", folder / "many.html", env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.output
    assert f"{len(every) - 20} more with --out or --json" in told.stdout
    strongest = sorted(every, key=lambda one: -one["peak"] / one["threshold"])[:20]
    cells = [line.split("│")[1].strip() for line in told.stdout.splitlines() if line.startswith("│")]
    assert [cell for cell in cells if cell] == [
        say_time(time) for time in sorted(one["raised_time"] for one in strongest)
    ]
    assert [len(at) for at in drawn] == [20_000]


def test_watch_says_what_alarm_says_and_goes_on_from_its_state(folder):
    lines = (folder / "new.csv").read_text().splitlines(keepends=True)
    options = (
        "watch",
        "--model",
        folder / "model.tisat",
        "--budget",
        "12/day",
        "--state",
        folder / "s",
        "--output",
        folder / "o",
    )
    assert run(*options, input="".join(lines[:200])).exit_code == 0
    with (folder / "o").open("ab") as half_a_line:
        half_a_line.write(b'{"line": 2')  # as a crash leaves it
    again = run(*options, input="".join(lines))
    assert again.exit_code == 0
    assert "going on after line 200" in again.stderr
    verdicts = [json.loads(line) for line in (folder / "o").read_text().splitlines()]
    assert [one["line"] for one in verdicts] == list(range(2, 602))
    batch = json.loads(
        run("alarm", "--model", folder / "model.tisat", "--budget", "12/day", folder / "new.csv", "--json").stdout
    )
    assert [one["row"] for one in verdicts if one["raised"]] == [alarm["raised"] for alarm in batch["alarms"]]


def test_watch_refuses_a_line_and_goes_on(folder):
    told = run("watch", "--model", folder / "model.tisat", "--budget", "12/day", input="1,2\nx,y\n1,2\n")
    assert [json.loads(line)["status"] for line in told.stdout.splitlines()] == ["warming up", "refused", "warming up"]
    assert "line 2 refused" in told.stderr


def test_far_says_what_a_file_of_ones_own_is_worth(folder):
    told = run(
        "far", folder / "new.csv", "--detector", "linear-last", "--rule", "excess,paper:weibull", "--json",
        "--budget", "1/100 rows", "--picture", folder / "f.png", "--page", folder / "far.html",
    )  # fmt: skip
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert [one["rule"] for one in found] == ["excess", "paper"]
    for one in found:
        assert all(step["time_steps"] == 300 for step in one["ladder"])
        text = " ".join(one["words"])
        assert "Asked: 1/100 rows" in text
        assert "Supported: 1 in " in text
        assert "Observed: " in text
        assert "more: " in text  # what more data would buy
        thresholds = [step["threshold"] for step in one["ladder"]]
        assert thresholds == sorted(thresholds)
    assert (folder / "f.png").stat().st_size > 1000
    assert (folder / "f-2.png").stat().st_size > 1000
    page = (folder / "far.html").read_text()
    assert page.count("<svg") == 2
    shown = " ".join(run("far", folder / "new.csv", "--detector", "linear-last").stdout.split())
    assert "thresholds from the first half" in shown


def test_alarm_writes_a_page(folder):
    arguments = ("alarm", "--model", folder / "model.tisat", "--budget", "12/day", folder / "new.csv")
    told = run(*arguments, "--html", folder / "a.html")
    assert told.exit_code == 0, told.output
    page = (folder / "a.html").read_text()
    assert "disk" in page
    assert "Content-Security-Policy" in page
    refused = run(*arguments, folder / "other.csv", "--html", folder / "b.html")
    assert refused.exit_code != 0


def test_a_page_shows_the_command_that_made_it(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    here = Path(folder.name)
    options = ("--budget", "12/day", "--no-control", "--rule-set", "hold=40", "--html", here / "c.html")
    told = run("alarm", "--model", here / "model.tisat", here / "new.csv", *options)
    assert told.exit_code == 0, told.output
    made = (
        f"tisat alarm {here / 'new.csv'} --model {here / 'model.tisat'} --budget 12/day --no-control --rule-set hold=40"
    )
    assert made in html.unescape((folder / "c.html").read_text())
    told = run("alarm", "--model", folder / "model.tisat", folder / "new.csv", "--html", folder / "d.html")
    page = (folder / "d.html").read_text()
    assert "tisat alarm new.csv --model model.tisat" in page
    assert str(folder) not in page, "it is sent on"


def test_a_model_is_loaded_once(tmp_path, monkeypatch):
    import numpy as np

    from tisat.cli import main
    from tisat.watch import Watch

    rows = np.random.default_rng(0).normal(size=(600, 2)).tolist()
    (tmp_path / "f.csv").write_text("time,a,b\n" + "".join(f"{60 * t},{a},{b}\n" for t, (a, b) in enumerate(rows)))
    for words in (("fit", "f.csv", "--detector", "ewma", "--out", "m"), ("alarm", "f.csv", "--model", "m")):
        loads, load = [], Watch.load
        monkeypatch.setattr(
            Watch, "load", lambda *given, load=load, loads=loads, **more: loads.append(1) or load(*given, **more)
        )
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as stopped:
            main(list(words))
        monkeypatch.undo()
        assert not stopped.value.code
    assert len(loads) == 1


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".zip"])
def test_alarm_opens_its_file_and_its_model_once(folder, suffix):
    file = folder / f"once{suffix}"
    text = (folder / "new.csv").read_bytes()
    if suffix == ".zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("once.csv", text)
    else:
        file.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    opened = []
    following = True

    def note(event, values):
        if following and event == "open" and isinstance(values[0], str):
            opened.append(Path(values[0]).name)

    sys.addaudithook(note)  # it cannot be removed
    told = run("alarm", "--model", folder / "model.tisat", "--budget", "12/day", file)
    following = False
    assert told.exit_code == 0, told.output
    assert (opened.count(file.name), opened.count("model.tisat")) == (1, 1)

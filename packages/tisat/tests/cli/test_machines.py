"""Many machines from the command line: folders, patterns, long tables, one model for all or one each."""

import csv
import io
import json

import numpy as np
import pytest

import tisat
from tisat.cli import main
from tisat.datasets.synthetic import make_pump


def run(capsys, *arguments, code=0):
    with pytest.raises(SystemExit) as end:
        main([str(one) for one in arguments])
    said = capsys.readouterr()
    assert end.value.code == code, said.err
    return said


def table(series, machine=None):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for date, values, label in zip(
        series.timestamps.astype("datetime64[s]"), series.values, np.asarray(series.labels), strict=True
    ):
        writer.writerow([*([] if machine is None else [machine]), date, *(f"{v:.4f}" for v in values), int(label)])
    return text.getvalue()


HEADER = "time,flow,pressure,bearing_temperature,vibration,motor_current,label\n"


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    from dataclasses import replace

    folder = tmp_path_factory.mktemp("plant")
    long = {"train": "", "new": ""}
    for split in long:
        (folder / split).mkdir()
    for number in range(3):
        pump = make_pump(
            n_train=3000, n_test=900, faults=("vibration doubled",) if number == 1 else (), random_state=number
        )
        train = replace(pump.train, labels=np.zeros(len(pump.train), dtype=bool))
        for split, series in (("train", train), ("new", pump.test)):
            (folder / split / f"pump{number}.csv").write_text(HEADER + table(series))
            long[split] += table(series, f"pump{number}")
    for split, text in long.items():
        (folder / f"{split}.csv").write_text("machine," + HEADER + text)
    return folder


@pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")
def test_a_folder_a_pattern_and_a_long_table_mean_the_same(capsys, plant, tmp_path):
    said = {}
    for kind, train, new in (
        ("folder", ["--train", plant / "train"], [plant / "new"]),
        ("pattern", ["--train", f"{plant}/train/*.csv"], [f"{plant}/new/pump*.csv"]),
        ("long", ["--train", plant / "train.csv", "--entity", "machine"], [plant / "new.csv"]),
    ):
        model, out = tmp_path / f"{kind}.tisat", tmp_path / f"{kind}.csv"
        run(capsys, "fit", *train, "--out", model, "--detector", "mahalanobis", "--fleet-budget", "daily")
        said[kind] = json.loads(run(capsys, "alarm", *new, "--model", model, "--json", "--out", out).out)
        assert {one["machine"] for one in said[kind]} == {"pump0", "pump1", "pump2"}
        assert said[kind][0]["machine"] == "pump1"  # it needs attention first
        assert "over 3 machines" in said[kind][0]["alarms"][0]["budget"]
        found = json.loads(run(capsys, "evaluate", new[0], out, "--json", *train[2:]).out)
        assert found["total"]["detected"] == found["total"]["events"] == 1
    assert said["folder"] == said["pattern"] == said["long"]


@pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")
def test_one_model_each_and_several_processes(capsys, plant, tmp_path):
    models = tmp_path / "models"
    run(capsys, "fit", "--train", plant / "train", "--each", "--jobs", 2, "--out", models, "--detector", "mahalanobis")
    assert sorted(file.name for file in models.glob("*.tisat")) == ["pump0.tisat", "pump1.tisat", "pump2.tisat"]
    alone = json.loads(run(capsys, "alarm", plant / "new", "--model", models, "--json").out)
    together = json.loads(run(capsys, "alarm", plant / "new", "--model", models, "--jobs", 2, "--json").out)
    assert alone == together
    said = run(capsys, "alarm", plant / "new", "--model", models)
    assert "3 machines" in said.out
    run(capsys, "score", plant / "new", "--model", models, "--out", tmp_path / "scores")
    assert len(list((tmp_path / "scores").iterdir())) == 3
    (models / "pump1.tisat").unlink()
    said = run(capsys, "alarm", plant / "new", "--model", models, code=1)
    assert "1 could not be scored" in said.out
    assert "1 of 3 machines could not be scored" in said.out, "it said that every machine needs attention"
    assert "tisat: 1 of 3 machines could not be scored. The first: pump1:" in said.err


def test_machines_that_could_not_be_scored_are_not_said_to_need_attention():
    from types import SimpleNamespace as One

    from tisat.cli.alarm import _attention

    failed, loud, calm = (One(alarms=a, trouble=t, silent=()) for a, t in (((), "no"), ((1,), ""), ((), "")))
    assert _attention([failed, failed, loud]) == "2 of 3 machines could not be scored"
    assert _attention([failed, loud, calm]) == "1 of 3 machines could not be scored; 1 machine needs no attention"
    assert (_attention([loud]), _attention([calm, calm])) == (
        "every machine needs attention",
        "2 machines need no attention",
    )


def test_machines_with_other_channels_are_led_to_a_model_each(capsys, plant, tmp_path):
    good = tmp_path / "good"
    good.mkdir()
    for name, old in (("pump0", "flow"), ("pump1", "level")):
        (good / f"{name}.csv").write_text((plant / "train" / f"{name}.csv").read_text().replace("flow", old, 1))
    words = ("fit", good, "--out", tmp_path / "m", "--fleet-budget", "2/day", "--detector", "mahalanobis")
    said = run(capsys, *words, code=1).err
    assert "must have the same channels. 'pump1' differs" in said
    assert said.rstrip().endswith("For machines that differ: --each, a model for each machine.")
    run(capsys, *words, "--each")


def test_notes_that_are_not_shown_are_counted(capsys, tmp_path, monkeypatch):
    from types import SimpleNamespace

    from tisat.cli import fit

    notes = {"a": ["w", "x", "y", "z"], "b": ["w", "q"]}
    found = [{"machine": name, "trouble": "", "notes": said} for name, said in notes.items()]
    job = SimpleNamespace(before=dict, begin=list, keep=lambda _: None)
    where = SimpleNamespace(each=lambda *_: found)
    machines = [SimpleNamespace(name=name) for name in notes]
    for most, said in (
        (3, "2 more kinds of notes; --json prints"),
        (4, "1 more kind of notes; --json prints"),
        (5, ""),
    ):
        monkeypatch.setattr(fit, "SHOWN_NOTES", most)
        fit._fit_each(machines, machines, job, tmp_path, where, json=False)
        err = capsys.readouterr().err
        assert said in err
        assert err.count("note (") == most
        assert ("more kind" in err) == bool(said)


def test_notes_that_differ_in_numbers_alone_are_one_kind_and_name_machines(capsys, tmp_path):
    from types import SimpleNamespace

    from tisat.cli import fit

    def said(notes):
        found = [{"machine": name, "trouble": "", "notes": [note]} for name, note in notes.items()]
        job = SimpleNamespace(before=dict, begin=list, keep=lambda _: None)
        machines = [SimpleNamespace(name=name) for name in notes]
        fit._fit_each(machines, machines, job, tmp_path, SimpleNamespace(each=lambda *_: found), json=False)
        return capsys.readouterr().err.splitlines()

    few = {
        f"svc-{n}": f"{7964 - n:,} rows cannot support 1/day; at most one in {n + 0.5} {unit}"
        for n, unit in enumerate(["h", "d"] * 2)
    }
    first = "7,964 rows cannot support 1/day; at most one in 0.5 h"
    assert said(few) == [f"note (4 of 4, such as svc-0, svc-1, svc-2): {first}"]
    assert said({"a": "7 rows", "b": "8 rows", "c": "no rows"}) == [
        "note (2 of 3, a, b): 7 rows",
        "note (1 of 3, c): no rows",
    ]


@pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")
def test_lines_of_many_machines_are_judged_apart(capsys, plant, tmp_path, monkeypatch):
    model = tmp_path / "m.tisat"
    run(
        capsys,
        "fit",
        "--train",
        plant / "train.csv",
        "--entity",
        "machine",
        "--out",
        model,
        "--detector",
        "mahalanobis",
    )
    batch = json.loads(run(capsys, "alarm", plant / "new.csv", "--model", model, "--json").out)
    rows = (plant / "new.csv").read_bytes()
    verdicts = []
    for part in (rows[: len(rows) // 2].rpartition(b"\n")[0] + b"\n", rows):  # the second goes on where the first ended
        monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": io.BytesIO(part)}))
        out = tmp_path / "verdicts.jsonl"
        with pytest.raises(SystemExit) as end:
            main(
                ["watch", "--model", str(model), "--state", str(tmp_path / "s"), "--output", str(out), "--alarms-only"]
            )
        assert end.value.code == 0, capsys.readouterr().err
        verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    raised = {(one["entity"], one["alarm"]["raised"]) for one in verdicts if one["raised"]}
    assert raised == {(one["machine"], alarm["raised"]) for one in batch for alarm in one["alarms"]}


def test_one_budget_or_the_other(capsys, plant, tmp_path):
    said = run(
        capsys, "fit", "--train", plant / "train", "--out", tmp_path / "m", "--budget", "1/day", "--fleet-budget", "daily", code=1
    )  # fmt: skip
    assert "give one of the two" in said.err
    said = run(
        capsys, "fit", plant / "train", "--out", tmp_path / "m", "--fleet-budget", "1/day over 3 machines", code=1
    )
    assert "must be the rate of all machines together" in said.err
    said = run(capsys, "fit", "--train", plant / "nothing*.csv", "--out", tmp_path / "m", code=1)
    assert "must match files" in said.err
    said = run(capsys, "fit", "--train", plant / "train", "--out", tmp_path / "m", "--budget", "nightly", code=1)
    assert "--budget must be a budget such as" in said.err
    said = run(capsys, "fit", "--train", plant / "train", "--out", tmp_path / "m", "--rule", "exces", code=1)
    assert "tisat: --rule must be one of" in said.err
    assert "make_rule" not in said.err
    assert "--rule" in said.err


def test_files_that_follow_each_other_are_one_series(capsys, plant, tmp_path):
    header, *rows = (plant / "train" / "pump0.csv").read_text().splitlines(keepends=True)
    (tmp_path / "january.csv").write_text(header + "".join(rows[:1500]))
    (tmp_path / "february.csv").write_text(header + "".join(rows[1500:]))
    said = run(
        capsys,
        "fit",
        tmp_path / "january.csv",
        tmp_path / "february.csv",
        "--detector",
        "last-value",
        "--out",
        tmp_path / "m.tisat",
    )
    assert "january" in said.err
    assert "one series in 2 files" in said.err
    assert "machine:" not in said.err
    assert "fitted on 3,000 rows" in said.out
    run(
        capsys,
        "fit",
        tmp_path / "january.csv",
        tmp_path / "february.csv",
        "--fleet-budget",
        "1/day",
        "--detector",
        "last-value",
        "--out",
        tmp_path / "one.tisat",
    )
    one, whole = (tisat.Watch.load(tmp_path / name).calibration for name in ("one.tisat", "m.tisat"))
    assert one.threshold == whole.threshold
    said = run(capsys, "fit", plant / "train", "--detector", "last-value", "--out", tmp_path / "fleet.tisat")
    assert "3 machines" in said.err
    assert "one series" not in said.err


def test_look_fit_and_alarm_agree_on_files_that_follow_each_other(capsys, plant, tmp_path):
    """Weeks of one machine were machines to look and alarm, with a budget each, and a meter that grows made them unlike."""
    header, *rows = (plant / "train" / "pump0.csv").read_text().splitlines(keepends=True)
    lines = [f"{row.rstrip()},{50000 + 7 * at}\n" for at, row in enumerate(rows)]
    header = f"{header.rstrip()},energy\n"
    for name, part in (("week1", lines[:1500]), ("week2", lines[1500:])):
        (tmp_path / f"{name}.csv").write_text(header + "".join(part))
    weeks, model = tmp_path / "week*.csv", tmp_path / "m.tisat"
    said = run(capsys, "look", weeks)
    assert said.out.rstrip().endswith("--out model.tisat")
    assert "2 files that follow each other in time" in said.out
    said = run(capsys, "fit", weeks, "--detector", "last-value", "--budget", "1/day", "--out", model)
    assert "one series in 2 files" in said.err
    assert "unlike" not in said.err
    said = run(capsys, "alarm", weeks, "--model", model)
    assert "of one machine, they share the budget 1/day" in " ".join(said.out.split())
    said = run(capsys, "look", plant / "train")
    assert "3 machines" in said.out
    assert said.out.rstrip().endswith("--each --out models")


def test_the_model_of_another_machine_is_said(capsys, plant, tmp_path):
    """Alarms of rows that the model has never been near were given without a word."""
    model, other = tmp_path / "m.tisat", tmp_path / "other.csv"
    run(capsys, "fit", plant / "train" / "pump0.csv", "--out", model, "--detector", "mahalanobis")
    header, *rows = (plant / "new" / "pump1.csv").read_text().splitlines()
    cells = [line.split(",") for line in rows]
    other.write_text(
        "\n".join([header, *(",".join([c[0], *(str(900 + float(v)) for v in c[1:-1]), c[-1]]) for c in cells)])
    )
    said = run(capsys, "alarm", other, "--model", model)
    assert "Most rows are far from training" in " ".join((said.out + said.err).split())
    said = run(capsys, "alarm", plant / "new" / "pump1.csv", "--model", model)
    assert "far from training" not in " ".join((said.out + said.err).split())


def test_show_has_the_budget_and_threshold(capsys, plant, tmp_path):
    model = tmp_path / "m.tisat"
    run(capsys, "fit", plant / "train" / "pump0.csv", "--out", model, "--detector", "last-value", "--budget", "1/day")
    said = json.loads(run(capsys, "show", model, "--json").out)
    assert (said["budget"], said["patterns"]) == ("1/day", [])
    assert f"1/day; threshold {said['threshold']:.4g}" in run(capsys, "show", model).out


def test_a_folder_is_no_model_file_before_anything_is_fitted(capsys, plant, tmp_path):
    said = run(capsys, "fit", plant / "train", "--out", tmp_path, code=1)
    assert "is a folder: --each fits a model for each machine into it" in said.err

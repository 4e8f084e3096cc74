"""The verbs that look, compare and keep: what they print is what the library found."""

import json
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import tisat as package
from tisat.alarms.files import dated, read_active, write_table
from tisat.cli import app
from tisat.cli.machines import budget_of, each, read_machines
from tisat.errors import InputError
from tisat.watch import Watch

pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")


def tisat(*words):
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200"})
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr, error=str(done.exception or ""))


def rows(length, seed, *, label=False, fault=None):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(length, 2)).round(3)
    if fault is not None:
        values[fault : fault + 10] += 30.0
    lines = ["time,flow,heat" + ",label" * label]
    for t, row in enumerate(values.tolist()):
        on = fault is not None and fault <= t < fault + 10
        lines.append(f"{60 * t},{row[0]},{row[1]}" + f",{int(on)}" * label)
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """A model, a file with a labelled fault, a folder of two such files."""
    root = tmp_path_factory.mktemp("plant")
    (root / "week.csv").write_text(rows(1500, 0))
    (root / "new.csv").write_text(rows(400, 1, label=True, fault=200))
    (root / "many").mkdir()
    for name, seed in (("a", 2), ("b", 3)):
        (root / "many" / f"{name}.csv").write_text(rows(400, seed, label=True, fault=100 * seed))
    Watch("last-value", budget="1/100 rows").fit(package.Series.read(root / "week.csv")).save(root / "m.tisat")
    return root


def test_a_comparison_can_be_read_on_a_narrow_terminal(plant):
    """Fourteen columns do not fit 80 characters: a line for each figure, a column for each detector."""
    words = ["--budget", "0.01", "--detector", "last-value", "--detector", "ewma"]
    done = CliRunner().invoke(app, ["compare", str(plant / "week.csv"), *words], env={"COLUMNS": "80"})
    lines = [[cell.strip() for cell in line.strip("┃│").split("│")] for line in done.stdout.splitlines()]
    assert [line[0] for line in lines if len(line) == 3][-9:-2] == [
        "spike", "level shift", "slow drift", "stuck sensor", "broken correlation", "changed frequency", "contextual",
    ]  # fmt: skip


def test_a_look_says_what_a_file_is_like(plant, tmp_path):
    text = tisat("look", plant / "new.csv").out
    assert "new: 400 rows of 2 channels, 0.0 to 23940.0, one every 1 min" in text
    assert "1 labelled event; labels are never looked at when fitting" in text
    assert json.loads(tisat("look", plant / "new.csv", "--json").out)["rows"] == 400
    assert "2 machines" in tisat("look", plant / "many").out
    assert len(json.loads(tisat("look", plant / "many", "--json").out)) == 2
    bare = tmp_path / "bare.csv"
    bare.write_text("flow,state\n" + "".join(f"{1.5 * (i // 20 % 3)},{i // 30 % 2}\n" for i in range(300)))
    text = tisat("look", bare).out
    assert "no clock" in text
    assert "No time column" in text
    assert "rows equal the row before" in text
    holes = tmp_path / "holes.csv"
    holes.write_text("time,flow\n" + "".join(f"{t + 100_000 * (t > 50)},{t % 7}\n" for t in range(100)))
    assert "1 gap in time, the longest 1.16 d" in tisat("look", holes).out
    single = tmp_path / "single.csv"
    single.write_text("time,flow,heat\n0,1.5,2.5\n")
    assert "1 row is too few: a model can be fitted from 41 rows on" in tisat("look", single).out


@pytest.mark.parametrize("verb", ["look", "suggest"])
@pytest.mark.parametrize("asked", [[], ["--channels", "heat,c1"]])
@pytest.mark.parametrize("length", [1, 30, 40, 41, 130])
def test_what_is_printed_as_next_runs_and_nothing_else_is(verb, asked, length, tmp_path):
    """Also with a column without values, and a file whose name has a space."""
    file = tmp_path / "good day.csv"
    lines = rows(length, 0).splitlines()
    file.write_text("\n".join([lines[0] + ",c1,c 2", *(line + ",," for line in lines[1:])]) + "\n")
    said = tisat(verb, file, *asked).out
    following = [line for line in said.splitlines() if line.startswith("next: ")]
    if length < 41:
        assert following == []
        assert "too few: a model can be fitted from 41 rows on" in said
        refused = tisat("fit", file, "--detector", "ewma", "--drop", "c1,c 2", "--out", tmp_path / "m.tisat").error
        assert refused == f"tisat fit must be given at least 41 rows. Got {length} instead."
        return
    words = shlex.split(following[0].removeprefix("next: tisat "))
    words[words.index("model.tisat")] = str(tmp_path / "m.tisat")
    done = tisat(*words)
    assert (done.code, done.error) == (0, "")
    refused = tisat("fit", file, "--out", tmp_path / "n.tisat").error
    if length < 127:
        assert (
            refused
            == f"tisat fit must be given at least 127 rows for prism, 41 with --detector ewma. Got {length} instead."
        )
        return
    assert (
        "Channels c1, c 2 have none. Leave them out with --drop 'c1,c 2', or tisat.Series.from_table(table, drop=['c1', 'c 2'])."
        in refused
    )


def test_a_look_draws_one_machine_and_nothing_else(plant, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, __, **how: drawn.append(how["format"]))
    assert tisat("look", plant / "new.csv", "--picture", tmp_path / "a.png", "--json").code == 0
    assert drawn == ["png"]
    assert (tmp_path / "a.png").is_file()
    assert "must end in .png" in tisat("look", plant / "new.csv", "--picture", "a.txt").error
    assert "draws one machine. Got 2" in tisat("look", plant / "many", "--picture", "a.png").error


def test_alarms_are_counted_against_labels_of_one_and_of_many(plant, tmp_path):
    table = tmp_path / "alarms.csv"
    assert tisat("alarm", "--model", plant / "m.tisat", plant / "new.csv", "--out", table).code == 0
    found = json.loads(tisat("evaluate", plant / "new.csv", table, "--json").out)
    assert (found["events"], found["rows"][0]["detected"]) == (1, 1)
    assert "delta_max = 20 min" in tisat("evaluate", plant / "new.csv", table, "--delta-max", "20 min").out
    many = tmp_path / "many.jsonl"
    assert tisat("alarm", "--model", plant / "m.tisat", plant / "many", "--out", many).code == 0
    fleet = json.loads(tisat("evaluate", plant / "many", many, "--json").out)
    assert fleet["total"]["events"] == fleet["total"]["detected"] == 2
    assert "2 machines: 2 of 2 events detected" in tisat("evaluate", plant / "many", many).out
    assert "must have a label column. Got flow, heat" in tisat("evaluate", plant / "week.csv", table).error


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_table_of_alarms_is_read_back_as_it_was(plant, tmp_path, suffix):
    found = Watch.load(plant / "m.tisat").alarms(plant / "new.csv")
    file = tmp_path / f"a{suffix}"
    write_table(file, list(found))
    np.testing.assert_array_equal(read_active(file, length=400), found.active)
    assert dated(found.to_arrow(), list(found)).column("raised_time").to_pylist() == [one.raised_time for one in found]
    for bad, must in ((tmp_path / "none.csv", "File not found"), (tmp_path, "must be a file")):
        with pytest.raises(InputError, match=must):
            read_active(bad, length=4)
    with pytest.raises(InputError, match=r"must end in .csv, .parquet or .jsonl"):
        write_table(tmp_path / "a.txt", list(found))
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InputError, match=r"must end in .csv, .parquet or .jsonl"):
        read_active(tmp_path / "a.txt", length=4)


def test_labels_lead_to_a_proposal_or_to_a_sentence(plant, tmp_path):
    table = tmp_path / "a.csv"
    assert tisat("alarm", "--model", plant / "m.tisat", plant / "new.csv", "--out", table).code == 0
    header, *lines = table.read_text().splitlines()
    model = ("--model", plant / "m.tisat")

    def labelled(word):
        table.write_text("\n".join([f"{header},label", *(f"{line},{word}" for line in lines)]) + "\n")
        return tisat("label", table, plant / "new.csv", *model, "--json")

    found = labelled("true")
    assert found.code == 0, found.error
    assert json.loads(found.out)["labels"] == len(lines)
    assert "must be false, true, expected, new normal, or empty. Got 'wrong' in line 2" in labelled("wrong").error
    assert "must have labels in a column 'label'" in labelled("").error
    assert "must be given the file of one machine. Got 2" in tisat("label", table, plant / "many", *model).error
    assert "must be a csv file" in tisat("label", tmp_path / "none.csv", plant / "new.csv", *model).error
    table.write_text("label\ntrue\n")
    assert "must have rows in 'raised'. Row 0 has not" in tisat("label", table, plant / "new.csv", *model).error


def test_recalibrating_says_before_and_after(plant, tmp_path):
    words = ("recalibrate", "--model", plant / "m.tisat", "--out", tmp_path / "n.tisat", "--budget", "1/300 rows")
    told = tisat(*words)
    assert "before: budget 1/100 rows" in told.out
    assert "now:    budget 1/300 rows" in told.out
    both = json.loads(tisat(*words, "--overwrite", "--json").out)
    assert both["after"]["threshold"] > both["before"]["threshold"]


def test_models_of_a_folder_are_fitted_again_and_trouble_is_told(plant, tmp_path):
    fit = ("fit", plant / "many", "--each", "--detector", "last-value", "--out", tmp_path / "models")
    assert tisat(*fit).code == 0
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.csv").write_text(rows(300, 5))
    (tmp_path / "more" / "b.csv").write_text(rows(300, 6).replace("flow", "flood"))
    again = ("update", "--model", tmp_path / "models", "--train", tmp_path / "more", "--out", tmp_path / "new")
    told = tisat(*again)
    assert told.code == 1
    assert "1 models of 2 machines fitted again" in told.out
    assert "flow" in told.out, "why b could not be"
    found = {row["machine"]: bool(row["trouble"]) for row in json.loads(tisat(*again, "--json", "--overwrite").out)}
    assert found == {"a": False, "b": True}
    (tmp_path / "taken").write_text("x")
    assert "must be a folder" in tisat(*again[:-1], tmp_path / "taken").error


def test_scores_of_many_go_into_a_folder_and_trouble_is_told(plant, tmp_path):
    words = ("score", "--model", plant / "m.tisat")
    assert "must be a folder for the scores of 2 machines" in tisat(*words, plant / "many", "--out", tmp_path / "a.csv", "--drop", "label").error  # fmt: skip
    assert "must go to a .parquet or .csv file" in tisat(*words, plant / "new.csv", "--out", tmp_path / "a.txt").error
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "a.csv").write_text(rows(50, 5))
    (tmp_path / "odd" / "b.csv").write_text(rows(50, 6).replace("flow", "flood"))
    told = tisat(*words, tmp_path / "odd", "--out", tmp_path / "scores")
    assert told.code == 1
    assert "50 rows, 49 scored" in told.out
    assert "could not be scored" in told.out
    assert "Missing: flow" in tisat(*words, tmp_path / "odd" / "b.csv", "--out", tmp_path / "b.csv").error


def test_machines_are_read_in_order_side_by_side_or_one_by_one(plant):
    files = [str(plant / "many" / "a.csv"), str(plant / "many" / "b.csv")]
    assert list(read_machines(files, {})) == ["a", "b"]
    with pytest.raises(InputError, match=r"Each machine must be named once. Got 'a' again"):
        read_machines([files[0], files[0]], {})
    assert each(pow, [(2, 3), (3, 2)], jobs=1) == [8, 9]
    assert each(pow, [(2, 3)], jobs=0) == [8]


def test_a_fleet_s_budget_is_shared():
    assert budget_of("1/day", None, 7) == "1/day"
    assert budget_of(None, None, 7) is None
    with pytest.raises(InputError):
        budget_of("1/day", "1/day", 7)


def test_detectors_are_listed_with_what_they_need():
    found = json.loads(tisat("detectors", "--json").out)
    assert "prism" in json.dumps(found)
    assert "prism" in tisat("detectors").out


def test_fitting_says_what_does_not_fit_together(plant, tmp_path):
    fit = ("fit", plant / "week.csv", "--detector", "last-value", "--out")
    for words, must in (
        ((tmp_path / "no" / "m.tisat",), "folder of --out must exist"),
        ((tmp_path / "m", "--checkpoint", tmp_path / "c"), "must be a neural one to keep checkpoints"),
        ((tmp_path / "m", "--engine", "inline"), "--engine is for many models"),
        ((tmp_path / "m", "--group-by", "columns"), "--group-by is for a model of each machine"),
        ((plant / "week.csv", "--each"), "--out must be a folder with --each"),
    ):
        assert must in tisat(*fit, *words).error
    odd = tmp_path / "odd.csv"
    odd.write_text("unique_id,flow\n.hidden,1\n.hidden,2\n")
    assert "must do as the name of a file with --each. Got '.hidden'" in tisat("fit", odd, "--each", "--detector", "last-value", "--out", tmp_path / "models").error  # fmt: skip
    found = json.loads(tisat(*fit, tmp_path / "m.tisat", "--json").out)
    assert found["budget"] == Watch.load(tmp_path / "m.tisat").calibration.budget


def test_a_machine_that_cannot_be_fitted_is_told_and_the_others_are_kept(plant, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "a.csv").write_text(rows(300, 1))
    (tmp_path / "some" / "b.csv").write_text(rows(2, 1))
    words = ("fit", tmp_path / "some", "--each", "--detector", "last-value", "--out", tmp_path / "models")
    told = tisat(*words)
    assert told.code == 1
    assert "1 models of 2 machines written" in told.out
    assert "The same command again repeats these alone" in told.err
    assert {row["machine"]: bool(row["trouble"]) for row in json.loads(tisat(*words, "--json").out)} == {"a": False, "b": True}  # fmt: skip
    assert sorted(file.name for file in (tmp_path / "models").glob("*.tisat")) == ["a.tisat"]


def test_alarms_and_lines_say_what_does_not_fit_together(plant, tmp_path):
    model = ("--model", plant / "m.tisat")
    assert "--picture must end in .png" in tisat("alarm", *model, plant / "new.csv", "--picture", "a.txt").error
    early = tisat(
        "alarm", "--model", tmp_path / "none.tisat", plant / "new.csv", "--out", "a.txt"
    )  # before anything is read
    assert "A table of alarms must end in .csv" in early.error
    assert "--picture draws one machine. Got 2" in tisat("alarm", *model, plant / "many", "--picture", tmp_path / "a.png").error  # fmt: skip
    watching = CliRunner().invoke(app, ["watch", *map(str, model)], input="time,flow,heat\n60,x,y\n")
    assert "Not one row could be judged" in str(watching.exception)
    many = CliRunner().invoke(app, ["watch", *map(str, model), "--entity", "m", "--name", "a"], input="m,flow,heat\n")
    assert "--name is for one machine" in str(many.exception)


def test_scores_in_files_must_be_vectors_of_numbers(tmp_path):
    from tisat.cli.score_files import _archive, _vector

    np.savez(tmp_path / "a.npz", scores=np.arange(3.0)[:, None], other=np.zeros((2, 2)))
    (found,) = _archive(tmp_path / "a.npz", None, ("scores",), "scores").values()
    assert found.values.tolist() == [0.0, 1.0, 2.0]
    np.savez(tmp_path / "none.npz")
    (tmp_path / "bad.npy").write_bytes(b"nonsense")
    for call, must in (
        (lambda: _archive(tmp_path / "a.npz", "third", (), "scores"), "have an array 'third'. Got scores, other"),
        (
            lambda: _archive(tmp_path / "a.npz", "other", (), "scores"),
            "hold one-dimensional scores in 'other'. Got shape",
        ),
        (lambda: _archive(tmp_path / "none.npz", None, (), "scores"), "hold scores. Got no array"),
        (lambda: _vector(tmp_path / "x", np.array(["a"]), "labels"), "hold one-dimensional labels. Got shape"),
        (lambda: _archive(tmp_path / "bad.npy", None, (), "scores"), "be .*numpy"),
    ):
        with pytest.raises(InputError, match=must):
            call()


def test_where_there_is_no_alarm_there_is_no_head_of_a_table(plant, tmp_path):
    quiet = tmp_path / "quiet.csv"
    quiet.write_text(rows(60, 5))
    done = tisat("alarm", "--model", plant / "m.tisat", "--budget", "1/100000 rows", quiet)
    assert (done.code, done.error) == (0, "")
    assert "quiet: 0 alarms" in done.out
    assert "since - until" not in done.out
    none = Watch.load(plant / "m.tisat", budget="1/100000 rows").alarms(package.Series.read(quiet))
    assert "0 alarms" in none._repr_html_()
    assert "<th" not in none._repr_html_()


def test_the_proposed_fit_leaves_out_what_fit_would_refuse(tmp_path):
    rng = np.random.default_rng(0)
    cells = [",".join([*map(str, row), "5", "", str(row[0]) if 100 <= i < 140 else ""]) for i, row in enumerate(rng.normal(size=(1200, 3)).round(3))]  # fmt: skip
    file, model = tmp_path / "x.csv", tmp_path / "m.tisat"
    file.write_text("\n".join(["a,b,c,const,empty,mostly", *cells]))
    looked = tisat("look", file)
    assert "│ empty   │ –     " in looked.out
    assert "nan" not in looked.out
    for done in (looked, tisat("suggest", file)):
        command = shlex.split(done.out.splitlines()[-1])
        assert command[command.index("--drop") + 1] == "empty,mostly"
    assert "--channels a,b " in tisat("look", file, "--channels", "a,b,mostly").out
    refused = tisat("fit", "--train", file, "--out", model)
    assert "'empty' has none; 'mostly' has them in at most 50 rows" in refused.error
    assert "--drop empty,mostly" in refused.error
    assert tisat(*command[2:-1], model).code == 0


def test_suggest_warns_of_rows_that_repeat_as_look_does(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("a,b\n" + "3,4\n" * 600)
    for verb in ("look", "suggest"):
        assert "599 rows equal the row before in every channel" in tisat(verb, file).out

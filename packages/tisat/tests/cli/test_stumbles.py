"""Sentences of the command line that once led nowhere."""

from pathlib import Path

import numpy as np
import pytest

from tisat.alarms.budget import Budget
from tisat.cli import main
from tisat.cli.output import print_table


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as done:
            main(list(words))
        printed = capsys.readouterr()
        return done.value.code, " ".join((printed.out + printed.err).split())

    return call


def write(name, rows, header):
    np.savetxt(name, rows, delimiter=",", header=header, comments="")


def test_watch_says_what_to_do_with_a_folder_of_models(run, tmp_path):
    (tmp_path / "models").mkdir()
    code, said = run("watch", "--model", "models")
    assert code
    assert "must be one file, such as models/MACHINE.tisat" in said
    assert "tisat serve --model models" in said


def test_without_a_clock_budgets_are_in_rows(run):
    write("rows.csv", np.random.default_rng(0).normal(size=(600, 1)), "a")
    assert "1/10000 rows unless given" in run("look", "rows.csv")[1]
    code, said = run("fit", "rows.csv", "--detector", "ewma", "--out", "m.tisat")
    assert code == 0
    assert "for another: --budget '1/1000 rows'" in said
    assert run("fit", "rows.csv", "--detector", "ewma", "--budget", "1/1000 rows", "--out", "n.tisat")[0] == 0


def test_one_channel_is_no_channels(run):
    write("rows.csv", np.random.default_rng(0).normal(size=(600, 1)), "a")
    for words in (["suggest", "rows.csv"], ["fit", "rows.csv", "--detector", "ewma", "--out", "m.tisat"]):
        said = run(*words)[1]
        assert "of 1 channel" in said
        assert "1 channels" not in said


def test_square_brackets_are_no_markup(capsys):
    """Titles, heads and notes lost '[bar]': the units note read 'taken for units: , [%]'."""
    print_table(
        "pressures a [bar]",
        ["flow [m3/h]", "b"],
        [["x [kg] of a long name that makes it wide", 1]],
        note="line 2 was taken for units: [bar], [%]",
    )
    out = " ".join(capsys.readouterr().out.split())
    for words in ("a [bar]", "flow [m3/h]", "x [kg]", "units: [bar], [%]"):
        assert words in out


def test_words_beside_a_narrow_table_are_not_folded(capsys):
    title, note = (
        "mine: fitted on 1,008 rows, compared on the 1,008 after them",
        "differences of one or two mean nothing",
    )
    print_table(title, ["a"], [["x"]], note=note)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == title
    assert lines[-1] == note


def test_a_wide_table_in_a_pipe_keeps_its_heads_whole(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    heads = [f"data set {n} pooled" for n in range(9)]
    print_table("t", heads, [[0.5] * 9], note="word " * 40)
    lines = capsys.readouterr().out.splitlines()
    assert all(head in lines[2] for head in heads)
    assert max(map(len, lines[6:])) <= 80, "words are wrapped as before"


def test_a_file_that_is_not_there_is_answered_with_the_nearest_name(run, tmp_path):
    write("gut.csv", np.random.default_rng(0).normal(size=(300, 1)), "a")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "kolonne.tisat").touch()
    for words, name in (
        (["look", "guut.csv"], "gut.csv"),
        (["fit", "guut.csv", "--out", "m.tisat"], "gut.csv"),
        (["alarm", "gut.csv", "--model", "models/kolone.tisat"], "kolonne.tisat"),
        (["audit", "gutt.csv", "gut.csv"], "gut.csv"),
    ):
        code, said = run(*words)
        assert code
        assert f"Did you mean '{name}'?" in said, words


@pytest.mark.parametrize(
    "words",
    [
        ["alarm", "gut.csv", "--model", "m.tisat", "--html", "nodir/x.html"],
        ["alarm", "gut.csv", "--model", "m.tisat", "--out", "nodir/x.csv"],
        ["score", "gut.csv", "--model", "m.tisat", "--out", "nodir/x.csv"],
        ["scan", "gut.csv", "--picture", "nodir/x.png"],
        ["look", "gut.csv", "--picture", "nodir/x.png"],
        ["audit", "gut.csv", "gut.csv", "--latex", "nodir/x.tex"],
        ["backtest", "gut.csv", "--train", "1d", "--html", "nodir/x.html"],
        ["compare", "gut.csv", "--picture", "nodir/x.png"],
    ],
)
def test_the_folder_of_an_output_must_exist_before_the_work_is_done(run, words, tmp_path):
    (tmp_path / "gut.csv").touch()  # nothing is read
    code, said = run(*words)
    assert code == 1
    assert f"The folder of {words[-2]} must exist. There is no '{tmp_path / 'nodir'}'." in said


def test_a_column_to_drop_that_is_not_there_is_said_where_it_was_typed(run):
    write("d.csv", np.random.default_rng(0).normal(size=(600, 2)), "a,b")
    for words in (["look", "d.csv"], ["fit", "d.csv", "--detector", "ewma", "--out", "m.tisat"]):
        code, said = run(*words, "--drop", "c9")
        assert code == 0
        assert "note: no column 'c9' to leave out; there are a, b" in said
    assert "no column" not in run("alarm", "d.csv", "--model", "m.tisat")[1]  # it was typed for another file


def test_fit_says_that_many_values_are_missing(run):
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    rows[np.random.default_rng(1).random((3000, 2)) < 0.6] = np.nan
    write("d.csv", rows, "a,b")
    code, said = run("fit", "d.csv", "--out", "m.tisat")
    assert code == 0
    assert "% of the values are missing: the model knows the others alone" in said


def test_options_that_are_proposed_can_be_typed(run):
    """'--no-counter Zähler Zulauf' was printed without quotes."""
    rng = np.random.default_rng(0)
    write("z.csv", np.column_stack([np.cumsum(rng.poisson(3, 800)), rng.normal(size=800)]), "Zaehler Zulauf,b")
    assert "'Zaehler" in run("look", "z.csv")[1]  # over two lines of its cell
    said = run("fit", "z.csv", "--detector", "ewma", "--out", "m.tisat")[1]
    assert "--no-counter 'Zaehler Zulauf'" in said


def test_a_folder_is_looked_at_with_whole_times_and_the_command_to_type_next(run, tmp_path):
    (tmp_path / "plant").mkdir()
    for name in ("pump-a", "pump-b"):
        rows = [f"2026-01-01T{i // 60:02d}:{i % 60:02d}:00,{i % 7},{i % 5}" for i in range(600)]
        (tmp_path / "plant" / f"{name}.csv").write_text("\n".join(["time,flow,level", *rows]))
    said = run("look", "plant")[1]
    assert "2026-01-01" in said
    assert "09:59" in said
    assert said.endswith("next: tisat fit plant --each --out models")


def test_a_budget_of_more_than_one_alarm_in_two_rows_is_not_rounded():
    assert Budget.parse("1000/day", period=60.0).say(1.44) == "1 in 1.44 rows (1.44 minutes)"


def test_strange_words_and_columns_of_text_are_answered_at_once(run, tmp_path):
    rows = [f"{'Bad Input' if i == 3 else i % 7},{'n.v.' if i == 5 else i % 5},on" for i in range(60)]
    (tmp_path / "w.csv").write_text("\n".join(["a,b,my state", *rows]))
    code, said = run("look", "w.csv")
    assert code == 1
    assert "--missing 'Bad Input,n.v.'" in said
    assert "--drop 'my state'" in said
    assert run("look", "w.csv", "--missing", "Bad Input,n.v.", "--drop", "my state")[0] == 0


def test_few_rows_name_the_budget_they_support(run):
    rng = np.random.default_rng(3)

    def minutes(name, values):
        stamps = np.datetime64("2026-01-01T00:00:00") + np.arange(len(values)) * np.timedelta64(60, "s")
        lines = [f"{stamp},{value:.3f}" for stamp, value in zip(stamps, values, strict=True)]
        Path(name).write_text("\n".join(["time,a", *lines, ""]))

    shifted = rng.normal(size=600)
    shifted[300:330] += 8.0
    minutes("few.csv", rng.normal(size=300))
    minutes("new.csv", shifted)
    advice = (
        "At this threshold small or short changes will not be seen; --budget 1/hour is supported by the training rows."
    )
    said = run("fit", "few.csv", "--detector", "mahalanobis", "--budget", "1/day", "--out", "day.tisat")[1]
    assert said.count(advice) == 1
    said = run("alarm", "new.csv", "--model", "day.tisat")[1]
    assert said.count(advice) == 1
    assert "cannot support" not in said  # said by "Your data supports up to" already
    assert "will not be seen" not in run("alarm", "new.csv", "--model", "day.tisat", "--budget", "1/hour")[1]
    minutes("other.csv", shifted)
    said = run("alarm", "new.csv", "other.csv", "--model", "day.tisat")[1]
    assert f"note (2 of 2): {advice}" in said


def test_labels_without_values_are_enough_to_evaluate_alarms(run, tmp_path):
    labels = "\n".join(f"2026-01-01 00:{row:02d}:00,{int(20 <= row < 30)}" for row in range(60))
    (tmp_path / "labels.csv").write_text(f"time,label\n{labels}\n")
    (tmp_path / "alarms.csv").write_text("series,raised,onset,cleared\nx,22,21,28\n")
    code, said = run("evaluate", "labels.csv", "alarms.csv")
    assert code == 0
    assert "1 of 1 events detected" in said
    code, said = run("fit", "labels.csv", "--out", "m.tisat")
    assert code == 1
    assert "at least one column of values" in said

"""Sentences of the command line that once led nowhere."""

import numpy as np
import pytest

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


def test_fit_says_that_many_values_are_missing(run):
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    rows[np.random.default_rng(1).random((3000, 2)) < 0.6] = np.nan
    write("d.csv", rows, "a,b")
    code, said = run("fit", "d.csv", "--out", "m.tisat")
    assert code == 0
    assert "% of the values are missing: the model knows the others alone" in said

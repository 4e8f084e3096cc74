"""Sentences of the command line that once led nowhere."""

import numpy as np
import pytest

from tisat.cli import main


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

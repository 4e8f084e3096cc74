"""A data set of your own in an experiment file, beside the published ones."""

import json
import shlex

import numpy as np
import pytest

from tisat.cli import main
from tisat.errors import DataFileError, ParameterError
from tisat_bench.experiment import read_experiment
from tisat_bench.sources import Source


def write(folder, *, labels=True):
    rng = np.random.default_rng(0)
    folder.mkdir()
    for name in ("north", "south"):
        for split, rows in (("train", 900), ("test", 600)):
            values = rng.normal(size=(rows, 2))
            y = np.zeros(rows, dtype=int)
            if split == "test":
                values[300:320] += 9.0
                y[300:320] = 1
            body = "".join(
                f"{a:.4f},{b:.4f}" + (f",{label}" if labels else "") + "\n"
                for (a, b), label in zip(values, y, strict=True)
            )
            (folder / f"{name}.{split}.csv").write_text("a,b" + (",label" if labels else "") + "\n" + body)


EXPERIMENT = """
title = "mine"
delta_max = 20
[[data]]
name = "wells"
path = "wells"
[[system]]
name = "last value"
detector = "last-value"
[[system]]
name = "mahalanobis"
detector = "mahalanobis"
"""


def test_tables_of_a_data_set_of_ones_own(tmp_path, capsys):
    write(tmp_path / "wells")
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    experiment = read_experiment(tmp_path / "mine.toml")
    assert experiment.names == {"wells": ("north", "south")}
    with pytest.raises(SystemExit) as end:
        main(["bench", str(tmp_path / "mine.toml"), "--store", str(tmp_path / "store")])
    said = capsys.readouterr()
    assert end.value.code == 0, said.err
    assert "mahalanobis" in said.out
    assert "wells" in said.out


def test_the_command_of_a_failed_task_repeats_it_on_data_of_ones_own(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TISAT_IMPORT", "last-value=tisat.detectors.last_value:LastValue")
    write(tmp_path / "wells")
    broken = EXPERIMENT.replace('detector = "mahalanobis"', 'detector = "ewma"\nparams = { smoothing = 7.0 }')
    (tmp_path / "mine.toml").write_text(broken)
    with pytest.raises(SystemExit):
        main(["bench", str(tmp_path / "mine.toml"), "--store", str(tmp_path / "store"), "--engine", "inline"])
    said = capsys.readouterr().err
    command = shlex.split(next(line for line in said.splitlines() if line.startswith("    tisat bench")))
    assert command[2:4] == [str(tmp_path / "mine.toml"), "--import=last-value=tisat.detectors.last_value:LastValue"]
    with pytest.raises(SystemExit) as end:
        main(command[1:])
    assert end.value.code == 1
    again = capsys.readouterr()
    assert "Traceback" in again.err
    assert "smoothing" in json.loads(again.out)["reason"]


def test_what_does_not_fit_is_one_sentence(tmp_path):
    write(tmp_path / "wells", labels=False)
    file = tmp_path / "mine.toml"
    file.write_text(EXPERIMENT)
    with pytest.raises(ParameterError, match="must have labels in every test series"):
        assert read_experiment(file).names
    file.write_text(EXPERIMENT.replace('name = "wells"', 'name = "smd"', 1))
    with pytest.raises(ParameterError, match="which is published"):
        read_experiment(file)
    file.write_text(EXPERIMENT.replace('path = "wells"', "train = 0.5", 1))
    with pytest.raises(ParameterError, match="must come with 'path'"):
        read_experiment(file)


def test_arrays_with_train_test_and_labels(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "wells").mkdir()
    labels = np.arange(50) > 40
    for name in ("a", "b"):
        np.savez(
            tmp_path / "wells" / f"{name}.npz",
            train=rng.normal(size=(80, 2)),
            test=rng.normal(size=(50, 2)),
            labels=labels,
        )
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    experiment = read_experiment(tmp_path / "mine.toml")
    assert experiment.names == {"wells": ("a", "b")}
    train, test = experiment.sources["wells"].pair("b")
    assert (len(train), len(test), test.events.tolist()) == (80, 50, [[41, 50]])
    np.savez(tmp_path / "wells" / "c.npz", train=np.zeros(3))
    with pytest.raises(DataFileError, match="hold the arrays train, test and labels"):
        Source("wells", path=f"{tmp_path}/wells/c.npz").pair("c")

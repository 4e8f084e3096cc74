"""Rows from scores computed elsewhere: the same tables as a detector that made the same scores."""

import numpy as np
import pytest

from tisat.detectors import make
from tisat.errors import DataFileError, ParameterError
from tisat_bench.experiment import read_experiment
from tisat_bench.external_scores import read_given
from tisat_bench.sources import Source
from tisat_bench.task_run import run_from


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine" / "plants").mkdir(parents=True)
    train, test = Source("plants").pair("plant-0")
    detector = make("last-value").fit(train.without_labels(), holdout=0.0)
    np.savez(
        tmp_path / "mine" / "plants" / "plant-0.npz",
        scores=detector.decision_function(test),
        normal=detector.aggregate(detector.normal_),
    )
    (tmp_path / "e.toml").write_text(
        'delta_max = 50\n[[data]]\nname = "plants"\nentities = ["plant-0"]\n'
        '[[system]]\nname = "theirs"\nscores = "mine"\n[[system]]\ndetector = "last-value"\n'
    )
    return tmp_path


def test_the_same_scores_are_the_same_row(folder):
    experiment = read_experiment(folder / "e.toml")
    theirs, ours = [run_from(task, experiment.sources["plants"]) for task in experiment.tasks()]
    assert not theirs.failed, theirs.row
    np.testing.assert_array_equal(theirs.arrays["scores"], ours.arrays["scores"])
    np.testing.assert_array_equal(theirs.arrays["normal"], ours.arrays["normal"])
    assert theirs.task.id != ours.task.id
    assert type(theirs.task).from_json(theirs.task.to_json()) == theirs.task


def test_the_command_makes_its_table(folder, capsys):
    from tisat.cli import main

    with pytest.raises(SystemExit) as stopped:
        main(["bench", str(folder / "e.toml"), "--store", str(folder / "store"), "--engine", "inline"])
    assert stopped.value.code == 0
    cost = capsys.readouterr().out.partition("what it cost")[2].splitlines()
    theirs, ours = (next(line.split() for line in cost if name in line) for name in ("theirs", "last-value"))
    assert theirs.count("–") == ours.count("–") + 2, "nothing is known of what the scores cost"
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(
            [
                "bench",
                str(folder / "e.toml"),
                "--store",
                str(folder / "store"),
                "--no-run",
                "--report",
                str(folder / "r"),
            ]
        )
    assert "theirs" in (folder / "r" / "index.html").read_text()


def test_what_does_not_fit_is_refused(folder):
    file = folder / "mine" / "plants" / "plant-0.npz"
    before = next(read_experiment(folder / "e.toml").tasks())
    np.savez(file, scores=np.zeros(5), normal=np.zeros(5))
    with pytest.raises(DataFileError, match="must hold 6000 scores"):
        read_given(str(folder / "mine"), "plants", "plant-0", length=6000)
    assert next(read_experiment(folder / "e.toml").tasks()).id != before.id  # other scores, another task
    np.savez(file, scores=np.zeros(5))
    with pytest.raises(DataFileError, match="arrays scores and normal"):
        read_given(str(folder / "mine"), "plants", "plant-0", length=5)
    with pytest.raises(DataFileError, match="There is none"):
        read_given(str(folder / "mine"), "plants", "../../../etc/passwd", length=5)
    (folder / "bad.toml").write_text('[[data]]\nname = "plants"\n[[system]]\nscores = "mine"\n')
    with pytest.raises(ParameterError, match="must have a name"):
        read_experiment(folder / "bad.toml")

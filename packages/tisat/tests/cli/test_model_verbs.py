"""fit, score and show, as a user meets them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tisat import Series, Watch
from tisat.cli import main
from tisat.detectors.loading import load


@pytest.fixture
def files(tmp_path):
    time_steps = np.arange(500)
    rows = np.column_stack([np.sin(time_steps / 7), np.cos(time_steps / 9)]) + 5
    head = "timestamp,flow,pressure,is_anomaly"
    stamps = (np.datetime64("2026-01-01T00:00:00") + time_steps * np.timedelta64(60, "s")).astype(str)
    lines = [f"{stamp},{a:.6f},{b:.6f},0" for stamp, (a, b) in zip(stamps, rows, strict=True)]
    (tmp_path / "train.csv").write_text("\n".join([head, *lines[:400]]) + "\n")
    (tmp_path / "test.csv").write_text("\n".join([head, *lines[400:]]) + "\n")
    return tmp_path


def call(*arguments):
    """The exit code of a command line."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stopped:
        return stopped.code
    return 0


def test_fit_score_show_round(files, capsys):
    model, scores = files / "model.tisat", files / "scores.parquet"
    assert (
        call("fit", "--detector", "linear-mean", "--train", files / "train.csv", "--out", model, "--set", "window=20")
        == 0
    )
    assert call("score", "--model", model, files / "test.csv", "--out", scores, "--points", "--json") == 0
    capsys.readouterr()
    from pyarrow import parquet

    table = parquet.read_table(scores)
    assert table.column_names == ["timestamp", "score", "is_anomaly", "point flow", "point pressure"]
    detector = load(model)
    assert detector.window == 20
    found = table.column("score").to_numpy(zero_copy_only=False)
    np.testing.assert_array_equal(found, detector.decision_function(str(files / "test.csv")))
    assert table.column("score").null_count == 20  # the warm-up is empty, not 0
    assert (
        call("score", "--model", model, files / "test.csv", "--out", files / "c.csv", "--centred", "--statistic") == 1
    )
    assert "--centred must come without --statistic" in capsys.readouterr().err
    assert not (files / "c.csv").exists()
    assert call("show", model, "--json") == 0
    described = json.loads(capsys.readouterr().out)
    assert described["detector"] == "linear-mean"
    assert described["channels"] == ["flow", "pressure"]
    assert described["trained_on"]["rows"] == 400
    assert described["parameters"]["window"] == 20
    assert call("show", model) == 0
    shown = capsys.readouterr().out
    for word in ("linear-mean", "flow, pressure", "400 rows of 'train'", "2026-01-01"):
        assert word in shown


def test_a_neural_detector_resumes_from_its_checkpoint(files, capsys):
    pytest.importorskip("torch")
    small = [
        part
        for name in ("window=16", "token=8", "d_model=8", "n_heads=2", "d_ff=8", "stride=4")
        for part in ("--set", name)
    ]
    base = ["fit", "--detector", "tisat", "--train", files / "train.csv", *small]
    whole, halves, run = files / "whole.tisat", files / "halves.tisat", files / "run.checkpoint"
    assert call(*base, "--out", whole, "--set", "epochs=2") == 0
    capsys.readouterr()
    assert call(*base, "--out", halves, "--set", "epochs=1", "--checkpoint", run) == 0
    said = capsys.readouterr().err  # not a terminal: a line an epoch all the same
    assert "TiSAT: training epoch 1 of 1 done" in said
    assert f"checkpoint in {run}" in said
    assert call(*base, "--out", files / "third.tisat", "--set", "epochs=2", "--checkpoint", run) == 1
    assert "to go on from it: --resume" in capsys.readouterr().err
    assert call(*base, "--out", halves, "--set", "epochs=2", "--checkpoint", run, "--resume", "--overwrite") == 0
    assert "training goes on after epoch 1 of 2" in capsys.readouterr().err
    first, second = load(whole), load(halves)
    np.testing.assert_array_equal(
        first.decision_function(str(files / "test.csv")), second.decision_function(str(files / "test.csv"))
    )
    capsys.readouterr()
    assert call("show", whole) == 0
    assert "2 epochs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("detector", "given", "finished", "sentence"),
    [
        ("tisat", True, True, "run.ck holds the finished epochs: the same command with --resume continues"),
        ("tisat", True, False, "interrupted before the first epoch ended: nothing is kept"),
        (
            "tisat",
            False,
            False,
            "nothing is kept. --checkpoint FILE keeps every finished epoch, and --resume continues",
        ),
        ("ewma", False, False, "tisat: interrupted, and nothing is kept.\n"),
    ],
)
def test_an_interrupted_training_says_what_is_kept(files, capsys, monkeypatch, detector, given, finished, sentence):
    pytest.importorskip("torch")
    kept = files / "run.ck"

    def interrupted(*_, **__):
        if finished:
            kept.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "fit", interrupted)
    options = ["--checkpoint", kept] if given else []
    assert call("fit", files / "train.csv", "--detector", detector, "--out", files / "m.tisat", *options) == 130
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--detector", "linear-mean", "--set", "wndow=20"],
            "must be given parameters it has: window, ridge. Got 'wndow'",
        ),
        (["--detector", "linear-mean", "--set", "window=0"], "must be an integer >= 1. Got 0"),
        (["--detector", "nonsense"], "The detector must be one that `tisat detectors` lists"),
        (["--detector", "linear-mean", "--resume"], "must be a neural one"),
    ],
)
def test_bad_input_is_one_sentence_and_1(files, capsys, arguments, sentence):
    assert call("fit", "--train", files / "train.csv", "--out", files / "m.tisat", *arguments) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said
    assert not (files / "m.tisat").exists()


def test_wrong_usage_of_set_is_2(files, capsys):
    assert call("fit", "--train", files / "train.csv", "--out", files / "m.tisat", "--set", "window") == 2
    assert "name=value" in capsys.readouterr().err


def test_a_file_that_is_no_model_and_a_series_that_does_not_fit(files, capsys):
    assert call("show", files / "train.csv") == 1
    assert "Not a tisat model" in capsys.readouterr().err
    model = files / "model.tisat"
    assert call("fit", "--detector", "last-value", "--train", files / "train.csv", "--out", model) == 0
    (files / "narrow.csv").write_text("flow\n1.0\n2.0\n")
    assert call("score", "--model", model, files / "narrow.csv", "--out", files / "s.csv") == 1
    assert "Missing: pressure" in capsys.readouterr().err
    assert call("score", "--model", model, files / "test.csv", "--out", files / "s.xyz") == 1


def test_fit_takes_its_files_with_or_without_the_word(files, capsys):
    train, out = files / "train.csv", files / "m.tisat"
    for given in (["--train", train], [train]):
        assert call("fit", *given, "--out", out, "--detector", "last-value") == 0
        out.unlink()
    assert call("fit", "--out", out) == 1
    assert "tisat fit good.csv" in capsys.readouterr().err


def test_score_writes_the_statistic_and_the_centred_score(files, capsys):
    model, out = files / "model.tisat", files / "s.csv"
    assert call("fit", files / "train.csv", "--out", model, "--detector", "ewma", "--budget", "1/50 rows") == 0
    watch, series = Watch.load(model), Series.read(files / "test.csv")
    train = Series.read(files / "train.csv").values
    expected = {
        "--statistic": watch.score(series),
        "--centred": watch.score(series, centred=True),
        f"--centred --train {files / 'train.csv'}": watch.score(series, centred=True, train=train),
    }
    for options, scores in expected.items():
        assert call("score", files / "test.csv", "--model", model, "--out", out, "--overwrite", *options.split()) == 0
        lines = [line.split(",")[1] for line in out.read_text().splitlines()[1:]]
        np.testing.assert_allclose([float(one or "nan") for one in lines], scores)
    assert "to rank rows" in capsys.readouterr().out
    assert (
        call("score", files / "test.csv", "--model", model, "--out", files / "t.csv", "--train", files / "train.csv")
        == 1
    )

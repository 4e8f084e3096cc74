"""Words that stand for missing values: refused with the option that reads them, and remembered by the model."""

import json
import warnings

import numpy as np
import pytest

from tisat.cli import main
from tisat.errors import DataFileError, ParameterError, SeriesError
from tisat.io.files import Reading
from tisat.series import Series
from tisat.watch.protocols import fitted_counters
from tisat.watch.text_stream import LineReader
from tisat.watch.watch import Watch


def call(*arguments):
    """The exit code of a command line."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stopped:
        return stopped.code
    return 0


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["time,flow,total"]
    total = 0.0
    for i in range(1500):
        total += rng.uniform(1.0, 3.0)
        flow = "Bad Input" if i in (700, 701) else "Fault" if i == 900 else f"{5 + rng.standard_normal():.3f}"
        lines.append(f"2026-01-{1 + i // 1440:02d}T{i // 60 % 24:02d}:{i % 60:02d}:00,{flow},{total:.1f}")
    path = tmp_path / "week.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_refusal_names_the_option_and_the_option_reads_the_file(file):
    with pytest.raises(
        DataFileError, match=r"column 'flow'. Got 'Bad Input' at row 700 .* --missing 'Bad Input,Fault'$"
    ):
        Series.read(file)
    series = Series.read(file, missing=["bad input", "Fault"])
    assert np.flatnonzero(np.isnan(series.values[:, 0])).tolist() == [700, 701, 900]
    with pytest.raises(ParameterError, match="must be a list of words"):
        Series.read(file, missing="Bad Input")


def test_many_words_are_no_missing_values(tmp_path):
    rows = [f"{i}.5,{i}" if i % 10 else f"word{i},1" for i in range(1, 200)]
    (tmp_path / "text.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataFileError) as caught:
        Series.read(tmp_path / "text.csv")
    assert "--missing" not in str(caught.value)


def test_a_model_remembers_words_and_counters_for_alarm_and_watch(file, tmp_path, capsys):
    model = tmp_path / "model.tisat"
    words = ["--missing", "Bad Input,Fault", "--detector", "last-value"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert call("fit", file, "--out", model, *words) == 0
    assert "total is a counter: the model looks at its growth per row" in capsys.readouterr().err
    watch = Watch.load(model)
    assert fitted_counters(watch.detector) == ("total",)
    assert watch.reading["missing"] == ["Bad Input", "Fault"]
    assert call("score", "--model", model, file, "--out", tmp_path / "scores.csv") == 0
    reader = LineReader(watch.channels, how=Reading.of(watch.reading))
    rows = [found for line in file.read_text().splitlines() if (found := reader(line)) is not None]
    assert np.isnan(rows[700][0]["flow"])
    monitor = watch.monitor()
    online = [monitor.update(row, time=time).statistic for row, time in rows]
    offline = watch.alarms(watch.read(file)).statistic
    np.testing.assert_allclose(np.nan_to_num(online), np.nan_to_num(offline))
    names = [*rows[0][0]]
    for text in (json.dumps({"time": "2027-01-01T00:00", **dict.fromkeys(names, 1.0), "flow": "BAD INPUT"}),
                 json.dumps(["fault", *[1.0] * (len(names) - 1)])):  # fmt: skip
        row, _ = reader(text)
        assert (row["flow"] if isinstance(row, dict) else row[0]) is None
    assert watch.monitor().update({"flow": "bad input", "total": 1.0}).status != "refused"
    assert watch.monitor().update(["Bad Input", *[1.0] * (len(watch.channels) - 1)]).row == 0
    with pytest.raises(SeriesError, match=r"must be a number\. Got 'broken'"):
        watch.monitor().update({"flow": "broken"})
    kept = tmp_path / "kept.tisat"
    assert call("fit", file, "--out", kept, *words, "--no-counter", "total") == 0
    assert fitted_counters(Watch.load(kept).detector) == ()
    each = ("fit", file, "--each", "--out", tmp_path / "each", *words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert call(*each, "--no-counter", "total") == 0
        assert fitted_counters(Watch.load(tmp_path / "each" / f"{file.stem}.tisat").detector) == ()
        assert call(*each, "--overwrite") == 0
        assert fitted_counters(Watch.load(tmp_path / "each" / f"{file.stem}.tisat").detector) == ("total",)
        assert call(*each, "--counter", "flow", "--overwrite") == 0  # besides what is recognised, as without --each
        assert fitted_counters(Watch.load(tmp_path / "each" / f"{file.stem}.tisat").detector) == ("flow", "total")
    capsys.readouterr()
    assert call("fit", file, "--out", tmp_path / "typo.tisat", *words, "--no-counter", "totl") == 1
    assert "must be one of the series" in capsys.readouterr().err

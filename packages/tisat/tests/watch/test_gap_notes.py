"""A gap in time is said: in a file how many there are and what they cost, in a stream when it ends."""

import io
import json

import numpy as np
import pytest

import tisat
from tisat.batch import AlarmEach, find_machines
from tisat.cli import main
from tisat.watch import Watch
from tisat.watch.gap_notes import gaps_note
from tisat.watch.text_stream import watch_lines

pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")


def rows(seed, length):
    return np.sin(np.arange(length)[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * np.random.default_rng(seed).normal(
        size=(length, 2)
    )


def series(minutes, seed=1):
    start = np.datetime64("2026-06-01T00:00:00", "ns")
    times = start + np.asarray(minutes) * np.timedelta64(60, "s")
    return tisat.Series(rows(seed, len(minutes)), timestamps=times, channels=("a", "b"))


@pytest.fixture(scope="module")
def watch():
    return Watch(tisat.make("pca", window=10), budget="1/200 rows").fit(series(range(1500), seed=0))


TWO = [*range(100), *range(160, 260), *range(500, 600)]
SAID = "2 gaps in time: the first 1.02 h after 2026-06-01 01:39, the longest 4.02 h after 2026-06-01 04:19; 18 rows after them could not be scored."


def test_a_file_says_its_gaps_and_what_they_cost(watch, tmp_path, capsys):
    given = series(TWO)
    assert gaps_note(given, watch.alarms(given).scores, period=watch.period) == SAID
    for whole in (series(range(300)), tisat.Series(rows(1, 300), channels=("a", "b"))):
        assert gaps_note(whole, watch.alarms(whole).scores, period=watch.period) == ""
    once = series([*range(100), *range(160, 163)])
    assert gaps_note(once, watch.alarms(once).scores, period=60.0) == (
        "1 gap in time: 1.02 h after 2026-06-01 01:39; 3 rows after it could not be scored."
    )
    watch.save(tmp_path / "m.tisat")
    lines = [f"{stamp},{a},{b}" for stamp, (a, b) in zip(given.timestamps, given.values, strict=True)]
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["time,a,b", *lines]) + "\n")
    with pytest.raises(SystemExit):
        main(["alarm", str(tmp_path / "one.csv"), "--model", str(tmp_path / "m.tisat"), "--json"])
    assert SAID in json.loads(capsys.readouterr().out)["notes"]
    with pytest.raises(SystemExit):
        main(["alarm", str(tmp_path / "one.csv"), "--model", str(tmp_path / "m.tisat")])
    assert "note: 2 gaps in time" in capsys.readouterr().out
    machine = find_machines([str(tmp_path / "two.csv")], {})[0]
    found = AlarmEach(str(tmp_path / "m.tisat"))(machine)
    assert found.to_json()["notes"][0] == SAID
    with pytest.raises(SystemExit):
        main(["alarm", str(tmp_path / "one.csv"), str(tmp_path / "two.csv"), "--model", str(tmp_path / "m.tisat")])
    assert f"note (2 of 2): {SAID}" in capsys.readouterr().err


@pytest.mark.parametrize("ends", [160, 5000])  # also one after which two rows must agree on the time
def test_a_stream_says_a_gap_once_and_how_long_it_is_not_scored(watch, ends):
    said, out = [], io.BytesIO()
    given = series([*range(100), *range(ends, ends + 50)])
    lines = [f"{stamp},{a},{b}\n".encode() for stamp, (a, b) in zip(given.timestamps, given.values, strict=True)]
    watch_lines(watch.monitor(), [b"time,a,b\n", *lines], out, report=said.append)
    assert len(said) == 1
    assert f"after 2026-06-01T01:39:00 and before {given.stamp(100)}; the next 9 rows are not scored" in said[0]
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert sum(one["status"] == "warming up" for one in found[100:]) == 9

"""A first look names what each channel is like."""

import numpy as np
import pytest

from tisat import Series
from tisat.cli import main
from tisat.datasets.profile import copied_stretch, look
from tisat.datasets.sizes import size_notes
from tisat.datasets.synthetic import make_pump

CHANNELS = {
    "measurement": lambda t, rng: rng.normal(size=len(t)),
    "constant": lambda t, rng: np.full(len(t), 4.0),
    "on/off": lambda t, rng: (t // 37 % 2).astype(float),
    "states": lambda t, rng: (t // 37 % 5).astype(float),
    "counter": lambda t, rng: np.cumsum(rng.random(len(t))),
    "stuck": lambda t, rng: np.where((t > 300) & (t < 500), 1.5, rng.normal(size=len(t))),
    "empty": lambda t, rng: np.full(len(t), np.nan),
}


def test_every_kind_is_told():
    t, rng = np.arange(1000), np.random.default_rng(0)
    values = np.column_stack([make(t, rng) for make in CHANNELS.values()])
    found = look(Series(values, channels=tuple(CHANNELS)))
    assert [one.kind for one in found.channels] == list(CHANNELS)
    assert found.period is None


def test_gaps_and_missing_values_are_counted():
    pump = make_pump(n_train=1000).train
    keep = np.r_[0:400, 430:1000]
    values = pump.values[keep].copy()
    values[10:15, 2] = np.nan
    found = look(Series(values, timestamps=pump.timestamps[keep], channels=pump.channels))
    assert (found.gaps, found.rows_missing, found.longest_gap) == (1, 30, 31 * 60)
    assert found.channels[2].longest_gap == 5
    assert found.channels[2].missing == pytest.approx(5 / 970)


def test_the_verb_reads_a_file_as_it_is(tmp_path, capsys):
    file = tmp_path / "a.csv"
    file.write_text("Datum;Druck\n" + "".join(f"09.03.2026 14:{i:02d};{i},5\n" for i in range(60)))
    with pytest.raises(SystemExit) as end:
        main(["look", str(file), "--time", "Datum", "--picture", str(tmp_path / "a.png")])
    said = capsys.readouterr().out
    assert end.value.code == 0
    assert "Druck" in said
    assert "2026-03-09 14:00:00 to" in said
    assert (tmp_path / "a.png").stat().st_size > 1000


def line(*, weeks, channels=11):
    """A line of minutes that stands at weekends: every channel stays where it was, the first at 0."""
    rows = weeks * 1008
    values = np.random.default_rng(0).normal(50.0, 3.0, size=(rows, channels))
    for week in range(weeks):
        stands = slice(week * 1008 + 720, (week + 1) * 1008)
        values[stands] = values[stands.start]
        values[stands, 0] = 0.0
    return values


def test_a_plant_that_stands_at_weekends_has_no_stuck_sensors():
    found = look(line(weeks=1))
    assert {one.kind for one in found.channels} == {"measurement"}
    assert found.channels[0].advice == "kept; not stuck: it stands when the others do, for up to 288 rows"
    alone = look(line(weeks=3)[:, :1]).channels[0]
    assert (alone.kind, alone.advice) == (
        "measurement",
        "kept; not stuck: it stands at one value again and again, for up to 288 rows",
    )


def test_a_sensor_that_dies_while_the_others_move_is_still_stuck():
    values = line(weeks=2)
    values[100:600, 3] = 51.0
    assert [one.name for one in look(values).channels if one.kind == "stuck"] == [look(values).channels[3].name]
    pair = line(weeks=2)[:, :2]
    pair[100:600, 1] = 51.0
    assert [one.kind for one in look(pair).channels] == ["measurement", "stuck"]


def test_what_is_said_of_many_channels_is_said_once(tmp_path, capsys):
    file, rng = tmp_path / "a.csv", np.random.default_rng(0)
    names = ["flow", *(f"set {c}" for c in range(11))]
    rows = [[f"{rng.normal():.3f}", *map(str, range(11))] for _ in range(600)]
    file.write_text("\n".join(map(",".join, [names, *rows])) + "\n")
    with pytest.raises(SystemExit):
        main(["look", str(file)])
    said = capsys.readouterr().out
    whole = " ".join(said.split())
    assert said.count("a change by a few % stands out") == 1
    assert "(1) 11 channels: a change by a few % stands out; not wanted: --drop 'set 0,set 1,set 2" in whole
    assert said.count("(1)") == 12


def test_memory_of_a_million_rows_is_said():
    assert "GB of memory" in size_notes(1_000_000, 2)[0]
    assert size_notes(100_000, 2) == ()


def test_rows_without_a_value_are_not_counted_as_usable(tmp_path, capsys):
    rows = np.random.default_rng(0).normal(size=(600, 2))
    rows[200:500] = np.nan
    found = look(rows)
    assert (found.rows, found.rows_empty, found.usable, found.duplicated_rows) == (600, 300, 300, 0)
    lines = "\n".join("," if np.isnan(row[0]) else f"{row[0]},{row[1]}" for row in rows)
    (tmp_path / "a.csv").write_text(f"flow,heat\n{lines}\n")
    with pytest.raises(SystemExit):
        main(["look", str(tmp_path / "a.csv")])
    said = " ".join(capsys.readouterr().out.split())
    assert "300 of 600 rows have no value in any channel: 300 can be used." in said
    assert "300 rows are few" in said


def test_a_stretch_written_twice_is_said_and_a_period_is_none(tmp_path, capsys):
    rows = np.random.default_rng(1).normal(size=(900, 2)).round(2)
    assert look(rows).copied is None
    rows[600:800] = rows[100:300]
    assert look(rows).copied == (200, 600, 100)
    assert copied_stretch(np.tile(rows[:100], (5, 1))) is None  # periodic
    assert copied_stretch(np.zeros((500, 2))) is None
    assert copied_stretch(np.round(np.random.default_rng(2).random((900, 1)))) is None  # a switch
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b", comments="")
    with pytest.raises(SystemExit):
        main(["look", str(tmp_path / "rows.csv")])
    assert "200 rows from row 600 on are those from row 100 on again" in " ".join(capsys.readouterr().out.split())

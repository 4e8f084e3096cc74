"""Many machines on one page: every alarm drawn and linked, incidents over machines, nothing unescaped."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tisat.batch import MachineAlarms
from tisat.batch.likeness import likeness
from tisat.cli import main
from tisat.cli.machines import fleet_words
from tisat.datasets.synthetic import make_plant
from tisat.plotting.fleet_page import fleet_page, incidents_of
from tisat.series import Series


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three machines of which two break together, and a model for each."""
    home = tmp_path_factory.mktemp("fleet")
    for name in ("train", "test"):
        (home / name).mkdir()
    rng = np.random.default_rng(0)
    for number in range(3):
        for name, rows in (("train", 1500), ("test", 600)):
            values = 50.0 * number + rng.normal(size=(rows, 2))
            if name == "test" and number < 2:
                values[400:420] += 30.0
            lines = [
                f"2026-01-0{1 + i // 1440}T{i % 1440 // 60:02d}:{i % 60:02d}:00,{a:.3f},{b:.3f}"
                for i, (a, b) in enumerate(values)
            ]
            (home / name / f"<m{number}>.csv").write_text("\n".join(["time,flow,level", *lines]))
    return home


def typed(*words):
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    return done.value.code


def test_one_page_of_a_folder(folder, capsys):
    assert (
        typed(
            "fit",
            folder / "train",
            "--each",
            "--detector",
            "mahalanobis",
            "--fleet-budget",
            "1/day",
            "--out",
            folder / "models",
        )
        == 0
    )
    assert "each machine gets one false alarm in 3 d on average" in capsys.readouterr().out
    page = folder / "fleet.html"
    asked = ["alarm", folder / "test", "--model", folder / "models", "--html", page]
    assert typed(*asked) == 0
    text = page.read_text()
    for number in range(2):
        assert f"id='m{number}'" in text
        assert f"href='#m{number}'" in text
    assert set(re.findall(r"href='#(m\d+)'", text)) <= set(re.findall(r"id='(m\d+)'", text))
    assert "Incidents over machines" in text
    assert "each machine gets one false alarm in 3 d" in text
    assert "1 machine needs no attention" in capsys.readouterr().out
    assert "&lt;m1&gt;" in text
    assert "<m1>" not in text
    assert "<script" not in text
    assert len(text) < 200_000
    drawn = text.replace(
        "</svg><svg", ""
    )  # pictures scroll on a narrow screen: each in a figure, without a width of its own style
    assert drawn.count("<figure><svg") == drawn.count("<svg") > 1
    assert not re.search(r"<svg[^>]*style=", drawn)
    assert re.search(r"<td class='left short'>2026-01-01 06:4\d", text)  # a time is not broken over lines
    assert typed(*asked) == 1
    assert "--overwrite" in capsys.readouterr().err


def test_pooling_unlike_machines_is_said(folder, capsys, tmp_path):
    assert (
        typed(
            "fit",
            folder / "train",
            "--detector",
            "mahalanobis",
            "--budget",
            "1/200 rows",
            "--out",
            tmp_path / "m.tisat",
        )
        == 0
    )
    said = capsys.readouterr().err
    assert "These machines are unlike" in said
    assert "--each" in said
    assert "3 machines together may raise one in 67 rows" in said


def test_machines_alike_are_not_called_unlike():
    whole = make_plant(n_train=12_000, n_channels=4).train
    parts = [replace(whole[i * 2000 : (i + 1) * 2000], name=f"part {i}") for i in range(6)]
    assert not likeness(parts).unlike
    others = [replace(make_plant(n_train=2000, n_channels=4, random_state=i).train, name=str(i)) for i in range(6)]
    assert likeness(others).relation > likeness(parts).relation
    assert likeness([parts[0]]) is None
    assert likeness([Series(np.zeros((5, 1))), Series(np.zeros((5, 1)))]) is None


def test_a_budget_in_words():
    assert "one in 28.8 min" in fleet_words("1/day", 50)
    assert (
        fleet_words("1/1000 rows over 10 machines", 10)
        == "Budget 1/1000 rows over 10 machines: each machine gets one false alarm in 10,000 rows on average."
    )


def test_the_count_of_quiet_machines_reads_well():
    assert "2 machines had no alarm and are not drawn." in fleet_page([MachineAlarms("a"), MachineAlarms("b")])
    loud = fleet_page([MachineAlarms("a", trouble="no rows"), MachineAlarms("b", trouble="no rows")])
    assert "0 machines" not in loud


def test_alarms_far_apart_are_no_incident():
    from tisat.batch.alarming import MachineAlarms as Outcome

    def machine(name, *places):
        from types import SimpleNamespace

        alarms = tuple(
            SimpleNamespace(channels={}, kind="", raised=one, onset=one - before, cleared=one + 50, state="back")
            for one, before in places
        )
        return Outcome(name, alarms, places=tuple((float(one), one + 50.0) for one, _ in places), last=1000.0)

    assert incidents_of([machine("a", (100, 1)), machine("b", (500, 1))]) == []
    assert incidents_of([machine("a", (100, 1), (110, 1))]) == []
    assert incidents_of([machine("a", (100, 1)), machine("b", (120, 1))]) == []  # it was one within 30 rows
    (found,) = incidents_of([machine("a", (100, 2)), machine("b", (106, 1)), machine("c", (115, 46))])
    assert found.machines == ("a", "b", "c")  # the last was raised late and began with the others
    assert len(incidents_of([machine("a", (100, 1)), machine("b", (101, 30))])) == 1  # raised together
    hours = [machine("deploy", (100, 2)), machine("a", (122, 2)), machine("b", (124, 27)), machine("c", (126, 26))]
    (found,) = incidents_of(hours)  # the onsets of b and c are those of the deploy
    assert found.machines == ("a", "b", "c")
    over = machine("a", (100, 1))
    over = replace(over, places=((100.0, 102.0),))
    assert incidents_of([over, machine("b", (105, 1))]) == []  # it was over before the other began


def test_a_page_without_alarms_and_with_trouble():
    text = fleet_page([MachineAlarms("a", rows=10, judged=10), MachineAlarms("b", trouble="no <rows>")])
    assert "No alarm on 2 machines." in text
    assert "no &lt;rows&gt;" in text

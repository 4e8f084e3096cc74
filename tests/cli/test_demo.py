import csv
import json
import re

import numpy as np
import pytest

import tisat
from tisat.cli import main
from tisat.datasets.synthetic import make_plant


def test_demo_does_the_main_job(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--out", str(tmp_path / "demo"), "--detector", "linear-mean", "--json"])
    assert stopped.value.code == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["score"]: row["spd"] for row in found["scores"]}
    floors = [value for name, value in rows.items() if name.startswith("floor")]
    assert len(floors) == 5
    assert rows["linear-mean, plain score"] > max(floors)
    assert found["events"] == 7
    faults = make_plant(n_train=15 * 1440, random_state=3).faults
    assert found["detected"] >= 2
    with (tmp_path / "demo" / "alarms.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(found["alarms"])
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count("<svg") >= 2
    assert not re.search(r'(src|href)="https?:', page), "the page needs no network"
    assert (tmp_path / "demo" / "model.tisat").is_file()
    false = [alarm for alarm in found["alarms"] if not near_a_fault(alarm["raised"], faults)]
    assert found["false_alarms"] == len(false)
    assert found["summary"][0].startswith(f"{found['detected']} of 7 faults found, {len(false)} false alarm")
    for kind in found["missed"]:
        assert f"missed: {kind}" in "\n".join(found["summary"]).lower(), "misses are told apart from delays"
    assert found["detected"] + len(found["missed"]) == 7
    assert found["summary"][0] in page
    assert all(alarm["kind"] and alarm["reasons"] for alarm in found["alarms"])


def near_a_fault(instant, faults):
    return any(fault.start <= instant <= max(fault.stop - 1, fault.start + 100) for fault in faults)


def test_a_timeline_names_every_mark_once():
    from tisat.report.timeline import FALSE, FOUND, MISSED, Mark, draw_timeline

    alarms = tisat.raise_alarms(np.arange(50.0), nominal=np.arange(50.0) % 7, false_alarms=0.1)
    marks = [Mark(5, 8, "spike", FOUND), Mark(7, 9, "stuck (missed)", MISSED), Mark(49, 50, "restless", FALSE)]
    figure = draw_timeline(marks, alarms, tisat.Series(np.zeros((50, 2))), channels=[1])
    texts = figure.axes[0].texts
    assert [(text.get_text(), text.get_color()) for text in texts] == [(mark.name, mark.colour) for mark in marks]

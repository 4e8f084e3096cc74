import csv
import json
import re

import pytest

from tisat.cli import main
from tisat.datasets.synthetic import make_plant


def test_demo_does_the_main_job(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--out", str(tmp_path / "demo"), "--detector", "linear-mean", "--json"])
    assert stopped.value.code == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["score"]: row["spd"] for row in found["scores"]}
    baselines = [value for name, value in rows.items() if name.startswith("trivial baseline")]
    assert len(baselines) == 5
    assert rows["linear-mean, plain score"] > max(baselines)
    assert found["events"] == 14
    faults = make_plant(n_train=15 * 1440, n_test=28 * 1440, n_faults=14, random_state=3).faults
    assert found["detected"] >= 2
    with (tmp_path / "demo" / "alarms.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(found["alarms"])
    page = (tmp_path / "demo" / "report.html").read_text()
    order = ["class='answer'", "class='keys'", "data-group='0'", "class='terms'", "What to do next"]
    assert sorted(order, key=page.index) == order, (
        "the answer, its figures, the timeline, what scores are worth, what next"
    )
    (timeline, curve) = json.loads(re.search(r"id='data'>(.*?)</script>", page)[1])
    lanes = [mark["lane"] for mark in timeline["marks"]]
    assert lanes.count("faults") == 14
    assert lanes.count("false alarms") == found["false_alarms"]
    assert [mark["kind"] for mark in timeline["marks"]].count("missed") == len(found["missed"])
    assert all(mark["name"] for mark in timeline["marks"])
    assert len([panel for panel in timeline["panels"] if panel["band"]]) == 8, "every channel with its band"
    assert curve["axis"]["reverse"]
    assert not re.search(r"(src|href)=['\"]https?:", page), "the page needs no network"
    assert (tmp_path / "demo" / "model.tisat").is_file()
    false = [alarm for alarm in found["alarms"] if not near_a_fault(alarm["raised"], faults)]
    assert found["false_alarms"] == len(false)
    assert found["summary"][0].startswith(f"{found['detected']} of 14 faults found, {len(false)} false alarm")
    for kind in found["missed"]:
        assert f"missed: {kind}" in "\n".join(found["summary"]).lower(), "misses are told apart from delays"
    assert found["detected"] + len(found["missed"]) == 14
    assert found["summary"][0] in page
    assert all(alarm["kind"] and alarm["reasons"] for alarm in found["alarms"])


def near_a_fault(time_step, faults):
    return any(fault.start <= time_step <= max(fault.stop - 1, fault.start + 100) for fault in faults)

import csv
import json
import re

import pytest

from tisat.cli import main


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
    assert found["detected"] >= 2
    with (tmp_path / "demo" / "alarms.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(found["alarms"])
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count("<svg") >= 2
    assert not re.search(r'(src|href)="https?:', page), "the page needs no network"
    assert (tmp_path / "demo" / "model.tisat").is_file()

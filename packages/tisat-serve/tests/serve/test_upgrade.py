"""A folder that an earlier version wrote opens, with its labels, rules and thresholds, and continues to the bit.

The folder was written by the code of commit de5a2b0 (tables of version 3, one package): a model, 240 rows of two entities, a label, a rule,
a threshold that was taken, killed without a save; ``after.json`` has what that code made of the 160 rows that follow.
"""

import json
import tarfile
from pathlib import Path

import pytest

from serve.conftest import START, plant_rows
from tisat.watch import Watch
from tisat_serve.engine import Engine
from tisat_serve.feedback import People
from tisat_serve.group import Group
from tisat_serve.store import VERSION, Store
from tisat_serve.structs import Row
from tisat_serve.views import View

FOLDER = Path(__file__).parent / "data" / "folder-de5a2b0.tar.xz"


@pytest.fixture
def earlier(tmp_path):
    with tarfile.open(FOLDER) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "earlier"


def test_a_folder_of_an_earlier_version_opens_and_continues_to_the_bit(earlier):
    with Store(earlier / "data") as store:
        assert store.read("PRAGMA user_version") == [(VERSION,)]
        engine = Engine(store, [Group("main", Watch.load(earlier / "plant.tisat"))], clock=lambda: float(START))
        view = View(engine)
        assert engine.replayed > 0, "it was killed"
        assert [(one.word, one.author, one.reason) for one in view.labels()] == [("false", "ann", "of before")]
        assert [(one.pattern, one.suppress) for one in view.rules()] == [("e1", "*:down")], "it held a fall back"
        assert len(view.pauses()) == 1
        taken = view.proposals()[0]
        assert (taken.state, view.calibrated("e1")) == ("taken", taken.threshold_after)
        after = json.loads((earlier / "after.json").read_text())
        rows = {"e0": plant_rows(400, seed=0, fault=320), "e1": plant_rows(400, seed=1, fault=60)}
        found = []
        for k in range(240, 400):
            outcomes = engine.ingest([Row(name, rows[name][k].tolist(), START + 60 * k) for name in rows])
            found += [[o.entity, o.status, o.score, o.statistic, o.threshold, o.active, o.alarm] for o in outcomes]
        assert found == after["outcomes"]
        assert [one.id for one in view.alarms(sort="statistic")] == after["alarms"]
        assert view.ledger().fleet.false == 1
        again = People(engine, view).revert(taken.id, author="bob")
        assert again.state == "reverted"
        engine.close()

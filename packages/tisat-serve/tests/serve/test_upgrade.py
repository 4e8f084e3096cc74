"""A folder that an earlier version wrote opens, with its labels, rules and thresholds, and continues to the bit.

The folder was written by the code of commit de5a2b0 (tables of version 3, one package): a model, 240 rows of two entities, a label, a rule,
a threshold that was taken, killed without a save; ``after.json`` has what that code made of the 160 rows that follow.
"""

import json
import tarfile
from pathlib import Path

import pytest

from serve.conftest import START, plant_rows
from tisat.errors import ArtefactError, ConflictError, InputError
from tisat.watch import Watch
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import Group
from tisat_serve.feedback.operator import OperatorFeedback
from tisat_serve.folder.upgrade import upgrade
from tisat_serve.store import VERSION, Store
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView

DATA = Path(__file__).parent / "data"
FOLDER = DATA / "folder-de5a2b0.tar.xz"
UNREADABLE = DATA / "folder-b5587b7.tar.xz"  # by tisat 0.1: tables of version 1, a model that cannot be read any more


@pytest.fixture
def earlier(tmp_path):
    with tarfile.open(FOLDER) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "earlier"


def test_a_folder_of_an_earlier_version_opens_and_continues_to_the_bit(earlier):
    with Store(earlier / "data") as store:
        assert store.read("PRAGMA user_version") == [(VERSION,)]
        engine = Engine(store, [Group("main", Watch.load(earlier / "plant.tisat"))], clock=lambda: float(START))
        view = FleetView(engine)
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
        again = OperatorFeedback(engine, view).revert(taken.id, author="bob")
        assert again.state == "reverted"
        engine.close()


@pytest.fixture
def unreadable(tmp_path):
    with tarfile.open(UNREADABLE) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "earlier"


def test_a_folder_with_a_model_that_cannot_be_read_is_taken_along(unreadable):
    """380 rows of e0 and e1, a label, a threshold of e1's own, an alarm that is on; killed."""
    model, before = unreadable / "plant.tisat", json.loads((unreadable / "expected.json").read_text())
    with pytest.raises(ArtefactError, match="fit the model again"):
        Watch.load(model)
    said = upgrade(unreadable / "data", model)
    assert any("fitted again" in sentence for sentence in said)
    assert (unreadable / "plant.tisat.before").is_file()
    watch = Watch.load(model)
    assert watch.calibration.target == 1000.0
    with Store(unreadable / "data") as store:
        engine = Engine(store, [Group("main", watch)], clock=lambda: float(START))
        view = FleetView(engine)
        assert [(one.word, one.author, one.reason) for one in view.labels()] == [("false", "ann", "of before")]
        assert set(before["alarms"]) <= {one.id for one in view.alarms()}
        assert view.ledger().fleet.false == 1
        assert view.ledger().fleet.rows == before["rows"]
        taken = view.proposals()[0]
        assert taken.state == "taken"
        times = taken.threshold_after / taken.threshold_before
        assert view.calibrated("e1") == pytest.approx(times * view.calibrated("e0"))
        on = [one.entity for one in view.alarms(active=True, sort="statistic")]
        assert on == [one.name for one in view.entities(status="alarm")], "the book and the monitors say the same"
        rows = {"e0": plant_rows(700, seed=0), "e1": plant_rows(700, seed=1, fault=360)}
        found = []
        for k in range(380, 500):
            found += engine.ingest([Row(name, rows[name][k].tolist(), START + 60 * k) for name in rows])
        assert {one.status for one in found} == {"ok"}, "no warming up: it begins with the last rows"
        assert not view.alarms(active=True)
        engine.close()


def test_a_folder_that_needs_nothing_is_left_alone_and_wrong_groups_are_named(earlier):
    model = earlier / "plant.tisat"
    (said,) = upgrade(earlier / "data", model)
    assert "opens with its model as it is" in said
    assert not (earlier / "plant.tisat.before").exists()
    with pytest.raises(InputError, match="The group must be one of main"):
        upgrade(earlier / "data", model, group="other")


def test_a_folder_moves_on_to_another_model_of_the_same_channels(earlier, model):
    said = upgrade(earlier / "data", model)
    assert any("as they were" in sentence for sentence in said)
    with Store(earlier / "data") as store:
        engine = Engine(store, [Group("main", Watch.load(model))], clock=lambda: float(START))
        assert len(engine.cells) == 2
        with pytest.raises(ConflictError):
            OperatorFeedback(engine, FleetView(engine)).revert(FleetView(engine).proposals()[0].id, author="bob")

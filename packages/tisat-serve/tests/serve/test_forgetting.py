"""Entities and old lines that are removed, with everything about them and nothing else."""

import pytest
from typer.testing import CliRunner

from serve.conftest import START, local_client, plant_rows, requests_of, result_lines
from tisat.errors import NotFoundError
from tisat_serve.api.app import make_app
from tisat_serve.api.bodies import rows_of
from tisat_serve.cli.serve import app
from tisat_serve.feedback.operator import OperatorFeedback
from tisat_serve.folder.forgetting import forget, forget_in, forget_old
from tisat_serve.security import Tokens
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView

TABLES = ("alarms", "calibrations", "proposals", "owners")


def left(store, name):
    """How many rows of the store speak of an entity."""
    return sum(store.read(f"SELECT count(*) FROM {table} WHERE entity = ?", (name,))[0][0] for table in TABLES) + len(
        store.read("SELECT 1 FROM entities WHERE name = ?", (name,))
    )


@pytest.mark.parametrize("killed", [False, True])
def test_an_entity_is_forgotten_with_everything_and_may_come_back(engine_in, tmp_path, killed):
    engine = engine_in(tmp_path / "a", routes=("hook",))
    plain = engine_in(tmp_path / "b")
    people = OperatorFeedback(engine, FleetView(engine))
    for rows in requests_of():
        engine.ingest(rows)
        plain.ingest([row for row in rows if row.entity != "e1"])
    alarm = people.view.alarms(entity="e1", sort="statistic")[0]
    people.label(alarm.id, "false", author="ann")
    people.decide(people.propose(entity="e1", author="ann").id, take=True, author="ann")
    assert forget(engine, "e1", author="ann", reason="scrapped") == 200
    assert left(engine.store, "e1") == 0
    assert not engine.store.read("SELECT 1 FROM labels") + engine.store.read("SELECT 1 FROM outbox WHERE alarm = ?", (alarm.id,))  # fmt: skip
    assert (people.view.journal()[0]["what"], people.view.journal()[0]["reason"]) == ("forget e1", "scrapped")
    with pytest.raises(NotFoundError, match="must know the entity"):
        forget(engine, "e1", author="ann")
    if not killed:
        engine.close()
    engine.store.close()
    again = engine_in(tmp_path / "a")
    assert set(again.cells) == {"e0", "e2", "e3"}
    assert result_lines(again) == result_lines(plain), "the others are as if it had never been"
    late = START + 60 * 500
    outcomes = [
        o for k, row in enumerate(plant_rows(3).tolist()) for o in again.ingest([Row("e1", row, late + 60 * k)])
    ]
    assert [one.status for one in outcomes] == ["warming up"] * 3
    assert FleetView(again).entity("e1").rows == 3


def test_by_the_api_by_the_page_and_in_a_folder(service, tmp_path):
    from tisat_serve.console import routes

    for rows in requests_of(count=20):
        service.ingest(rows)
    service.ingest([Row("a/b c", [60.0, 5.0, 1.0], START)])
    client = local_client(make_app(service, Tokens(service.engine.store), more=routes(service)))
    page = client.get("/entity/a/b c").text
    assert "/api/v1/entities/a%2Fb%20c/forget" in page
    done = client.post("/api/v1/entities/a%2Fb%20c/forget", json={"author": "ann"})
    assert done.json() == {"entity": "a/b c", "rows": 1}
    assert client.get("/entity/a/b c").status_code == 404
    assert client.post("/api/v1/entities/nobody/forget", json={}).status_code == 404
    service.stop()
    folder = service.engine.store.folder
    service.engine.store.close()
    said = CliRunner().invoke(app, ["forget", "e2", "--data", str(folder)])
    assert said.output.startswith("e2\t20 rows of history forgotten"), said.exception
    with pytest.raises(NotFoundError):
        forget_in(folder, "e2", now=0.0, author="ann")


def test_a_name_with_spaces_round_it_is_no_other_entity(service):
    kinds = {"application/json": b'[{"entity":" o1 ","values":[60,5,1]}]', "text/csv": b"entity,temp,flow,power\n o1 ,60,5,1\n"}  # fmt: skip
    for kind, body in kinds.items():
        assert [row.entity for row in rows_of(body, kind, most=9)[0]] == ["o1"]
    outcomes = service.ingest([Row("o1", [60.0, 5.0, 1.0], START), Row("o1 ", [60.0, 5.0, 1.0], START + 60), Row("  ", [60.0, 5.0, 1.0], START)])  # fmt: skip
    assert [one.status for one in outcomes] == ["warming up", "warming up", "refused"]
    assert set(service.engine.cells) == {"o1"}


def test_alarms_that_are_over_and_the_journal_are_kept_as_long_as_told(engine_in, tmp_path):
    now = [float(START)]
    engine = engine_in(tmp_path, clock=lambda: now[0])
    people = OperatorFeedback(engine, FleetView(engine))
    for rows in requests_of(count=300):
        engine.ingest(rows)
    over = [one.id for one in people.view.alarms(active=False)]
    on = [one.id for one in people.view.alarms(active=True)]
    assert over
    people.label(over[0], "true", author="ann")
    engine.limits.keep_alarms, engine.limits.keep_journal = 100.0, 50.0
    now[0] += 60.0
    forget_old(engine)
    assert (len(people.view.labels()), people.view.journal()) == (1, [])
    now[0] += 60.0
    forget_old(engine)
    assert [one.id for one in people.view.alarms()] == on
    assert not people.view.labels()

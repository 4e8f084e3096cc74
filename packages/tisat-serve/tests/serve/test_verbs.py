"""``tisat serve`` and its verbs, in this process: what is typed becomes what runs, and nothing listens."""

import signal
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from serve.conftest import START, requests_of, result_lines
from tisat.cli import app
from tisat_serve import demo
from tisat_serve import runner as running
from tisat_serve.folder import backup as upkeep
from tisat_serve.store import Store


def tisat(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    return SimpleNamespace(code=done.exit_code, out=done.output, error=str(done.exception or ""))


@pytest.fixture
def listening(monkeypatch):
    """Instead of listening: what would have."""
    seen = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def listen(made, *, ready, **how):
        seen.append(how)
        ready("http://here")

    monkeypatch.setattr(running, "listen", listen)
    return seen


WHERE = ("--model", "m.tisat", "--data", "d")


@pytest.mark.parametrize(
    ("words", "must"),
    [
        (("--lateness", "1 s"), "must be given --model and --data"),
        ((*WHERE, "--query", "a=b"), "must come with --prometheus"),
        ((*WHERE, "--prometheus", "http://x"), "must be channel=query"),
        ((*WHERE, "--prometheus", "http://x", "--query", "cpu"), "must be channel=query"),
        ((*WHERE, "--source", "pigeon"), "--source must be kafka or nats"),
        ((*WHERE, "--source", ""), "--source must be kafka or nats"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, words, must):
    model = () if "given" in must else ("--model", tmp_path / "m.tisat", "--data", tmp_path / "w")
    assert must in tisat("serve", *model, *words).error


@pytest.mark.parametrize("option", ["--budget", "--lateness", "--silent-after"])
def test_an_option_that_is_empty_is_refused_not_forgotten(model, tmp_path, option):
    """A variable that is not set in a unit file: ``--budget "$BUDGET"``."""
    done = tisat("serve", "--model", model, "--data", tmp_path / "w", option, "", "--dry-run", "--entities", 1)
    assert "Got '' instead" in done.error


def test_options_become_a_service_that_listens(model, tmp_path, listening, monkeypatch):
    monkeypatch.setenv("TISAT_WEBHOOK_SECRET", "hush")
    started = []
    original = running.running

    def look(folder, groups, **how):
        started.append((folder, groups[0], [part.name for part in how["parts"]], how["routes"]))
        return original(folder, groups, **{**how, "parts": (), "routes": ()})

    monkeypatch.setattr(running, "running", look)
    done = tisat("serve", "--model", model, "--data", tmp_path / "w", "--silent-after", "1 day", "--lateness", "2 min", "--port", 0, "--host", "127.0.0.1",
                 "--prometheus", "http://127.0.0.1:1", "--query", " temp = up ", "--webhook", "http://127.0.0.1:1", "--alertmanager", "http://127.0.0.1:1",
                 "--source", "nats", "--topic", "rows", "--shard", "1/2")  # fmt: skip
    assert (done.code, done.error) == (0, "")
    assert "listening on http://here (0 entities)" in done.out
    ((folder, group, parts, routes),) = started
    assert (folder, group.silent_after, group.lateness) == (tmp_path / "w", 86400.0, 120.0)
    assert {"alertmanager", "prometheus", "nats"} <= set(parts)
    assert routes == ("webhook",)
    assert listening[0]["port"] == 0


def test_a_folder_of_models_is_a_group_for_each_machine(model, tmp_path, listening, monkeypatch):
    folder, started = tmp_path / "models", []
    folder.mkdir()
    assert "must hold models" in tisat("serve", "--model", folder, "--data", tmp_path / "w").error
    for name in ("pump-1", "pump[2]"):
        (folder / f"{name}.tisat").write_bytes(model.read_bytes())
    (folder / "fitted.jsonl").write_text("")
    original = running.running

    def look(where, groups, **how):
        started.extend(groups)
        return original(where, groups, **how)

    monkeypatch.setattr(running, "running", look)
    done = tisat("serve", "--model", folder, "--data", tmp_path / "w", "--lateness", "2 min", "--port", 0)
    assert (done.code, done.error) == (0, "")
    assert [one.name for one in started] == ["pump-1", "pump[2]"]
    assert all(one.owns(one.name) and not one.owns("pump2") and one.lateness == 120.0 for one in started)
    file = tmp_path / "serve.toml"
    file.write_text(f"data = 'v'\n[[group]]\nname = 'all'\nmodel = {str(folder)!r}\n")
    assert "pump-1: 1/1000 rows" in tisat("serve", "--config", file).out


def test_many_groups_are_summed_up_and_entities_without_one_are_said(model, tmp_path, listening, engine_in):
    """36 models were 36 lines, and a folder of states with another model an empty console without a word."""
    folder = tmp_path / "models"
    folder.mkdir()
    for number in range(12):
        (folder / f"pump-{number}.tisat").write_bytes(model.read_bytes())
    engine = engine_in(tmp_path / "w")
    engine.ingest(requests_of()[0])
    engine.store.close()
    done = tisat("serve", "--model", folder, "--data", tmp_path / "w", "--port", 0)
    assert "12 groups: 1/1000 rows, thresholds" in done.out
    assert "pump-3:" not in done.out
    assert "4 kept entities are not watched" in done.out
    assert "such as 'main' of 'e" in done.out


def test_a_file_is_a_service_too_and_rows_that_were_not_saved_are_judged_again(model, tmp_path, listening, engine_in):
    engine = engine_in(tmp_path / "w", save_rows=1000)
    engine.ingest(requests_of()[0])
    engine.store.close()  # as if it was killed: the rows are in the log
    path = tmp_path / "serve.toml"
    path.write_text(f'data = "w"\n[[group]]\nname = "main"\nmodel = "{model}"\nbudget = "1/500 rows"\n')
    done = tisat("serve", "--config", path)
    assert (done.code, done.error) == (0, "")
    assert "100 rows of the log scored again" in done.out
    assert "main: in force is 1/1000 rows" in done.out, "a budget changes by a proposal"
    refused = tisat("serve", "--config", path, "--host", "0.0.0.0")
    assert "must listen on this machine alone" in refused.error


def test_kafka_is_told_what_happens_without_a_shelf(model, tmp_path, listening, monkeypatch):
    made = []
    monkeypatch.setattr("tisat_serve.config.parts_of", lambda config: made.append(config) or ([], ()))
    words = ("serve", "--model", model, "--data", tmp_path / "w", "--source", "kafka", "--topic", "rows")
    assert "without --handover DIR" in tisat(*words).out
    assert "without --handover" not in tisat(*words, "--handover", tmp_path, "--alarms-topic", "alarms").out
    assert [one.kind for one in (*made[1].source, *made[1].sink)] == ["kafka", "kafka"]
    assert made[1].source[0].handover == str(tmp_path)


def test_a_dry_run_says_what_a_fleet_needs_and_starts_nothing(model, tmp_path, listening):
    done = tisat("serve", "--model", model, "--data", tmp_path / "w", "--dry-run", "--entities", 3)
    assert (done.code, done.error) == (0, "")
    assert "group main: 3 entities x 3 channels, a row every 60 s each" in done.out
    assert "rows/s     0.1 needed" in done.out
    assert not listening
    assert not (tmp_path / "w").exists()


def test_a_dry_run_counts_one_machine_for_each_model_of_a_folder(model, tmp_path, listening):
    (tmp_path / "models").mkdir()
    for name in ("press 1", "press [2]"):
        (tmp_path / "models" / f"{name}.tisat").write_bytes(model.read_bytes())
    done = tisat("serve", "--model", tmp_path / "models", "--data", tmp_path / "w", "--dry-run")
    assert "group press 1: 1 entity x 3 channels" in done.out
    assert "group press [2]: 1 entity x 3 channels" in done.out
    assert not listening


def test_needs_grow_with_the_fleet(watch):
    small, large = (upkeep.estimate(watch, entities=count, days=2.0) for count in (1, 4))
    assert large["rows_per_second_needed"] == 4 * small["rows_per_second_needed"] == 4 / 60
    assert large["disk_bytes"] > 2 * small["disk_bytes"] > 0


def test_the_demo_needs_no_files(listening, monkeypatch, watch):
    monkeypatch.setattr(demo, "demo_watch", lambda: watch)
    monkeypatch.setattr(demo, "DemoSource", lambda: SimpleNamespace(name="demo", error="", start=lambda _: None, stop=lambda: None))  # fmt: skip
    done = tisat("serve", "--demo", "--port", 0)
    assert (done.code, done.error) == (0, "")
    assert "30 pumps" in done.out
    assert "listening on http://here" in done.out


def test_a_token_is_shown_once_and_can_be_ended(tmp_path):
    Store(tmp_path / "w").close()
    made = tisat("serve", "token", "--data", tmp_path / "w", "--name", "anna", "--scope", "read")
    assert "tisat_" in made.out
    assert "not shown again" in made.out
    assert "from now on every request needs a token, those of this machine too" in made.out
    assert "--scope read for a scrape of /metrics" in made.out
    other = tisat("serve", "token", "--data", tmp_path / "w", "--name", "otto", "--scope", "ingest")
    assert "every request" not in other.out
    tisat("serve", "token", "--data", tmp_path / "w", "--name", "otto", "--end")
    again = tisat("serve", "token", "--data", tmp_path / "w", "--name", "anna", "--scope", "read")
    assert "in use" in again.error
    assert "is ended" in tisat("serve", "token", "--data", tmp_path / "w", "--name", "anna", "--end").out
    with Store(tmp_path / "w", beside=True) as store:
        found = store.read("SELECT name, scopes, ended IS NULL FROM tokens")
    assert found == [("anna", "read", 0), ("otto", "ingest", 0)]


def test_backup_restore_export_and_move_by_name(engine_in, tmp_path):
    engine = engine_in(tmp_path / "one")
    for rows in requests_of(count=130):
        engine.ingest(rows)
    before = result_lines(engine)
    engine.close()
    engine.store.close()
    assert "bytes written to" in tisat("serve", "backup", "--data", tmp_path / "one", "--out", tmp_path / "b.db").out
    assert "is in" in tisat("serve", "restore", "--data", tmp_path / "two", tmp_path / "b.db").out
    other = engine_in(tmp_path / "two")
    assert result_lines(other) == before
    other.close()
    other.store.close()
    whole = tisat("serve", "export", "--data", tmp_path / "two", "--out", tmp_path / "all").out
    assert "e1\t130 rows" in whole
    normal = tisat("serve", "export", "--data", tmp_path / "two", "--out", tmp_path / "normal", "--normal").out
    rows = {line.split("\t")[0]: int(line.split("\t")[1].split()[0]) for line in normal.splitlines()}
    assert rows["e1"] < 130, "rows of its alarm are left out"
    assert rows["e0"] == 130
    part = dict(upkeep.export(tmp_path / "two", tmp_path / "part", start=START + 60.0, stop=START + 180.0))
    assert set(part.values()) == {2}
    assert upkeep.export(tmp_path / "two", tmp_path / "none", start=START + 1e7) == []
    third = engine_in(tmp_path / "three")
    third.close()
    third.store.close()
    moved = tisat("serve", "move", "e1", "e2", "--from", tmp_path / "two", "--to", tmp_path / "three")
    assert "e1\t130 rows of history moved" in moved.out, moved.error
    there = dict(upkeep.export(tmp_path / "three", tmp_path / "there"))
    assert there == {"e1": 130, "e2": 130}


def test_a_folder_or_a_backup_that_is_none_is_refused(tmp_path):
    assert "must hold a store" in tisat("serve", "backup", "--data", tmp_path, "--out", tmp_path / "b.db").error
    assert "must hold a store" in tisat("serve", "export", "--data", tmp_path, "--out", tmp_path / "out").error
    assert "must be readable" in tisat("serve", "restore", "--data", tmp_path / "x", tmp_path / "none.db").error
    (tmp_path / "empty.db").write_bytes(b"")
    assert "Got version 0" in tisat("serve", "restore", "--data", tmp_path / "x", tmp_path / "empty.db").error


def test_windows_that_are_not_learned_from_are_labelled_in_what_is_exported(engine_in, tmp_path):
    from tisat_serve.service import Service

    engine = engine_in(tmp_path / "one")
    for rows in requests_of(entities=2, count=50, faulty=()):
        engine.ingest(rows)
    Service(engine).feedback.pause(
        "e1", start=float(START + 600), stop=float(START + 1200), author="anna", reason="work"
    )
    engine.close()
    done = dict(upkeep.export(tmp_path / "one", tmp_path / "out", normal=True))
    assert done == {"e0": 50, "e1": 40}


def test_a_token_without_a_scope_is_none(tmp_path):
    """It had every right without a word."""
    (tmp_path / "w").mkdir()
    done = tisat("serve", "token", "--data", tmp_path / "w", "--name", "desk")
    assert done.code == 1
    assert "must be among read, ingest, label, admin" in done.error


def test_a_dry_run_refuses_what_the_service_would(model, tmp_path):
    words = ("serve", "--model", model, "--data", tmp_path / "w", "--host", "0.0.0.0", "--dry-run")
    assert "Without a token the service must listen on this machine alone" in tisat(*words).error
    assert not (tmp_path / "w").exists()
    (tmp_path / "w").mkdir()
    assert tisat("serve", "token", "--data", tmp_path / "w", "--name", "desk", "--scope", "admin").code == 0
    assert tisat(*words).code == 0


def test_a_budget_for_each_machine_is_shared_by_what_the_reader_can_type(model, tmp_path):
    (tmp_path / "models").mkdir()
    for name in ("a", "b"):
        (tmp_path / "models" / f"{name}.tisat").write_bytes(model.read_bytes())
    words = ("serve", "--model", tmp_path / "models", "--data", tmp_path / "w", "--dry-run", "--budget")
    said = " ".join(tisat(*words, "1/1000 rows").out.split())
    assert "To share it among them: --budget '1/1000 rows over 2 machines'." in said
    done = tisat(*words, "1/500 rows over 2 machines")
    assert "each machine gets one false alarm in" in done.out, done.error
    file = tmp_path / "serve.toml"
    file.write_text("data = 'v'\n[[group]]\nname = 'all'\nmodel = 'models'\n")
    said = " ".join(tisat("serve", "--config", file, "--dry-run").out.split())
    assert "To share it among them: budget = '1/1000 rows over 2 machines' in " in said


def test_a_token_makes_no_folder(tmp_path):
    (tmp_path / "watch").mkdir()
    for name, hint in (("wacth", "Did you mean 'watch'?"), ("other", "make it first: mkdir")):
        done = tisat("serve", "token", "--data", tmp_path / name, "--name", "desk", "--scope", "read")
        assert (done.code, hint in done.error) == (1, True), done.error
        assert not (tmp_path / name).exists()

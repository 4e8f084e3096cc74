"""From a configuration to parts that run, and to another configuration without a restart."""

import signal
import threading
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from serve.conftest import CHANNELS, START, plant_rows
from tisat.errors import InputError
from tisat_serve import demo
from tisat_serve.config import fit_from_history, groups_of, parts_of, read_config, settings_of
from tisat_serve.config_tables import Config, GroupTable, SinkTable
from tisat_serve.reload import apply, on_hangup
from tisat_serve.runner import check_listening, more_routes
from tisat_serve.security import Tokens, end_token, is_loopback, make_token, token_of
from tisat_serve.service import BusyError
from tisat_serve.sources.promql import PromQL


def told(model, tmp_path, *, sources=(), sinks=(), **group):
    tables = [{"name": "main", "model": str(model), **group}]
    text = {"data": str(tmp_path), "group": tables, "source": list(sources), "sink": list(sinks)}
    return msgspec.convert(text, Config)


def test_every_kind_of_source_and_sink_becomes_its_part(model, tmp_path, monkeypatch):
    monkeypatch.setenv("MQTT_PASSWORD", "hush")
    sources = [
        {"kind": "promql", "name": "p", "url": "http://127.0.0.1:1", "queries": {"temp": "t"}, "step": "1 min"},
        {"kind": "samples", "name": "s", "step": "10 s", "lateness": "0"},
        {"kind": "mqtt", "name": "m", "topic": "{entity}", "user": "u", "password_env": "MQTT_PASSWORD"},
        {"kind": "kafka", "name": "k", "brokers": "127.0.0.1:1", "topic": "rows"},
        {"kind": "nats", "name": "n", "brokers": "nats://127.0.0.1:1", "topic": "rows"},
    ]
    sinks = [
        {"kind": "alertmanager", "name": "a", "url": "http://127.0.0.1:1"},
        {"kind": "webhook", "name": "w", "url": "http://127.0.0.1:1", "together": "3 s"},
        {"kind": "mqtt", "name": "o", "tls": True},
        {"kind": "kafka", "name": "q", "brokers": "127.0.0.1:1", "topic": "alarms/now"},
    ]
    parts, routes = parts_of(told(model, tmp_path, sources=sources, sinks=sinks))
    assert routes == ("w", "o", "q"), "these are told through the outbox"
    assert [part.name for part in parts if part.name in "amknps"] == ["a", "p", "s", "m", "k", "n"]
    mqtt = next(part for part in parts if part.name == "m")
    assert (mqtt._broker.password, "hush" in repr(mqtt._broker), mqtt._client) == ("hush", False, None)
    with pytest.raises(InputError, match="kind of a source must be promql"):
        parts_of(told(model, tmp_path, sources=[{"kind": "pigeon"}]))
    monkeypatch.delenv("MQTT_PASSWORD")
    with pytest.raises(InputError, match="password of 'm' must be in the environment as MQTT_PASSWORD"):
        parts_of(told(model, tmp_path, sources=sources[2:3]))


def test_a_sink_of_another_package_is_found_by_its_entry_point(model, tmp_path, monkeypatch):
    class Pager:
        def __init__(self, table):
            self.name, self.number = table.name, table.options["number"]

        def send(self, message):
            """Never asked here."""

    points = [SimpleNamespace(name="pager", load=lambda: Pager)]
    monkeypatch.setattr(
        "tisat_serve.config.entry_points", lambda *, group: points if group == "tisat_serve.sinks" else []
    )
    sink = {"kind": "pager", "name": "night", "options": {"number": "112"}}
    parts, routes = parts_of(told(model, tmp_path, sinks=[sink]))
    assert routes == ("night",)
    assert parts[0].workers[0].sink.number == "112"
    with pytest.raises(InputError, match=r"kafka or pager\. Got 'pigeon'"):
        parts_of(told(model, tmp_path, sinks=[{"kind": "pigeon"}]))


def test_secrets_come_from_the_environment_or_a_file_and_nowhere_else(model, tmp_path, monkeypatch):
    def secret(**how):
        sink = {"kind": "webhook", "name": "w", "url": "http://127.0.0.1:1", **how}
        (outbox,), _ = parts_of(told(model, tmp_path, sinks=[sink]))
        return outbox.workers[0].sink._secret

    (tmp_path / "secret").write_text(" from a file \n")
    monkeypatch.setenv("HOOK", "from outside")
    assert secret(secret_env="HOOK", secret_file=str(tmp_path / "secret")) == "from outside"
    assert secret(secret_file=str(tmp_path / "secret")) == "from a file"
    assert secret() == ""
    for how in ({"secret_env": "NOT_THERE"}, {"secret_file": str(tmp_path / "none")}):
        with pytest.raises(InputError, match="secret of 'w' must be in the"):
            secret(**how)


def test_paths_are_relative_to_the_file_and_names_are_different(tmp_path):
    path = tmp_path / "serve.toml"
    text = """
    data = "watch"
    [listen]
    certificate = "here.pem"
    [[group]]
    name = "main"
    model = "plant.tisat"
    [[source]]
    kind = "kafka"
    handover = "shelf"
    [[sink]]
    kind = "webhook"
    secret_file = "hook.secret"
    token_file = "/run/token"
    ca = "ca.pem"
    """
    path.write_text(text)
    config = read_config(path)
    assert (config.data, config.group[0].model) == (str(tmp_path / "watch"), str(tmp_path / "plant.tisat"))
    sink = config.sink[0]
    assert (sink.secret_file, sink.token_file, sink.ca) == (str(tmp_path / "hook.secret"), "/run/token", str(tmp_path / "ca.pem"))  # fmt: skip
    assert (config.source[0].handover, config.listen.certificate) == (str(tmp_path / "shelf"), str(tmp_path / "here.pem"))  # fmt: skip
    assert [one.name for one in (*config.source, *config.sink)] == ["kafka1", "webhook2"]
    path.write_text(text + 'name = "kafka1"')
    with pytest.raises(InputError, match=r"sources and sinks of .* must have different names"):
        read_config(path)
    path.write_text(text + '[[group]]\nname = "main"\nmodel = "other"')
    with pytest.raises(InputError, match=r"groups of .* must have different names"):
        read_config(path)
    with pytest.raises(InputError, match="File not found"):
        read_config(tmp_path / "none.toml")


def test_a_model_that_is_not_there_is_fitted_on_history_once(tmp_path, monkeypatch):
    from tisat.series import Series

    times = START + 60.0 * np.arange(600)
    asked = []

    def history(self, seconds):
        asked.append(seconds)
        return [Series(plant_rows(600), timestamps=times, channels=CHANNELS)]

    monkeypatch.setattr(PromQL, "history", history)
    source = {"kind": "promql", "name": "p", "url": "http://127.0.0.1:1", "queries": {"temp": "t"}}
    config = told(tmp_path / "new.tisat", tmp_path, sources=[source], history="2 hours", detector="last-value", budget="1/100 rows", silent_after="5 min", refit="7 days")  # fmt: skip
    said = []
    (group,) = groups_of(config, say=said.append)
    assert asked == [7200.0]
    assert said[0].startswith("fitted new.tisat on 2 hours of history")
    assert (group.silent_after, group.refit, group.watch.channels) == (300.0, 604800.0, CHANNELS)
    (again,) = groups_of(config)
    assert again.watch.calibration == group.watch.calibration
    config.group[0].budget = "1/50 rows"
    (other,) = groups_of(config)
    assert other.watch.calibration.threshold < group.watch.calibration.threshold
    assert len(asked) == 1, "it is there now"
    with pytest.raises(InputError, match="must have a model or a source of kind 'promql'"):
        fit_from_history(told("none.tisat", tmp_path), GroupTable("main", "none.tisat"))


def test_another_configuration_is_in_force_at_once_and_a_wrong_one_changes_nothing(
    service, model, tmp_path, monkeypatch
):
    stopped = []
    service.parts.append(SimpleNamespace(name="old", error="", stop=lambda: stopped.append("old")))
    config = told(model, tmp_path, sources=[{"kind": "samples", "name": "s"}], silent_after="7 min", match="pump-*")
    config.group.append(msgspec.structs.replace(config.group[0], name="more", match="fan-*"))
    config.limits.entities, config.peers = 7, ["http://127.0.0.1:1"]
    said = apply(service, config)
    groups = service.engine.groups
    assert (groups["main"].silent_after, groups["main"].match, groups["more"].match) == (420.0, "pump-*", "fan-*")
    assert service.engine.limits.entities == 7
    assert service.settings.peers == ("http://127.0.0.1:1",)
    assert (stopped, [part.name for part in service.parts]) == (["old"], ["s"])
    assert said[-1] == "1 sources and sinks began again"
    assert "group more is new" in said
    assert "group main: match is pump-* now" in said
    assert apply(service, config) == said[-1:], "nothing else has changed"
    config.sink.append(SinkTable(kind="pigeon"))
    before = list(service.parts)
    with pytest.raises(InputError):
        apply(service, config)
    assert service.parts == before


def test_of_two_new_groups_one_is_refused_and_neither_is_there(service, model, tmp_path):
    config = told(model, tmp_path)
    config.group += [msgspec.structs.replace(config.group[0], name=name, match=name) for name in ("good", "other")]
    with service.engine.store.writing() as store:
        store.execute("INSERT INTO meta (key, value) VALUES ('model:other', 'of another model')")
    with pytest.raises(InputError, match="Group 'other' has another model now"):
        apply(service, config)
    assert list(service.engine.groups) == ["main"]


def test_a_hangup_reads_the_file_again(service, tmp_path, model, monkeypatch):
    handlers, said = {}, []
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    tokens = Tokens(service.engine.store)

    def hang_up(path):
        before = set(threading.enumerate())
        on_hangup(service, path, said.append)
        handlers[signal.SIGHUP]()
        for thread in set(threading.enumerate()) - before:
            thread.join(10)

    assert not tokens.in_force()
    token = make_token(service.engine.store, "anna", ["read"], float(START))
    hang_up(None)
    assert said == ["reload: nothing has changed. The service was started without --config."]
    assert (tokens.may(token, "read"), tokens.may(token, "admin"), tokens.may("x", "read")) == ((True, "anna"), (False, "anna"), (False, ""))  # fmt: skip
    path = tmp_path / "serve.toml"
    path.write_text("nonsense")
    hang_up(path)
    assert said[-1].startswith("reload: nothing has changed. The configuration")
    path.write_text(f'data = "."\n[[group]]\nname = "main"\nmodel = "{model}"\nlateness = "3 s"\n')
    hang_up(path)
    assert "reload: group main: lateness is 3.0 now" in said


def test_tokens_that_cannot_be_made_or_ended_are_refused(service):
    store = service.engine.store
    make_token(store, "anna", ["read"], 0.0)
    for name, scopes, must in (
        ("bob", ["root"], "scopes of a token must be among"),
        ("bob", [], "Got none instead"),
        (" ", ["read"], "1 to 100 printable characters"),
        ("anna", ["read"], "'anna' is in use"),
    ):
        with pytest.raises(InputError, match=must):
            make_token(store, name, scopes, 0.0)
    end_token(store, "anna", 1.0)
    with pytest.raises(InputError, match="must be a token of this name in force"):
        end_token(store, "anna", 1.0)
    assert token_of({"authorization": "Bearer abc"}, {}) == "abc"
    assert token_of({}, {}) is None
    assert [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "plant.example")] == [True, True, True, False, False]  # fmt: skip
    with pytest.raises(InputError, match=r"must listen on this machine alone. Got 0.0.0.0"):
        check_listening("0.0.0.0", Tokens(store))
    with pytest.raises(InputError, match=r"Got https://plant.example"):
        check_listening("127.0.0.1", Tokens(store), url="https://plant.example")
    assert len(more_routes(service)) > 5


def test_limits_must_leave_room(model, tmp_path):
    config = told(model, tmp_path)
    config.limits.save_rows = 0
    with pytest.raises(InputError, match="'save_rows' must be at least 1"):
        settings_of(config)
    config = told(model, tmp_path)
    config.listen.url = "watch.example.org"
    with pytest.raises(InputError, match=r"url of \[listen\] must begin with http"):
        settings_of(config)


@pytest.mark.parametrize("kind", demo.KINDS)
def test_a_pump_breaks_and_is_whole_again(kind):
    whole, broken = demo.Pump(3), demo.Pump(3)
    assert all((whole.row(float(t)) == broken.row(float(t))).all() for t in range(5)), "the same pump"
    broken.breaks(kind, 2, 10.0, 20.0)
    found = np.array([broken.row(float(t)) for t in range(5, 40)])
    usual = demo.LEVEL[2] + 4 * demo.SWING[2] * np.array([-1.0, 1.0])
    inside = found[5:25, 2]
    assert (inside > usual[1]).any() or (inside < usual[0]).any(), "it shows"
    assert ((found[:5, 2] > usual[0]) & (found[:5, 2] < usual[1])).all()
    assert ((found[25:, 2] > usual[0]) & (found[25:, 2] < usual[1])).all()
    assert not broken.broken
    assert kind != "stuck" or np.ptp(inside) == 0.0


def test_the_demo_sends_the_past_then_one_row_a_second_with_faults(monkeypatch):
    now = iter(np.arange(0.0, 1e6, 10.0).tolist())
    monkeypatch.setattr(demo, "clocks", SimpleNamespace(time=lambda: 1e9, monotonic=lambda: next(now), sleep=lambda _: None))  # fmt: skip
    source = demo.DemoSource(pumps=2, past=300, pace=1.0)
    sent, busy = [], [True]

    def ingest(rows):
        if len(sent) > 620 and busy:
            busy.clear()
            raise BusyError("busy", 1)
        sent.extend(rows)
        if len(sent) >= 700:
            source._end.set()

    source._end.wait = lambda _: None
    source.start(SimpleNamespace(ingest=ingest))
    source._thread.join(20)
    source.stop()
    times = [row.time for row in sent if row.entity == "pump-01"]
    assert times[:300] == [1e9 - 300 + k for k in range(300)]
    assert (np.diff(times) == 1.0).all()
    assert {row.entity for row in sent} == {"pump-01", "pump-02"}
    assert source.report()["faults"] >= 3
    ended = demo.DemoSource(pumps=1, past=60)
    ended._end.set()
    ended.start(SimpleNamespace(ingest=sent.append))
    ended.stop()
    assert ended.rows == 0


def test_the_demo_s_watch_knows_pumps(monkeypatch):
    monkeypatch.setattr(demo, "TRAINING", 2000)
    watch = demo.demo_watch()
    assert (watch.channels, watch.period, watch.budget) == (demo.CHANNELS, 1.0, demo.BUDGET)


def test_the_rule_of_a_group_and_its_options_reach_the_rule(model, tmp_path):
    path = tmp_path / "serve.toml"

    def group(*lines):
        path.write_text("\n".join([f'data = "."\n[[group]]\nname = "main"\nmodel = "{model}"', *lines]))
        return groups_of(read_config(path))[0]

    plain = group()
    held = group("[group.rule]", "hold = 7")
    assert (held.watch.rule.name, held.watch.rule.hold, plain.watch.rule.hold != 7) == ("excess", 7, True)
    others = {name: value for name, value in plain.watch.rule.params().items() if name != "hold"}
    assert others.items() <= held.watch.rule.params().items(), "as the model has them"
    assert held.models[0].print != plain.models[0].print, "another rule is another model to a folder"
    assert held.watch.calibration.budget == "1/1000 rows"
    assert group('rule = "excess"').models[0].print == plain.models[0].print, "the model's own: nothing changes"
    paper = group('budget = "1/500 rows"', "[group.rule]", 'name = "paper"', 'end = "recovery"')
    assert (paper.watch.rule.name, paper.watch.rule.end, paper.watch.calibration.budget) == ("paper", "recovery", "1/500 rows")  # fmt: skip
    for line, must in (
        ("hodl = 7", "must have options among"),
        ('name = "best"', "must be .*excess"),
        ("hold = 0", "hold"),
    ):
        with pytest.raises(InputError, match=must):
            group("[group.rule]", line)


def test_a_reload_says_what_it_could_not_change(service, model, tmp_path):
    started = told(model, tmp_path)
    renewed = []
    service.renew = lambda *given: renewed.append(given)
    (tmp_path / "cert.pem").touch()
    config = told(model, tmp_path, budget="1/day", rule={"hold": 9})
    config.listen.port, config.listen.host, config.shard = 1, "0.0.0.0", "1/2"
    config.listen.certificate = str(tmp_path / "cert.pem")
    said = "\n".join(apply(service, config, started))
    for sentence in (
        "listen.port is 1 in the file; restart",
        "listen.host is '0.0.0.0' in the file; restart",
        "shard is '1/2' in the file; restart",
        "TLS begins or ends with a restart",
        "group main has another model or rule in the file",
        "the certificate was read again",
    ):
        assert sentence in said
    assert renewed == [(str(tmp_path / "cert.pem"), None)]
    assert service.settings.host == "127.0.0.1"
    said = "\n".join(apply(service, told(model, tmp_path, budget="1/2000 rows"), started))
    assert "group main is at 1/1000 rows, the file says 1/2000 rows; a threshold changes by a proposal" in said
    other = told(model, tmp_path)
    other.group[0].name = "other"
    assert any("group main is not in the file any more" in one for one in apply(service, other, started))
    config.listen.certificate = str(tmp_path / "none.pem")
    with pytest.raises(InputError, match=r"certificate of \[listen\] must be a file"):
        apply(service, config, started)


def test_a_folder_of_models_is_a_group_for_each_machine(model, tmp_path):
    (tmp_path / "models").mkdir()
    for name in ("auth-api", "auth-db", "cart[1]"):
        (tmp_path / "models" / f"{name}.tisat").write_bytes(model.read_bytes())
    table = '[[group]]\nname = "fleet"\nmodel = "models"\nsilent_after = "6h"\n'
    (tmp_path / "serve.toml").write_text(f'data = "watch"\n{table}')
    groups = groups_of(read_config(tmp_path / "serve.toml"))
    assert [(one.name, one.match) for one in groups] == [("auth-api", "auth-api"), ("auth-db", "auth-db"), ("cart[1]", "cart[[]1]")]  # fmt: skip
    assert {one.silent_after for one in groups} == {6 * 3600.0}
    (tmp_path / "serve.toml").write_text(f'data = "watch"\n{table}match = "auth-*"\n')
    assert [one.name for one in read_config(tmp_path / "serve.toml").group] == ["auth-api", "auth-db"]
    (tmp_path / "serve.toml").write_text(f'data = "watch"\n{table}match = "pump*"\n')
    with pytest.raises(InputError, match=r"must fit a model of .* such as 'auth-api'"):
        read_config(tmp_path / "serve.toml")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[[group]]\nname = "auth"\nmodel = "m.tisat"\nbudget = "1/dayz"', "The 'budget' of group 'auth' must be"),
        ('[[group]]\nname = "auth"\nmodel = "m.tisat"\nsilent_after = "365 dayz"', "The 'silent_after' of group 'auth' must be a duration"),
        ('[[group]]\nname = "auth"\nmodel = "m.tisat"\n[[sink]]\nkind = "webhook"\nurl = "http://127.0.0.1:1"\nname = "pager"\ntogether = "x"', "The 'together' of webhook 'pager' must be a duration"),
        ('[[group]]\nname = "auth"\nmodel = "m.tisat"\n[listen]\nport = 99999', "The port of \\[listen\\] must be 0 to 65535. Got 99999"),
        ('[[group]]\nname = "auth"\nmodel = "m.tisat"\n[listen]\nprot = 99', "unknown field `prot`.* Did you mean 'port'\\?"),
        ('[[group]]\nname = "auth"\nmodel = "m.tisat"\n[[sink]]\nkind = "webhook"\nulr = "x"', "Did you mean 'url'\\?"),
        ('[[group]]\nname = "auth"\nmodel = "m.tisat"\n[keep]\nalarms = "x"', "The 'alarms' of \\[keep\\] must be a duration"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_table(model, tmp_path, table, said):
    (tmp_path / "m.tisat").write_bytes(model.read_bytes())
    (tmp_path / "serve.toml").write_text(f'data = "watch"\n{table}\n')

    def begun():
        config = read_config(tmp_path / "serve.toml")
        return settings_of(config), parts_of(config), groups_of(config)

    with pytest.raises(InputError, match=said):
        begun()

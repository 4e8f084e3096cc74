"""Rows made of samples: remote write, Influx lines, OpenTelemetry, MQTT topics; by hand-made messages and by hypothesis."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.conftest import CHANNELS, START, local_client, plant_rows, result_lines

cramjam = pytest.importorskip("cramjam", reason="pip install 'tisat[prometheus]'")
pytest.importorskip("httpx2", reason="pip install 'tisat[dev]'")

from tisat.errors import InputError  # noqa: E402
from tisat_serve.api.app import make_app  # noqa: E402
from tisat_serve.folder.archive import rows_of  # noqa: E402
from tisat_serve.runner import more_routes  # noqa: E402
from tisat_serve.security import Tokens  # noqa: E402
from tisat_serve.service import Service  # noqa: E402
from tisat_serve.sources import influx, otlp, remote_write, wire  # noqa: E402
from tisat_serve.sources.samples import Assembler, Sample, Samples  # noqa: E402


def number(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def part(field, content):
    return number(field << 3 | 2) + number(len(content)) + content


def write_request(rows):
    """A remote write message: rows ``(labels, value, milliseconds)``."""
    made = b""
    for labels, value, at in rows:
        series = b"".join(part(1, part(1, k.encode()) + part(2, v.encode())) for k, v in labels.items())
        series += part(2, b"\x09" + struct.pack("<d", value) + b"\x10" + number(at))
        made += part(1, series)
    return bytes(cramjam.snappy.compress_raw(made))


def metrics(rows, entity="a"):
    """An OTLP message: rows ``(name, value, nanoseconds)``."""
    made = b""
    for name, value, at in rows:
        point = b"\x19" + struct.pack("<Q", at) + b"\x21" + struct.pack("<d", value)
        made += part(2, part(1, name.encode()) + part(5, part(1, point)))
    resource = part(1, part(1, part(1, b"instance") + part(2, part(1, entity.encode()))))
    return part(1, resource + part(2, made))


def refused_or(call, otherwise):
    try:
        return call()
    except InputError:
        return otherwise


@pytest.fixture
def pushed(engine_in, tmp_path):
    service = Service(engine_in(tmp_path), parts=[Samples("samples")]).start()
    yield service, local_client(make_app(service, Tokens(service.engine.store), more=more_routes(service)))
    service.stop()


def test_all_three_dialects_make_the_same_rows(pushed):
    service, client = pushed
    values = plant_rows(30, seed=5)
    for k, row in enumerate(values):
        at = START + 60 * k
        kind = {"content-type": "application/x-protobuf", "content-encoding": "snappy"}
        series = [
            ({"__name__": name, "instance": "p", "job": "x"}, v, at * 1000 + 7)
            for name, v in zip(CHANNELS, row, strict=True)
        ]
        assert client.post("/api/v1/write", content=write_request(series), headers=kind).status_code == 204
        fields = ",".join(f"{name}={v!r}" for name, v in zip(CHANNELS, row.tolist(), strict=True))
        assert client.post("/api/v2/write?precision=s", content=f"plant,instance=i {fields} {at}\n").status_code == 204
        triples = [(name, v, at * 10**9) for name, v in zip(CHANNELS, row, strict=True)]
        answer = client.post(
            "/v1/metrics", content=metrics(triples, "o"), headers={"content-type": "application/x-protobuf"}
        )
        assert answer.status_code == 200
        points = [
            {"name": name, "gauge": {"dataPoints": [{"asDouble": v, "timeUnixNano": str(at * 10**9)}]}}
            for name, v in zip(CHANNELS, row.tolist(), strict=True)
        ]
        document = {
            "resourceMetrics": [
                {
                    "resource": {"attributes": [{"key": "instance", "value": {"stringValue": "j"}}]},
                    "scopeMetrics": [{"metrics": points}],
                }
            ]
        }
        assert client.post("/v1/metrics", json=document).json() == {}
    lines = {
        name: [
            line.partition(b" ")[2] for line in result_lines(service.engine) if line.startswith(name.encode() + b" ")
        ]
        for name in "pioj"
    }
    assert len(lines["p"]) == 30
    assert lines["p"] == lines["i"] == lines["o"] == lines["j"]


def test_samples_outlive_a_kill_before_their_row_is_whole(engine_in, tmp_path):
    first = Samples("samples")
    service = Service(engine_in(tmp_path), parts=[first]).start()
    first.take([Sample("a", "temp", START * 10**9, 60.0), Sample("a", "flow", START * 10**9, 5.0)])
    assert "a" not in service.engine.cells
    service._stopping = True
    service._queue.put(None)
    service._thread.join()
    first.stop()
    service.engine.store.close()  # killed: nothing is saved
    second = Samples("samples")
    again = Service(engine_in(tmp_path), parts=[second]).start()
    second.take([Sample("a", "power", START * 10**9, 1.0)])
    assert again.view.entity("a").rows == 1
    again.stop()


def test_what_cannot_be_read_is_a_sentence(pushed):
    _, client = pushed
    kind = {"content-type": "application/x-protobuf", "content-encoding": "snappy"}
    for content in (b"", b"\xff" * 20, b"\xff\xff\xff\xff\x0f", bytes(cramjam.snappy.compress_raw(b"\x0a\xff"))):
        assert client.post("/api/v1/write", content=content, headers=kind).status_code == 400
    two = {**kind, "x-prometheus-remote-write-version": "2.0.0"}
    assert client.post("/api/v1/write", content=b"x", headers=two).status_code == 415
    answer = client.post("/write", content=b"good,instance=a temp=1 1770000000000000000\nbad line\n")
    assert answer.status_code == 400
    assert "line 2" in answer.json()["error"]
    point = {"asInt": "5", "timeUnixNano": "1770000000000000000"}
    cumulative = {
        "resourceMetrics": [
            {
                "scopeMetrics": [
                    {
                        "metrics": [
                            {
                                "name": "n",
                                "sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [point]},
                            }
                        ]
                    }
                ]
            }
        ]
    }
    assert "delta" in client.post("/v1/metrics", json=cumulative).json()["partialSuccess"]["errorMessage"]
    assert client.post("/v1/metrics", json=[1]).status_code == 400


def test_a_service_without_a_source_says_what_is_missing(engine_in, tmp_path):
    service = Service(engine_in(tmp_path)).start()
    client = local_client(make_app(service, Tokens(service.engine.store), more=more_routes(service)))
    answer = client.post("/write", content=b"x y=1")
    assert answer.status_code == 400
    assert "kind = 'samples'" in answer.json()["error"]
    service.stop()


@settings(max_examples=60, deadline=None)
@given(st.permutations([(k, c) for k in range(1, 6) for c in ("a", "b")]))
def test_any_order_within_the_lateness_makes_whole_rows(order):
    maker = Assembler(("a", "b"), step=10.0, lateness=1000.0)
    found = [
        row
        for k, c in [(0, "a"), (0, "b"), *order]
        for row in maker.add([Sample("m", c, (10 * k + 3) * 10**9, k + (c == "b") / 2)])
    ]
    assert found == [("m", 10 * k * 10**9, row[2]) for k, row in zip(range(6), found, strict=True)]
    assert all(row[2] == {"a": float(row[1] // 10**10), "b": row[1] // 10**10 + 0.5} for row in found)


def test_the_watermark_closes_rows_with_holes_and_late_samples_are_counted():
    maker = Assembler(("a", "b"), step=10.0, lateness=20.0)
    assert maker.add([Sample("m", "a", 5 * 10**9, 1.0)]) == []
    assert maker.add([Sample("m", "a", 25 * 10**9, 2.0)]) == [("m", 0, {"a": 1.0})]
    assert maker.add([Sample("m", "b", 6 * 10**9, 9.0), Sample("m", "other", 6 * 10**9, 9.0)]) == []
    assert (maker.late, maker.unknown) == (1, 1)
    assert maker.idle(-1.0) == [("m", 20 * 10**9, {"a": 2.0})]
    assert maker.oldest is None


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_break_the_decoders(content):
    """What is no message is refused in a sentence; whatever is read of one is a sample of a known channel."""
    source = Samples("s")
    source._home = type("Home", (), {"known": frozenset("ab")})()
    for call in (
        lambda: remote_write.samples_of(content, source),
        lambda: otlp.samples_of(content, source, json=False)[0],
        lambda: otlp.samples_of(content, source, json=True)[0],
        lambda: influx.samples_of(content, source, precision="ns", now=0)[0],
    ):
        for sample in refused_or(call, ()):
            assert sample.entity
            assert sample.channel in source._home.known
            assert abs(sample.at) < 2**63
            assert math.isfinite(sample.value)
    assert len(refused_or(lambda: remote_write.unpacked(content, 1000), b"")) <= 1000
    found = refused_or(lambda: list(wire.fields(memoryview(content))), ())
    assert sum(len(part) for *_, part in found) <= len(content)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("m f=1", ("m", {}, {"f": 1.0}, None)),
        (r"m\ x,t=a\,b f=1i,g=t 5", ("m x", {"t": "a,b"}, {"f": 1.0, "g": 1.0}, 5)),
        ('m f="a b \\" c",g=2.5e3 -7', ("m", {}, {"g": 2500.0}, -7)),
    ],
)
def test_lines_are_read_as_influx_writes_them(line, found):
    assert influx.parse_line(line) == found


@pytest.mark.parametrize("line", ["", "m", "m f", "m f=", "m f=x", "m,t f=1", " m f=1 2 3", "m f=1 x"])
def test_lines_that_are_none(line):
    with pytest.raises(ValueError):
        influx.parse_line(line)


def test_mqtt_topics_are_patterns():
    from tisat_serve.sources.mqtt import pattern_of

    assert pattern_of("a/{entity}")[0] == "a/+"
    with pytest.raises(InputError, match="must hold"):
        pattern_of("a/#")


def row_samples(entity, k, row):
    return [Sample(entity, name, (START + 60 * k) * 10**9, v) for name, v in zip(CHANNELS, row, strict=True)]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_one_sample_from_the_future_closes_nothing(engine_in, tmp_path, whole, first):
    """Rows whose channels come in three requests, one wrong sample (or row) among them; then a restart."""
    made = Samples("samples")
    service = Service(engine_in(tmp_path), parts=[made]).start()
    values = plant_rows(300, seed=5).tolist()
    year = 365 * 86400 // 60
    wrong = row_samples("i1", year, values[0])[: 3 if whole else 1]
    if first:
        made.take(wrong)
    for k, row in enumerate(values[:200]):
        for sample in row_samples("i1", k, row):
            made.take([sample])
        if k == 100 and not first:
            for sample in wrong:
                made.take([sample])
    assert service.engine.cells["i1"].at == (START + 60 * 199) * 10**9
    assert made.assembler.late == 0
    assert made.assembler.unconfirmed >= (0 if first and whole else len(wrong))
    assert not service.view.alarms(sort="channel")
    made.tidy()
    assert service.engine.store.read("SELECT count(*) FROM samples")[0][0] <= 3, "the wrong batch is not kept"
    service.stop()
    service.engine.store.close()
    made = Samples("samples")
    again = Service(engine_in(tmp_path), parts=[made]).start()
    for k, row in enumerate(values[200:], 200):
        for sample in row_samples("i1", k, row):
            made.take([sample])
    _, body = rows_of(again.engine.entities, "i1")
    assert np.isfinite(body.values[-100:]).all(), "every channel speaks"
    assert not again.view.alarms(sort="channel")
    again.stop()


def test_a_clock_that_really_is_ahead_is_believed_with_the_next_row(engine_in, tmp_path):
    made = Samples("samples")
    service = Service(engine_in(tmp_path), parts=[made]).start()
    values = plant_rows(20, seed=5).tolist()
    for k, row in enumerate(values):
        for sample in row_samples("a", k if k < 10 else k + 5000, row):  # three days away
            made.take([sample])
    assert made.assembler.unconfirmed == 0
    assert service.engine.cells["a"].at == (START + 60 * 5019) * 10**9
    service.stop()


def test_a_grid_much_too_fine_is_believed_after_a_while():
    maker = Assembler(("a",), step=0.001, lateness=0.0)
    done = [row for k in range(60) for row in maker.add([Sample("m", "a", k * 60 * 10**9, 1.0)])]
    assert len(done) >= 2
    assert done[-1][1] == 59 * 60 * 10**9 or maker.unconfirmed < 60

"""The service beside the real things: ``make test-service``."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from serve import real
from serve.conftest import CHANNELS, plant_rows
from serve.processes import Process
from serve.test_samples import write_request

pytestmark = pytest.mark.service
HOUR = 3600


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def until(what, seconds=60.0):
    deadline = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)


def push(url, rows, first):
    """Rows of two machines, one a second from ``first`` on, into a Prometheus."""
    for begin in range(0, len(rows), 500):
        series = [
            ({"__name__": f"plant_{name}", "instance": who}, float(value), int((first + begin + k) * 1000))
            for who in ("p1", "p2")
            for c, name in enumerate(CHANNELS)
            for k, value in enumerate(rows[begin : begin + 500, c])
        ]
        kind = {
            "content-type": "application/x-protobuf",
            "content-encoding": "snappy",
            "x-prometheus-remote-write-version": "0.1.0",
        }
        with urllib.request.urlopen(
            urllib.request.Request(url + "/api/v1/write", write_request(series), kind), timeout=30
        ) as answer:
            assert answer.status in (200, 204)


QUERIES = [part for name in CHANNELS for part in ("--query", f"{name}=plant_{name}")]


def from_history_to_an_alarm(source, folder, alerts=None):
    """History lies in a Prometheus API; the service fits on it, goes live, and an alarm arrives."""
    now = int(time.time())
    past = plant_rows(2 * HOUR, seed=1)
    push(source, past, now - 2 * HOUR)
    until(
        lambda: (
            get(source + f"/api/v1/query?query=%7B__name__%3D~%22.%2B%22%7D&time={now - HOUR}")["data"]["result"]
            or None
        )
    )
    more = ("--alertmanager", alerts) if alerts else ()
    options = (
        "--model",
        folder / "m.tisat",
        "--data",
        folder / "watch",
        "--prometheus",
        source,
        *QUERIES,
        "--step",
        "1s",
        *more,
    )
    with Process(*options, "--history", "110 min", "--detector", "linear-last", "--budget", "1/30 min") as service:
        assert (folder / "m.tisat").is_file()
        live = plant_rows(2 * HOUR + 400, seed=1)[2 * HOUR :]
        sent = threading.Event()

        def feed():
            for k in range(130):
                row = live[k : k + 1].copy()
                if k >= 115:
                    row[:, 0] += 9.0
                at = now + k
                while time.time() < at and not sent.is_set():
                    time.sleep(0.05)
                push(source, row, at)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            until(lambda: service.get("/api/v1/entities") or None, 60)
            found = until(lambda: service.get("/api/v1/alarms?about=statistic") or None, 180)
            assert {one["entity"] for one in found} <= {"p1", "p2"}
            assert found[0]["channels"][0] == "temp"
            if alerts:
                told = until(
                    lambda: (
                        [one for one in get(alerts + "/api/v2/alerts") if one["labels"]["alertname"] == "TisatAlarm"]
                        or None
                    ),
                    20,
                )
                assert told[0]["annotations"]["why"].startswith("temp")
                assert "/alarm/" in told[0]["generatorURL"]
        finally:
            sent.set()
            feeder.join()
        rows = service.get("/api/v1/entities/p1")["rows"]
        service.kill()
    time.sleep(3.0)
    with Process(*options) as again:  # the gap is fetched
        until(lambda: again.get("/api/v1/entities/p1")["rows"] > rows, 30)
        found = again.get("/api/v1/entities/p1")
        assert again.end() == 0
    return found


def test_prometheus_history_live_gap_and_alertmanager(tmp_path):
    with real.prometheus(tmp_path) as source, real.alertmanager(tmp_path) as alerts:
        assert from_history_to_an_alarm(source, tmp_path, alerts)["late"] == 0


def test_victoria_metrics_speaks_the_same(tmp_path):
    with real.victoria(tmp_path) as source:
        assert from_history_to_an_alarm(source, tmp_path)["late"] == 0


CONFIG = """
data = "watch"
[[group]]
name = "main"
model = "{model}"
[[source]]
kind = "samples"
step = "1 s"
{source}
"""


class Exporter:
    """What Prometheus scrapes: three gauges."""

    def __init__(self):
        rows = plant_rows(4000, seed=2)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                row = rows[int(time.time()) % len(rows)]
                body = "".join(
                    f"# TYPE {name} gauge\n{name} {value}\n" for name, value in zip(CHANNELS, row, strict=True)
                ).encode()
                self.send_response(200)
                self.send_header("content-type", "text/plain; version=0.0.4")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def test_a_real_prometheus_writes_to_us(model, tmp_path):
    (tmp_path / "serve.toml").write_text(CONFIG.format(model=model, source=""))
    exporter = Exporter()
    with Process("--config", tmp_path / "serve.toml") as service:
        config = (
            "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: plant, static_configs: [{targets: ['"
            + exporter.address
            + "']}]}]\n"
            "remote_write: [{url: '" + service.url + "/api/v1/write', queue_config: {batch_send_deadline: 1s}}]\n"
        )
        with real.prometheus(tmp_path, config):
            found = until(lambda: [one for one in service.get("/api/v1/entities") if one["rows"] >= 5] or None, 60)
            assert found[0]["name"] == exporter.address
        assert service.end() == 0
    exporter.server.shutdown()
    exporter.server.server_close()


def test_mosquitto_in_and_out(model, tmp_path):
    real.find("mosquitto_sub")
    with real.mosquitto(tmp_path) as port:
        source = f'[[source]]\nkind = "mqtt"\nport = {port}\ntopic = "plant/{{entity}}"\n[[sink]]\nkind = "mqtt"\nport = {port}\n'
        (tmp_path / "serve.toml").write_text(CONFIG.format(model=model, source=source))
        rows = plant_rows(200, seed=4, fault=120)
        with Process("--config", tmp_path / "serve.toml") as service:
            lines = "".join(
                json.dumps({"time": 1_770_000_000 + 60 * k, **dict(zip(CHANNELS, row, strict=True))}) + "\n"
                for k, row in enumerate(rows.tolist())
            )
            command = [
                real.find("mosquitto_pub"),
                "-p",
                str(port),
                "-h",
                "127.0.0.1",
                "-t",
                "plant/p7",
                "-q",
                "1",
                "-l",
            ]
            until(
                lambda: "tisat_mqtt2_connected 1.0" in urllib.request.urlopen(service.url + "/metrics").read().decode(),
                30,
            )
            subprocess.run(command, input=lines, text=True, check=True, timeout=60)
            until(lambda: service.get("/api/v1/alarms?about=statistic&entity=p7") or None, 60)
            told = subprocess.run(
                [real.find("mosquitto_sub"), "-p", str(port), "-h", "127.0.0.1", "-t", "tisat/alarms/#", "-C", "1", "-W", "30"],
                capture_output=True, text=True, check=True, timeout=60,
            )  # fmt: skip
            assert json.loads(told.stdout)["entity"] == "p7"
            until(lambda: service.get("/api/v1/entities/p7")["rows"] == 200)
            assert service.end() == 0


SENDERS = {
    "opentelemetry": """
import sys, time
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=sys.argv[1] + "/v1/metrics"), export_interval_millis=1000)
meter = MeterProvider(resource=Resource.create({"instance": "sender"}), metric_readers=[reader]).get_meter("x")
gauges = [meter.create_gauge(name) for name in sys.argv[2:]]
for k in range(6):
    for c, gauge in enumerate(gauges):
        gauge.set(1.0 + c)
    reader.force_flush()
    time.sleep(1.0)
""",
    "influxdb_client": """
import sys, time
from influxdb_client import InfluxDBClient, Point
from influxdb_client.client.write_api import SYNCHRONOUS
with InfluxDBClient(url=sys.argv[1], token="t", org="o") as client:
    write = client.write_api(write_options=SYNCHRONOUS)
    for k in range(6):
        point = Point("plant").tag("instance", "sender")
        for c, name in enumerate(sys.argv[2:]):
            point = point.field(name, 1.0 + c)
        write.write(bucket="b", record=point.time(int(time.time() * 1e9)))
        time.sleep(1.0)
""",
}


@pytest.mark.parametrize("library", SENDERS)
def test_genuine_senders_are_understood(library, model, tmp_path):
    places = [os.environ.get("TISAT_SENDERS", ""), *sys.path]
    if not any((Path(place) / library).is_dir() for place in places if place):
        pytest.skip(f"{library} is not installed: pip install opentelemetry-exporter-otlp-proto-http influxdb-client")
    (tmp_path / "serve.toml").write_text(CONFIG.format(model=model, source=""))
    with Process("--config", tmp_path / "serve.toml") as service:
        environment = {**os.environ, "PYTHONPATH": os.environ.get("TISAT_SENDERS", "")}
        subprocess.run(
            [sys.executable, "-c", SENDERS[library], service.url, *CHANNELS], check=True, timeout=60, env=environment
        )
        found = until(lambda: service.get("/api/v1/entities") or None, 20)
        assert found[0]["name"] == "sender"
        assert found[0]["rows"] >= 3
        assert service.end() == 0


def test_victoria_metrics_draws_the_band(model, tmp_path):
    """It scrapes /metrics/band; value, expected, lower, upper, score and threshold are series a dashboard asks for."""
    with Process("--model", model, "--data", tmp_path / "watch") as service:
        now = int(time.time())
        rows = plant_rows(120, seed=5)
        send = [{"entity": "p1", "values": row.tolist(), "time": now - 60 * (120 - k)} for k, row in enumerate(rows)]
        assert service.post("/api/v1/rows", send)["refused"] == 0
        scraped = service.url.removeprefix("http://")
        (tmp_path / "scrape.yml").write_text(
            "scrape_configs: [{job_name: tisat, scrape_interval: 1s, metrics_path: /metrics/band, "
            f"static_configs: [{{targets: ['{scraped}']}}]}}]\n"
        )
        with real.victoria(tmp_path, f"-promscrape.config={tmp_path / 'scrape.yml'}") as series:
            query = "/api/v1/query?query={__name__=~'tisat_.*',entity='p1'}".replace("{", "%7B").replace("}", "%7D")

            def found():
                result = get(series + query.replace("'", "%22").replace("~", "%7E"))["data"]["result"]
                return {one["metric"]["__name__"]: float(one["value"][1]) for one in result if one["metric"].get("channel", "temp") == "temp"}  # fmt: skip

            band = until(lambda: found() if "tisat_expected_upper" in found() else None, 30)
        assert band["tisat_expected_lower"] < band["tisat_expected"] < band["tisat_expected_upper"]
        assert band["tisat_value"] == pytest.approx(rows[-1][0])
        assert {"tisat_score", "tisat_statistic", "tisat_entity_threshold"} <= set(band)
        assert service.end() == 0


def test_alertmanager_keeps_firing_until_the_machine_is_back_or_accepted(tmp_path):
    """A step that stays: the statistic falls, the alert fires on; it is resolved when somebody accepts the new level."""
    from serve.test_ongoing_alarm import plant
    from tisat.watch import Watch

    Watch(budget="1/1000 rows", period="1 min", control=False).fit(plant(5000, 1)).save(tmp_path / "steps.tisat")
    values = plant(800, 2)
    values[300:, 1] += 2.0
    now = int(time.time())
    with real.alertmanager(tmp_path) as alerts:
        sink = f'[[sink]]\nkind = "alertmanager"\nurl = "{alerts}"\nevery = "1 s"\n'
        config = f'data = "watch"\n[[group]]\nname = "main"\nmodel = "steps.tisat"\nsilent_after = "1 day"\n{sink}'
        (tmp_path / "serve.toml").write_text(config)

        def firing():
            return [one for one in get(alerts + "/api/v2/alerts") if one["labels"]["entity"] == "pump"]

        with Process("--config", tmp_path / "serve.toml") as service:
            rows = [
                {"entity": "pump", "values": one.tolist(), "time": now - 60 * (800 - k)} for k, one in enumerate(values)
            ]
            service.post("/api/v1/rows", rows)
            (ongoing,) = [one for one in service.get("/api/v1/alarms?active=true") if one["state"] == "ongoing"]
            told = until(lambda: [one for one in firing() if one["annotations"].get("state") == "ongoing"] or None, 20)
            assert told[0]["labels"]["severity"] == ongoing["severity"]
            assert told[0]["labels"]["incident"] == ongoing["incident"]
            time.sleep(6)  # twice as long as an alert lives that nobody repeats
            assert [one for one in firing() if one["labels"]["alarm"] == ongoing["id"]], "it fires on"
            service.post(f"/api/v1/alarms/{ongoing['id']}/accept", {"author": "eva", "reason": "another pump"})
            until(lambda: not [one for one in firing() if one["labels"]["alarm"] == ongoing["id"]], 20)
            assert service.get(f"/api/v1/alarms/{ongoing['id']}")["alarm"]["state"] == "new normal"
            assert service.end() == 0

"""What is handed to other programs: alert rules, a dashboard, a unit; they speak of figures that are there."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from serve import real
from serve.conftest import local_client

pytest.importorskip("httpx2", reason="pip install 'tisat[dev]'")

from tisat_serve.api.app import make_app
from tisat_serve.security import Tokens
from tisat_serve.service import Service

DEPLOY = Path(__file__).resolve().parents[4] / "deploy"


def test_rules_and_dashboard_ask_for_figures_that_are_there(engine_in, tmp_path):
    service = Service(engine_in(tmp_path)).start()
    client = local_client(make_app(service, Tokens(service.engine.store)))
    client.post("/api/v1/rows", json=[{"entity": "a", "values": [60, 5, 1]}])
    text = client.get("/metrics").text + client.get("/metrics/band").text
    known = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    service.stop()
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    band = {name for expression in asked for name in re.findall(r"tisat_expected_\w+|tisat_value", expression)}
    assert band == {"tisat_expected_lower", "tisat_expected_upper", "tisat_value"}, "the band is drawn"
    asked += re.findall(r"expr: (.*)", (DEPLOY / "alert-rules.yml").read_text())
    for expression in asked:
        for name in re.findall(r"\btisat_\w+", expression):
            assert name in known or re.sub(r"_(bucket|total)$", "", name) in known, name


@pytest.mark.service
def test_promtool_takes_the_rules():
    found = subprocess.run(
        [real.find("promtool"), "check", "rules", str(DEPLOY / "alert-rules.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.service
def test_promtool_takes_the_metrics(engine_in, tmp_path):
    service = Service(engine_in(tmp_path)).start()
    client = local_client(make_app(service, Tokens(service.engine.store)))
    client.post("/api/v1/rows", json=[{"entity": 'a"\\b', "values": [60, 5, 1]}])
    text = client.get("/metrics").text
    service.stop()
    found = subprocess.run(
        [real.find("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert found.returncode in (0, 3), found.stderr  # 3: matters of taste
    assert "error" not in found.stderr.lower()


@pytest.mark.service
def test_the_unit_is_hardened():
    found = subprocess.run(
        [real.find("systemd-analyze"), "security", "--offline=true", "--threshold=20", str(DEPLOY / "tisat-serve.service")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-500:] + found.stderr

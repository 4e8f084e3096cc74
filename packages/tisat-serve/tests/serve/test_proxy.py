"""Behind a real nginx, with the example of deploy/: tokens are needed, buttons work, live updates come through."""

import http.client
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from serve import real
from serve.processes import SOURCES, Process

pytestmark = pytest.mark.service
EXAMPLE = Path(__file__).resolve().parents[4] / "deploy" / "nginx.conf"
NAME = "watch.example.org"


@pytest.fixture
def certificate(tmp_path):
    command = [
        real.find("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}",
        "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem",
    ]  # fmt: skip
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return tmp_path / "cert.pem", tmp_path / "key.pem"


def behind_nginx(folder, service, certificate):
    """nginx with the example; its names, ports and files are those of this test, all else is as it stands there."""
    port = real.free_port()
    text = EXAMPLE.read_text()
    for written, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        (f"/etc/ssl/certs/{NAME}.pem", str(certificate[0])),
        (f"/etc/ssl/private/{NAME}.key", str(certificate[1])),
        ("http://127.0.0.1:8765", service.url),
    ):
        assert written in text
        text = text.replace(written, here)
    for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        text = f"{part}_temp_path {folder}/{part};\n" + text
    whole = f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{text}}}\n"
    (folder / "nginx.conf").write_text(whole)
    return port, real.program(folder, real.find("nginx"), "-c", folder / "nginx.conf", "-p", folder, port=port)


def ask(port, path, *, body=None, headers=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    data = None if body is None else json.dumps(body).encode()
    told = {"Host": NAME, "Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", data, told)
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


WINDOW = {"pattern": "*", "start": 1.77e9, "stop": 1.78e9, "reason": "test"}
CONFIG = 'data = "watch"\n[[group]]\nname = "main"\nmodel = "{model}"\n'


def test_whoever_comes_by_nginx_is_refused_where_no_token_was_made(model, tmp_path, certificate):
    (tmp_path / "serve.toml").write_text(CONFIG.format(model=model))
    with Process("--config", tmp_path / "serve.toml") as service:
        port, nginx = behind_nginx(tmp_path, service, certificate)
        with nginx:
            for path in ("/", "/api/v1/journal", "/api/v1/alarms", "/metrics"):
                assert ask(port, path)[0] in (401, 403), path
            assert ask(port, "/api/v1/pauses", body=WINDOW)[0] in (401, 403)
            assert ask(port, "/healthz")[0] == 200
        assert service.end() == 0


def test_with_a_token_pages_buttons_rows_and_live_updates_come_through_nginx(model, tmp_path, certificate):
    (tmp_path / "serve.toml").write_text(f'{CONFIG.format(model=model)}[listen]\nurl = "https://{NAME}"\n')
    who = {"Authorization": f"Bearer {new_token(tmp_path / 'watch')}"}
    with Process("--config", tmp_path / "serve.toml") as service:
        port, nginx = behind_nginx(tmp_path, service, certificate)
        with nginx:
            assert ask(port, "/api/v1/pauses", body=WINDOW)[0] == 401
            ours = {**who, "Origin": f"https://{NAME}"}
            code, text, headers = ask(port, "/api/v1/pauses", body=WINDOW, headers=ours)
            assert (code, json.loads(text)["author"]) == (200, "eva"), "the public name is the allowed origin"
            assert "max-age" in {key.lower(): value for key, value in headers.items()}["strict-transport-security"]
            foreign = {**who, "Origin": "https://evil.example"}
            assert ask(port, "/api/v1/pauses", body=WINDOW, headers=foreign)[0] == 403
            rows = [{"entity": "p", "values": [60.0, 5.0, 1.0]}]
            assert json.loads(ask(port, "/api/v1/rows", body=rows, headers=who)[1])["taken"] == 1
            assert ask(port, "/entity/p", headers=who)[0] == 200
            assert first_event(port, who)
        assert service.end() == 0


def new_token(folder):
    folder.mkdir()
    command = [
        sys.executable,
        "-m",
        "tisat",
        "serve",
        "token",
        "--data",
        str(folder),
        "--name",
        "eva",
        "--scope",
        "admin",
    ]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": SOURCES}
    )
    return done.stdout.strip()


def first_event(port, headers):
    """Whether the stream of events begins at once: nothing holds it back on the way."""
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    connection.request("GET", "/api/v1/events", headers={"Host": NAME, **headers})
    answer = connection.getresponse()
    assert answer.status == 200
    line = answer.fp.readline()
    connection.close()
    return bool(line)

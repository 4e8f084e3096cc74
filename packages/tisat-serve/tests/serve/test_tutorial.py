"""The tutorial is run as it is printed: its files are written, its commands started, its questions asked (other ports, less waiting)."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from serve import real

PAGE = Path(__file__).resolve().parents[4] / "docs" / "tutorials" / "prometheus.md"
SOURCES = os.pathsep.join(str(folder) for folder in Path(__file__).resolve().parents[3].glob("*/src"))
PORTS = ("9101", "9090", "8765")


@pytest.mark.service
def test_the_tutorial_ends_in_an_alarm(tmp_path):
    real.find("prometheus")
    text = PAGE.read_text()
    for port in PORTS:
        text = text.replace(port, str(real.free_port()))
    text = text.replace("'5 min'", "'150 s'")  # the page says to wait for five minutes
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCES),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    started = []
    try:
        for head, body in re.findall(r"```([^\n]+)\n(.*?)```", text, flags=re.S):
            kind, _, what = head.partition(" ")
            if kind in ("python", "yaml"):
                (tmp_path / what).write_text(body)
            elif what == "background":
                if "tisat serve" in body:
                    time.sleep(150)
                command = shlex.split(
                    body.replace("\\\n", " ").replace("tisat serve", f"{sys.executable} -m tisat serve")
                )
                log = (tmp_path / f"{len(started)}.log").open("wb")
                started.append(
                    subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT)
                )
                log.close()
            elif kind == "bash":
                wanted = what.removeprefix("until ")
                deadline = time.monotonic() + 90
                while True:
                    found = subprocess.run(body, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
                    if found.returncode == 0 and found.stdout.strip() not in ("", "[]") and wanted in found.stdout:
                        break
                    assert time.monotonic() < deadline, (
                        found.stdout,
                        *(p.read_text()[-1500:] for p in tmp_path.glob("*.log")),
                    )
                    time.sleep(1)
        assert '"temperature"' in found.stdout
        assert all(process.poll() is None for process in started)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)

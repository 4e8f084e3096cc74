"""Real programs of other people, started on this machine for a test and ended with it."""

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def find(name: str) -> str:
    for path in (None, "/usr/sbin:/usr/local/sbin:/sbin"):
        found = shutil.which(name, path=path) if path else shutil.which(name)
        if found:
            return found
    pytest.skip(f"{name} is not installed: apt-get install {PACKAGES.get(name, name)}")


PACKAGES = {
    "promtool": "prometheus",
    "amtool": "prometheus-alertmanager",
    "mosquitto_sub": "mosquitto-clients",
    "mosquitto_pub": "mosquitto-clients",
}


@contextlib.contextmanager
def program(
    folder: Path, *command: str | Path, ready: str | None = None, port: int = 0, seconds: float = 30.0
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is up when the block begins: when ``ready`` answers, or its port takes connections."""
    log = (folder / f"{Path(command[0]).name}.log").open("wb")
    process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + seconds
        while not _up(ready, port):
            assert process.poll() is None, (folder / log.name).read_text()[-2000:]
            assert time.monotonic() < deadline, f"{command[0]} did not come up"
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _up(ready: str | None, port: int) -> bool:
    try:
        if ready is not None:
            with urllib.request.urlopen(ready, timeout=2) as answer:
                return bool(answer.status == 200)
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def prometheus(folder: Path, config: str = "", *more: str) -> Iterator[str]:
    """Prometheus with a receiver for remote write; its address."""
    port = free_port()
    (folder / "prometheus.yml").write_text(config or "global: {scrape_interval: 1s}\n")
    url = f"http://127.0.0.1:{port}"
    command = (
        find("prometheus"), f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver", "--log.level=warn", *more,
    )  # fmt: skip
    with program(folder, *command, ready=f"{url}/-/ready"):
        yield url


@contextlib.contextmanager
def alertmanager(folder: Path) -> Iterator[str]:
    """Alertmanager without receivers; its address."""
    port = free_port()
    (folder / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    url = f"http://127.0.0.1:{port}"
    command = (
        find("prometheus-alertmanager"), f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'am'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    )  # fmt: skip
    with program(folder, *command, ready=f"{url}/-/ready"):
        yield url


@contextlib.contextmanager
def victoria(folder: Path, *more: str) -> Iterator[str]:
    """VictoriaMetrics; its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = (
        find("victoria-metrics"), f"-storageDataPath={folder / 'vm'}", f"-httpListenAddr=127.0.0.1:{port}", "-search.latencyOffset=0s", *more,
    )  # fmt: skip
    with program(folder, *command, ready=f"{url}/health"):
        yield url


@contextlib.contextmanager
def mosquitto(folder: Path) -> Iterator[int]:
    """Mosquitto on this machine; its port."""
    port = free_port()
    (folder / "mosquitto.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
    with program(folder, find("mosquitto"), "-c", folder / "mosquitto.conf", port=port):
        yield port

"""A service in a process of its own, for tests that kill it."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

SOURCES = str(Path(__file__).resolve().parents[2] / "src")


class Process:
    """``tisat serve`` on a folder; ``url`` is where it listens."""

    def __init__(self, *arguments, wait=90.0):
        environment = {**os.environ, "PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tisat", "serve", "--port", "0", *map(str, arguments)],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"listening on (http\S+)", line)
            if found:
                self.url = found[1]
                return
        self.kill()
        raise AssertionError("".join(self.said))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()

    def post(self, path, document, **headers):
        request = urllib.request.Request(
            self.url + path, json.dumps(document).encode(), {"content-type": "application/json", **headers}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def kill(self):
        self.process.kill()
        self.process.wait(30)
        self.process.stderr.close()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stderr.close()
        return self.process.returncode

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
from typing import Any, Self

SOURCES = os.pathsep.join(str(folder) for folder in Path(__file__).resolve().parents[3].glob("*/src"))


class Process:
    """``tisat serve`` on a folder; ``url`` is where it listens."""

    process: Any  # a Popen, or what answers like one

    def __init__(self, *arguments: object) -> None:
        environment = {**os.environ, "PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tisat", "serve", "--port", "0", *map(str, arguments)],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"listening on (http\S+)", line)
            if found:
                self.url = found[1]
                return
        self.kill()
        raise AssertionError("".join(self.said))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def post(self, path: str, document: object, **headers: str) -> Any:
        request = urllib.request.Request(
            self.url + path, json.dumps(document).encode(), {"content-type": "application/json", **headers}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)
        self.process.stderr.close()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stderr.close()
        return int(self.process.returncode)


class Forked(Process):
    """The same service in a fork of this process, which has imported everything already: a hundred starts take a minute, not half an hour."""

    def __init__(self, model: Path, folder: Path) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:  # the child never returns
            os.close(reading)
            code = 1
            try:
                self._serve(model, folder, writing)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            self.url = pipe.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), "the fork did not listen"
        self.process = self
        self.returncode: int | None = None

    @staticmethod
    def _serve(model: Path, folder: Path, pipe: int) -> None:
        from tisat.watch import Watch
        from tisat_serve.api.app import make_app
        from tisat_serve.engine.group import Group
        from tisat_serve.runner import listen, running
        from tisat_serve.security import Tokens

        def tell(url: str) -> None:
            os.write(pipe, f"{url}\n".encode())

        with running(folder, [Group("main", Watch.load(model), silent_after=86400.0)]) as service:
            app = make_app(service, Tokens(service.engine.store))
            listen(app, host="127.0.0.1", port=0, ready=tell)

    def poll(self) -> int | None:
        if self.returncode is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self) -> int:
        os.kill(self.pid, signal.SIGTERM)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

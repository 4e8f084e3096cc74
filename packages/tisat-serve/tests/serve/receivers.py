"""Small servers on this machine that remember what they were sent, and one that answers like Prometheus."""

import json
import threading
import urllib.parse
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class Receiver:
    """Remembers requests as ``(path, headers, body)``; answers with ``code``."""

    def __init__(self, answer: Callable[[str, bytes], bytes] | None = None) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.code, self.location = 200, ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.requests.append((self.path, dict(self.headers), body))
                content = answer(self.path, body) if answer else b"{}"
                self.send_response(outer.code)
                if outer.location:
                    self.send_header("location", outer.location)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


def like_prometheus(value: Callable[[str, str, float], object]) -> Callable[[str, bytes], bytes]:
    """Answers ``query_range``: ``value(query, entity, time)`` or None, for entities a and b."""

    def answer(_: str, body: bytes) -> bytes:
        asked = {key: one[0] for key, one in urllib.parse.parse_qs(body.decode()).items()}
        start, stop, step = (float(asked[name]) for name in ("start", "end", "step"))
        result = []
        for who in ("a", "b"):
            times = [start + k * step for k in range(int((stop - start) / step + 1e-6) + 1)]
            pairs = [(at, value(asked["query"], who, at)) for at in times]
            result.append(
                {"metric": {"instance": who, "job": "x"}, "values": [[at, str(v)] for at, v in pairs if v is not None]}
            )
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()

    return answer

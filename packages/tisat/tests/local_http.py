"""A real HTTP server for the downloader: threaded, honours ranges, and misbehaves when told to."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What the server gives, how it misbehaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)  # "/path" -> content
    break_after: dict[str, list[int]] = field(
        default_factory=dict
    )  # "/path" -> bytes to send before hanging up, in turn
    status: dict[str, list[int]] = field(default_factory=dict)  # "/path" -> answers before the good one
    ranges: bool = True  # whether Range is honoured
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # (path, Range header)
    address: str = ""


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

        def _answer(self, status: int, headers: dict[str, str], body: bytes, send: int) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body[:send])
            self.close_connection = True

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.requests.append((self.path, asked))
            if site.status.get(self.path):
                return self._answer(site.status[self.path].pop(0), {}, b"no", 2)
            if self.path not in site.files:
                return self._answer(404, {}, b"no", 2)
            content = site.files[self.path]
            hang_up = site.break_after.get(self.path)
            if asked and site.ranges:
                start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= len(content):
                    return self._answer(416, {"Content-Range": f"bytes */{len(content)}"}, b"", 0)
                body = content[start:]
                headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
                return self._answer(206, headers, body, hang_up.pop(0) if hang_up else len(body))
            return self._answer(200, {}, content, hang_up.pop(0) if hang_up else len(content))

    return Handler


class serve:  # noqa: N801
    """``with serve() as site``: the server runs in its own threads until the block ends."""

    def __enter__(self) -> Site:
        site = Site()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        site.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        return site

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

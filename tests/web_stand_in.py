"""A web server of our own, in a thread, that can be told to misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What the server has and how it behaves; `asked` are the Range headers of the requests so far."""

    files: dict[str, bytes] = field(default_factory=dict)
    etag: str | None = '"first"'
    last_modified: str | None = None
    has_ranges: bool = True
    honours_if_range: bool = True
    tells_length: bool = True
    drops_after: list[int] = field(default_factory=list)  # for each next answer: bytes before it breaks off
    answers: list[int] = field(default_factory=list)  # for each next request: a status instead of the file
    asked: list[str | None] = field(default_factory=list)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site, asked = self.site, self.headers.get("Range")
        site.asked.append(asked)
        body = site.files.get(self.path)
        status = site.answers.pop(0) if site.answers else 200 if body is not None else 404
        if status != 200 or body is None:
            self.send_error(status)
            return
        start = self._start(body)
        if start is not None and start >= len(body):
            self.send_error(416)
            return
        rest = body if start is None else body[start:]
        self.send_response(200 if start is None else 206)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if site.etag:
            self.send_header("ETag", site.etag)
        if site.last_modified:
            self.send_header("Last-Modified", site.last_modified)
        if site.tells_length:
            self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        limit = site.drops_after.pop(0) if site.drops_after else len(rest)
        self.wfile.write(rest[:limit])
        self.close_connection = True

    def _start(self, body: bytes) -> int | None:
        site, asked = self.site, self.headers.get("Range")
        if not site.has_ranges or asked is None:
            return None
        condition = self.headers.get("If-Range")
        if site.honours_if_range and condition not in (None, site.etag, site.last_modified):
            return None
        return int(asked.removeprefix("bytes=").rstrip("-"))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """The site on a free port of this machine, until the block ends."""
    handler = type("Handler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

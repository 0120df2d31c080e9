"""A hub of our own, in a thread: it speaks the part of the hub's HTTP that creates, uploads and commits."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_right"


@dataclass
class Hub:
    """Repositories by name and branch; `writers` are the owners that the right token may write for."""

    url: str = ""
    writers: tuple[str, ...] = ("ada",)
    private: dict[str, bool] = field(default_factory=dict)
    files: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)  # large files by sha256
    card_errors: list[str] = field(default_factory=list)  # what it says of every card
    breaks_at: str | None = None  # the end of a path that is answered with 500


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or self._chunks()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer({"error": "Invalid credentials"}, 401)
        path = self.path.partition("?")[0]
        if self.hub.breaks_at is not None and path.endswith(self.hub.breaks_at):
            return self._answer({"error": "out of order"}, 500)
        parts = path.strip("/").split("/")
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            errors = [{"message": text} for text in self.hub.card_errors]
            return self._answer({"errors": errors, "warnings": []}, 400 if errors else 200)
        if path.endswith("/info/lfs/objects/batch"):
            return self._batch(json.loads(body))
        name, verb, branch = "/".join(parts[2:4]), parts[4], parts[5]
        if verb == "branch":
            self.hub.files.setdefault((name, branch), {})
            return self._answer({})
        if (name, branch) not in self.hub.files:
            return self._answer({"error": "Repository not found"}, 404)
        if verb == "preupload":
            wanted = json.loads(body)["files"]
            modes = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                    "oid": None,
                }
                for file in wanted
            ]
            return self._answer({"files": modes})
        assert verb == "commit", path
        return self._commit(name, branch, [json.loads(line) for line in body.splitlines()])

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert hashlib.sha256(body).hexdigest() == self.path.rpartition("/")[2]
        self.hub.stored[self.path.rpartition("/")[2]] = body
        self._answer({})

    def do_GET(self) -> None:
        name = "/".join(self.path.strip("/").split("/")[2:4])
        if name not in self.hub.private:
            return self._answer({"error": "Repository not found"}, 404)
        return self._answer({"id": name, "private": self.hub.private[name], "sha": "0" * 40})

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted['organization']}/{wanted['name']}"
        if wanted["organization"] not in self.hub.writers:
            return self._answer({"error": "You don't have the rights"}, 403)
        url = {"url": f"{self.hub.url}/{name}", "id": name}
        if name in self.hub.private:
            return self._answer({"error": "You already created this model repo", **url}, 409)
        is_private = wanted.get("visibility") == "private" or wanted.get("private") is True
        self.hub.private[name] = is_private
        self.hub.files[name, "main"] = {}
        return self._answer(url)

    def _batch(self, wanted: dict[str, Any]) -> None:
        objects = [
            {**each, "actions": {"upload": {"href": f"{self.hub.url}/store/{each['oid']}"}}}
            for each in wanted["objects"]
        ]
        self._answer({"transfer": "basic", "objects": objects})

    def _commit(self, name: str, branch: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.hub.messages.append(value["summary"])
            elif line["key"] == "file":
                self.hub.files[name, branch][value["path"]] = base64.b64decode(value["content"])
            else:
                assert line["key"] == "lfsFile"
                self.hub.files[name, branch][value["path"]] = self.hub.stored[value["oid"]]
        oid = hashlib.sha1(repr(lines).encode()).hexdigest()
        self._answer({"commitUrl": f"{self.hub.url}/{name}/commit/{oid}", "commitOid": oid})

    def _chunks(self) -> bytes:
        body = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return body

    def _answer(self, values: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving_hub() -> Iterator[Hub]:
    """The hub on a free port of this machine, until the block ends."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

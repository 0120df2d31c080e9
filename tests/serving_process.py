"""A real `gemel serve` in a process of its own, on a free port, to talk to, load and stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import httpx

START_SECONDS = 180.0
COMMAND = [sys.executable, "-c", "from gemel.cli import main; main()", "serve"]


class RunningServer:
    """A server that has said that it is ready."""

    def __init__(self, *arguments: str, threads: int | None = 2, **environment: str) -> None:
        self.log: list[dict[str, Any]] = []
        chosen = [] if threads is None else ["--threads", str(threads)]
        self.process = subprocess.Popen(
            [*COMMAND, "--port", "0", *chosen, *arguments],
            stderr=subprocess.PIPE,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **environment},
            text=True,
        )
        self._news = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        try:
            self.port = int(self.wait_for("ready", START_SECONDS)["port"])
        except AssertionError:
            self.process.kill()
            raise
        self.url = f"http://127.0.0.1:{self.port}"

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                with self._news:
                    self.log.append(json.loads(line) if line.startswith("{") else {"event": line.strip()})
                    self._news.notify_all()

    def wait_for(self, event: str, seconds: float = 60.0, after: int = 0) -> dict[str, Any]:
        """The first log entry of that event, from an entry on."""
        until = time.monotonic() + seconds
        with self._news:
            while True:
                for entry in self.log[after:]:
                    if entry["event"] == event:
                        return entry
                if time.monotonic() > until or self.process.poll() is not None:
                    raise AssertionError(f"no {event!r} in the log: {self.log[-5:]}")
                self._news.wait(0.1)

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        """One request on a connection of its own."""
        return httpx.post(self.url + path, json=body, timeout=60, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """One request on a connection of its own."""
        return httpx.get(self.url + path, timeout=60, **options)

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = self.get("/metrics").text.splitlines()
        return sum(
            float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """End the server, and its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._listener.join(30)
        return code

"""SIGTERM while an answer is still on its way to a client that reads slowly, or not at all."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from serve.made import TinyModels
from serving_process import RunningServer

from gemel.serve.settings import Limits, ServeSettings

BODY = json.dumps({"inputs": ["a man runs " * 1_000] * 20}).encode()
HEAD = (
    "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(BODY)}\r\n\r\n"
).encode()


@pytest.fixture
def slow_reader(tiny_models: TinyModels) -> Iterator[tuple[RunningServer, socket.socket]]:
    """A server with an answer of some megabytes for a client that has only read its beginning."""
    running = RunningServer("--model", str(tiny_models.encoder_folder))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", running.port))
        connection.sendall(HEAD + BODY)
        assert connection.recv(12) == b"HTTP/1.1 200"
        yield running, connection
    running.stop()


def told_at_the_end(running: RunningServer) -> dict[str, Any]:
    running.stop()  # which reads the log to its end
    (entry,) = [entry for entry in running.log if entry["event"] == "stopped"]
    return entry


def test_an_answer_that_is_being_sent_is_sent_to_its_end(
    slow_reader: tuple[RunningServer, socket.socket],
) -> None:
    running, connection = slow_reader
    running.signal(signal.SIGTERM)
    running.wait_for("stopping")
    time.sleep(2.5)  # longer than a server without any request waits
    received = bytearray()
    while chunk := connection.recv(65_536):
        received += chunk
    start, _, body = bytes(received).partition(b"\r\n\r\n")
    assert len(body) == int(start.lower().partition(b"content-length: ")[2].split()[0]) > 3_000_000
    assert len(json.loads(body)) == 20
    assert running.process.wait(60) == 0
    assert told_at_the_end(running)["abandoned"] == 0


def test_an_answer_that_is_cut_is_told_as_abandoned(slow_reader: tuple[RunningServer, socket.socket]) -> None:
    running, _ = slow_reader
    running.signal(signal.SIGTERM)
    running.wait_for("stopping")
    time.sleep(1.5)
    assert running.process.poll() is None
    running.signal(signal.SIGTERM)  # a second one does not wait
    assert running.process.wait(60) == 0
    assert told_at_the_end(running)["abandoned"] == 1


def test_stopping_may_take_longer_than_any_request() -> None:
    for seconds in (1.0, 60.0, 600.0):
        settings = ServeSettings(limits=Limits(timeout_seconds=seconds))
        assert settings.drain_seconds >= seconds + 10

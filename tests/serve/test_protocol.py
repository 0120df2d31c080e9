"""Heads of requests: those that ask for another protocol, and those that do not end."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from statistics import median

import pytest
from serve.made import TinyModels
from serving_process import RunningServer

BODY = b'{"inputs": "a man"}'
UPGRADE = (
    b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
    b"Upgrade: h2c\r\n"  # what Java's HttpClient sends with the first request of a connection
)
WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"


@pytest.fixture
def connection(server: RunningServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as opened:
        yield opened


def head(more: bytes, *, is_chunked: bool = False, path: bytes = b"/embed") -> bytes:
    length = b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: %d" % len(BODY)
    start = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % path
    return start + more + length + b"\r\n\r\n"


def answer(connection: socket.socket, received: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """The next answer's status, its body, and what has come after it."""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(65_536)
        assert chunk, received
        received += chunk
    start, _, body = received.partition(b"\r\n\r\n")
    length = int(start.lower().partition(b"content-length:")[2].split()[0])
    while len(body) < length:
        chunk = connection.recv(65_536)
        assert chunk, body
        body += chunk
    return start.split()[1], body[:length], body[length:]


@pytest.mark.parametrize("pause_seconds", [0.0, 0.05], ids=["at once", "in parts"])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["announced", "in chunks"])
@pytest.mark.parametrize("asked", [UPGRADE, WEBSOCKET], ids=["h2c", "websocket"])
def test_who_asks_for_another_protocol_is_answered_in_this_one(
    server: RunningServer, connection: socket.socket, asked: bytes, is_chunked: bool, pause_seconds: float
) -> None:
    expected = server.post("/embed", json.loads(BODY)).json()
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY) if is_chunked else BODY
    for _ in range(2):  # and the connection can be used again
        parts = (head(asked, is_chunked=is_chunked), body[:5], body[5:])
        for part in parts if pause_seconds else [b"".join(parts)]:
            connection.sendall(part)
            time.sleep(pause_seconds)
        status, found, rest = answer(connection)
        assert (status, json.loads(found), rest) == (b"200", expected, b"")


def test_requests_that_ask_for_another_protocol_one_behind_the_other_are_answered_in_order(
    connection: socket.socket,
) -> None:
    asked = 3_000
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    connection.sendall(get * asked + head(UPGRADE) + BODY)
    rest = b""
    for _ in range(asked):
        status, _, rest = answer(connection, rest)
        assert status == b"200"
    status, body, rest = answer(connection, rest)
    assert (status, len(json.loads(body)), rest) == (b"200", 1, b"")


def test_a_tunnel_is_refused(server: RunningServer, connection: socket.socket) -> None:
    connection.sendall(b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n")
    assert answer(connection)[0] == b"400"
    assert server.get("/health").status_code == 200


def test_an_upgrade_is_turned_away_when_there_is_no_room(tiny_models: TinyModels) -> None:
    running = RunningServer("--model", str(tiny_models.encoder_folder), "--max-concurrent-requests", "1")
    address = ("127.0.0.1", running.port)
    with (
        socket.create_connection(address, timeout=30) as holding,
        socket.create_connection(address, timeout=30) as asking,
    ):
        holding.sendall(head(b"") + BODY[:5])
        until = time.monotonic() + 10
        while running.metric("gemel_requests") < 2 and time.monotonic() < until:
            pass
        for _ in range(2):
            asking.sendall(head(UPGRADE) + BODY)
            assert answer(asking)[0] == b"429"
        holding.sendall(BODY[5:])
        assert answer(holding)[0] == b"200"
        asking.sendall(head(UPGRADE) + BODY)
        assert answer(asking)[0] == b"200"
    assert running.stop() == 0


@pytest.mark.parametrize("end", [b"", b" HTTP/1.1\r\n\r\n"], ids=["without an end", "whole"])
@pytest.mark.parametrize(
    "start",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 66_000,
        b"GET /health?" + b"a" * 66_000,
        b"GET /health HTTP/1.1\r\nHost: localhost" + b"".join(b"\r\nX-%d: a" % n for n in range(8_000)),
    ],
    ids=["one header", "the path", "many headers"],
)
def test_a_head_that_is_too_large_is_refused(
    server: RunningServer, connection: socket.socket, start: bytes, end: bytes
) -> None:
    connection.sendall(start + end)
    status, body, _ = answer(connection)
    assert status == b"431"
    assert "more than 65,536 bytes" in json.loads(body)["error"]["message"]
    assert connection.recv(65_536) == b""
    assert server.get("/health").status_code == 200


def test_headers_after_the_body_have_an_end_too(server: RunningServer, connection: socket.socket) -> None:
    connection.sendall(head(b"", is_chunked=True) + b"0\r\nX-Long: ")
    until = time.monotonic() + 15
    while server.metric("gemel_requests") < 2 and time.monotonic() < until:
        time.sleep(0.01)  # until that was read: the one above, and the question itself
    connection.sendall(b"a" * 66_000)
    began = time.monotonic()
    assert connection.recv(65_536) == b""
    assert time.monotonic() - began < 15  # a body that does not come is given up after 20
    assert server.get("/health").status_code == 200


def test_a_head_that_grows_and_grows_keeps_nobody_waiting(
    server: RunningServer, connection: socket.socket
) -> None:
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
    waits = []
    try:
        for _ in range(12):
            connection.sendall(b"a" * 1_000_000)
            waits.append(server.get("/health").elapsed.total_seconds())
    except OSError:
        assert waits  # it was closed meanwhile
    assert median(waits) < 1


def test_a_long_head_within_the_limit_and_a_large_body_are_read(connection: socket.socket) -> None:
    body = json.dumps({"inputs": ["a man " * 100] * 1_000}).encode()
    more = b"X-Long: " + b"a" * 60_000 + b"\r\n"
    start = head(more).replace(b"Content-Length: %d" % len(BODY), b"Content-Length: %d" % len(body))
    for _ in range(2):
        connection.sendall(start + body)
        status, found, rest = answer(connection)
        assert (status, len(json.loads(found)), rest) == (b"200", 1_000, b"")

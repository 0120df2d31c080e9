"""More requests than are answered at once: how they are turned away, and what becomes of connections."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from serve.made import TinyModels
from serving_process import RunningServer

BODY = json.dumps({"inputs": "a man"}).encode()
HEADERS = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def busy_server(tiny_models: TinyModels) -> Iterator[RunningServer]:
    """A server that answers one request at a time."""
    running = RunningServer("--model", str(tiny_models.encoder_folder), "--max-concurrent-requests", "1")
    yield running
    assert running.stop() == 0


@contextmanager
def held(server: RunningServer) -> Iterator[socket.socket]:
    """A request that is being read, and stays so: the server has no room for another."""
    before = server.metric("gemel_requests")
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(_head(len(BODY)) + BODY[:5])
        until = time.monotonic() + 60
        while server.metric("gemel_requests") == before:
            assert time.monotonic() < until, "the request was never begun"
        yield connection


@pytest.fixture
def connection(busy_server: RunningServer) -> Iterator[http.client.HTTPConnection]:
    opened = http.client.HTTPConnection("127.0.0.1", busy_server.port, timeout=30)
    yield opened
    opened.close()


def _head(length: int, more: str = "", path: str = "/embed") -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", more)
    return "\r\n".join([*filter(None, lines), f"Content-Length: {length}", "", ""]).encode()


def _post(connection: http.client.HTTPConnection, path: str = "/embed") -> http.client.HTTPResponse:
    connection.request("POST", path, BODY, HEADERS)
    return connection.getresponse()


def _received_until(connection: socket.socket, is_enough: Callable[[bytes], bool]) -> bytes:
    received = b""
    while not is_enough(received):
        chunk = connection.recv(65_536)
        assert chunk, received
        received += chunk
    return received


def test_a_connection_that_was_turned_away_can_be_used_again(
    busy_server: RunningServer, connection: http.client.HTTPConnection
) -> None:
    with held(busy_server) as holding:
        for _ in range(3):
            refused = _post(connection)
            told = json.loads(refused.read())
            assert refused.status == 429
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.headers["x-content-type-options"] == "nosniff"
            assert told["error_type"] == "Overloaded"
            assert "max_concurrent_requests=1" in told["error"]
        connection.request("GET", "/health")
        assert connection.getresponse().read() is not None
        holding.sendall(BODY[5:])
        assert b" 200 " in holding.recv(65_536)
    answered = _post(connection)
    assert answered.status == 200
    assert len(json.loads(answered.read())) == 1


def test_every_dialect_is_turned_away_in_its_own_words(
    busy_server: RunningServer, connection: http.client.HTTPConnection
) -> None:
    with held(busy_server):
        answers = {path: json.loads(_post(connection, path).read()) for path in ("/embed", "/v1/embeddings")}
    assert answers["/embed"]["error_type"] == "Overloaded"
    assert "max_concurrent_requests" in answers["/v1/embeddings"]["error"]["message"]


@pytest.mark.parametrize("more", ["Connection: close", "Expect: 100-continue", "X-Note: a body in pieces"])
def test_it_is_told_whatever_the_client_wants_of_the_connection(
    busy_server: RunningServer, more: str
) -> None:
    size = 1 if more.startswith("X") else len(BODY)
    with (
        held(busy_server),
        socket.create_connection(("127.0.0.1", busy_server.port), timeout=30) as connection,
    ):
        connection.sendall(_head(len(BODY), more) + BODY[:size])
        for start in range(size, len(BODY), size):
            connection.sendall(BODY[start : start + size])
        received = _received_until(connection, lambda received: b"Overloaded" in received)
    assert b" 429 " in received
    assert received.lower().count(b"content-length") == 1


@pytest.mark.parametrize(
    ("first", "more"),
    [("HTTP/1.0", "Connection: keep-alive"), ("HTTP/1.1", "Origin: http://127.0.0.1:{port}")],
    ids=["an old client", "a page"],
)
def test_who_needs_more_than_the_short_answer_is_told_by_the_application(
    busy_server: RunningServer, first: str, more: str
) -> None:
    head = _head(len(BODY), more.format(port=busy_server.port)).replace(b"HTTP/1.1", first.encode())
    head = head.replace(b"Host: localhost", f"Host: 127.0.0.1:{busy_server.port}".encode())
    with (
        held(busy_server),
        socket.create_connection(("127.0.0.1", busy_server.port), timeout=30) as connection,
    ):
        connection.sendall(head + BODY)
        received = _received_until(connection, lambda received: b"Overloaded" in received)
        assert b" 429 " in received
        assert (b"connection: close" in received.lower()) == (first == "HTTP/1.0")
        assert (b"x-request-id" in received.lower()) == ("Origin" in more)


def test_who_is_turned_away_and_never_sends_the_body_is_told_so_all_the_same(tiny_models: TinyModels) -> None:
    options = ("--max-concurrent-requests", "1", "--body-timeout-seconds", "6")
    running = RunningServer("--model", str(tiny_models.encoder_folder), *options)
    try:
        with (
            held(running),
            socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection,
        ):
            connection.sendall(_head(len(BODY)) + BODY[:3])
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
        assert b" 429 " in received
    finally:
        running.stop()


def test_requests_sent_one_behind_the_other_are_answered_in_order(busy_server: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", busy_server.port), timeout=30) as connection:
        connection.sendall(3 * (_head(len(BODY)) + BODY))
        received = _received_until(
            connection,
            lambda all_: all_.count(b"HTTP/1.1 ") == 3 and all_.rstrip().endswith((b"]", b"}")),
        )
    assert received.startswith(b"HTTP/1.1 200 ")


def test_as_many_connections_as_come_at_once_are_let_in(busy_server: RunningServer) -> None:
    crowd = []
    try:
        for _ in range(600):
            connection = socket.create_connection(("127.0.0.1", busy_server.port), timeout=30)
            connection.sendall(_head(len(BODY)) + BODY)
            crowd.append(connection)
        statuses = {connection.recv(65_536).split(b" ", 2)[1] for connection in crowd}
    finally:
        for connection in crowd:
            connection.close()
    assert statuses <= {b"200", b"429"}
    assert b"200" in statuses

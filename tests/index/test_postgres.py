"""Collections in PostgreSQL: what is acknowledged stays, what is wrong is told, and passwords never are."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences
from store_places import Place, PostgresServer, postgres_server

from gemel.errors import Busy, InvalidInput, ModelMismatch, ServerError
from gemel.index import KnownModel, Record, Store
from gemel.index.opening import (
    address_in,
    collection_names,
    create_collection,
    is_remote,
    open_collection,
    shown_address,
)
from gemel.index.postgres import backend, schema, searching
from gemel.index.postgres.address import read_address
from gemel.index.remote import RemoteCollection
from gemel.similarity import top_k

pytestmark = pytest.mark.extras

SECRET = "s3cr%40t"  # as it stands in an address
PLAIN_SECRET = "s3cr@t"


@pytest.fixture
def server() -> PostgresServer:
    return postgres_server()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("postgresql", tmp_path)


@pytest.fixture
def collection(place: Place, toy_encoder: ToyEncoder) -> Iterator[Store]:
    with create_collection(place.address(), toy_encoder) as made:
        yield made


def schema_of(place: Place) -> str:
    return read_address(place.address()).schema


# What is wrong is told --------------------------------------------------------------------------------------


def test_a_wrong_password_is_told_and_never_shown(server: PostgresServer) -> None:
    server.execute("drop role if exists guarded")
    server.execute(f"create role guarded login password '{PLAIN_SECRET}'")
    server.ask_for_password_of("guarded")
    with pytest.raises(ServerError, match=r"guarded:\*\*\*@.* does not let this user in") as told:
        open_collection(address_in(server.with_user("guarded", "wr0ng%40one"), "c"))
    assert "wr0ng" not in _everything(told.value)
    with pytest.raises(InvalidInput, match="there is no collection 'c' in postgresql://guarded") as told:
        open_collection(address_in(server.with_user("guarded", SECRET), "c"))
    assert PLAIN_SECRET not in _everything(told.value)
    assert SECRET not in _everything(told.value)


def test_a_user_without_rights_is_told(server: PostgresServer, toy_encoder: ToyEncoder) -> None:
    server.execute("drop role if exists visitor")
    server.execute("create role visitor login")
    with pytest.raises(InvalidInput, match=r"does not allow this .*permission denied"):
        create_collection(address_in(server.with_user("visitor"), "c"), toy_encoder)
    server.execute("drop database if exists bare with (force)")
    server.execute("create database bare")
    with pytest.raises(InvalidInput, match="no pgvector yet, and this user may not create it"):
        create_collection(address_in(server.with_user("visitor", database="bare"), "c"), toy_encoder)


def test_a_bare_database_is_made_ready(server: PostgresServer, toy_encoder: ToyEncoder) -> None:
    server.execute("drop database if exists bare with (force)")
    server.execute("create database bare")
    uri = server.with_user("postgres", database="bare")
    with create_collection(address_in(uri, "first"), toy_encoder) as made:
        made.add(["the dog"])
    assert collection_names(uri) == ["first"]


def test_a_server_without_the_extension_is_told_what_to_install(server: PostgresServer) -> None:
    server.execute("drop database if exists bare with (force)")
    server.execute("create database bare")
    nowhere = server.with_user("postgres", database="bare")
    nowhere += "&options=-c%20extension_control_path%3D/nowhere"
    with pytest.raises(InvalidInput, match=r"has no pgvector; install it on the server"):
        open_collection(address_in(nowhere, "c"))


def test_a_server_that_is_not_there_is_told_soon(tmp_path: Path) -> None:
    began = time.monotonic()
    for host in ("127.0.0.1:9", f"?host={tmp_path}"):
        place, _, query = host.partition("?")
        uri = f"postgresql://me:{SECRET}@{place}/texts/c" + (f"?{query}" if query else "")
        with pytest.raises(ServerError, match=r"postgresql://me:\*\*\*@.*cannot be reached") as told:
            open_collection(uri, timeout_seconds=1)
        assert PLAIN_SECRET not in _everything(told.value)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://me:{SECRET}@host",
        f"postgresql://me:{SECRET}@host/database",
        f"postgresql://me:{SECRET}@host/a/b/c",
        f"postgresql://me:{SECRET}@host/database/name#more",
        "postgresql://me:s3cr%zz@host/database/name",
        f"postgresql://me:{SECRET}@host/database/na me",
        f"postgresql://me:{SECRET}@host/database/name?unknown=1",
        f"postgresql://me:{SECRET}@host:many/database/name",
        f"mysql://me:{SECRET}@host/database/name",
    ],
)
def test_an_address_that_cannot_be_read_is_told_without_its_password(uri: str) -> None:
    with pytest.raises(InvalidInput) as told:
        open_collection(uri)
    assert "s3cr" not in _everything(told.value)
    assert "s3cr" not in shown_address(uri)


def test_what_is_shown_of_an_address_has_no_password(server: PostgresServer) -> None:
    address = read_address(f"postgresql://me:{SECRET}@host:5433/texts/notes?sslmode=require")
    assert str(address) == "postgresql://me:***@host:5433/texts/notes"
    assert PLAIN_SECRET not in repr(address)
    apart = read_address(f"postgresql://host/texts/notes?password={SECRET}")
    assert str(apart) == "postgresql://:***@host/texts/notes"
    assert is_remote(f"postgresql://me:{SECRET}@host/texts/notes")
    assert not is_remote("c:/notes")
    assert not is_remote("./notes")


def test_another_model_is_refused_by_name(place: Place, collection: Store) -> None:
    class Other(ToyEncoder):
        fingerprint = "other-16"

    with pytest.raises(ModelMismatch, match=r"toy-16.*other-16"):
        open_collection(place.address(), Other())
    with pytest.raises(InvalidInput, match="exists already"):
        create_collection(place.address(), Other())


def test_tables_of_a_newer_gemel_are_refused(place: Place, collection: Store, server: PostgresServer) -> None:
    server.execute(f"insert into \"{schema_of(place)}\".migrations values (99, '9.9')")
    with pytest.raises(InvalidInput, match=r"made by gemel 9\.9 \(version 99 of its tables\)"):
        open_collection(place.address())


def test_tables_of_an_older_gemel_are_brought_up_to_date(
    place: Place,
    collection: Store,
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    toy_encoder: ToyEncoder,
) -> None:
    collection.add(sentences(20))

    def add_column(connection: Any, names: schema.Names, settings: Any) -> None:
        connection.execute(names.of("alter table {s}.state add column n_visits bigint default 0"))

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_column))
    with pytest.raises(InvalidInput, match="made by an older gemel"):
        open_collection(place.address(), read_only=True)
    for _ in range(2):
        with open_collection(place.address(), toy_encoder) as opened:
            assert len(opened) == len(collection)
    found = server.execute(f'select version from "{schema_of(place)}".migrations order by 1')
    assert found == [(1,), (2,)]
    assert server.execute(f'select n_visits from "{schema_of(place)}".state') == [(0,)]


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (Record("a\0", "text"), "NUL"),
        (Record("a", "te\0xt"), "NUL"),
        (Record("a", "text", {"k": ["\0"]}), "NUL"),
        (Record("x" * 3_000, "text"), "3,000 bytes"),
    ],
)
def test_what_postgres_cannot_keep_is_refused_by_name(collection: Store, record: Record, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        collection.add([Record("good", "text"), record])
    assert len(collection) == 0


def test_texts_and_metadata_come_back_as_they_were(collection: Store) -> None:
    records = [
        Record("backslash", "\\u0000 is no NUL", {"k": "\\u0000", "n": [1e300, 1.0, 2**63 - 1, -0.0, 1e-7]}),
        Record("words", " ".join(f"word{n}" for n in range(60_000)), {}),  # too many for a tsvector
        Record("long", "x" * 5_000 + " dog", {"é": {"日本": None}}),
        Record("empty", "", {}),
    ]
    collection.add(records)
    assert list(collection) == records
    assert [repr(record.metadata) for record in collection] == [repr(record.metadata) for record in records]
    assert [hit.record.id for hit in collection.lexical("dog")] == ["long"]
    assert [hit.record.id for hit in collection.lexical("word17")] == ["words"]


# Others at the same time ------------------------------------------------------------------------------------


def test_a_second_writer_waits_and_is_told(
    place: Place, collection: Store, server: PostgresServer, toy_encoder: ToyEncoder
) -> None:
    import psycopg

    with psycopg.connect(server.uri) as connection:
        schema.lock_writers(connection, read_address(place.address()))
        with (
            open_collection(place.address(), toy_encoder, timeout_seconds=5) as second,
            pytest.raises(Busy, match=r"is being written by others.* 5 seconds"),
        ):
            second.add(["a"])
        assert collection.search(["a"]) == [[]]  # readers do not wait
    collection.add(["a"])
    assert len(collection) == 1


def test_many_threads_and_processes_agree(place: Place, collection: Store, toy_encoder: ToyEncoder) -> None:
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            with open_collection(place.address(), ToyEncoder(), timeout_seconds=120) as own:
                for turn in range(4):
                    ids = [f"{number} {turn} {n}" for n in range(10)]
                    for store in (collection, own):  # the same twice: once new, once unchanged
                        store.add([f"the dog number {id_}" for id_ in ids], ids)
                    assert len(own.search(["the dog"], k=10)[0]) == 10
                    collection.remove(ids[:5])
        except Exception as error:  # to be told by the test, and not by the thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(collection) == 5 * 4 * 5


def test_what_is_read_bit_by_bit_is_one_commit(collection: Store, toy_encoder: ToyEncoder) -> None:
    collection.add(["a", "b", "c"], range(3))
    iterator = collection.records()
    next(iterator)
    collection.remove([1, 2])
    collection.add(["d"], [9])
    assert [record.id for record in iterator] == [1, 2]
    assert [record.id for record in collection] == [0, 9]


def test_a_collection_may_be_used_after_a_fork(collection: Store) -> None:
    collection.add(["the dog", "the cat"], range(2))
    child = os.fork()
    if not child:
        is_well = len(collection.search(["dog"], k=5)[0]) == 2 and collection.add(["new"], [9]).n_new == 1
        os._exit(0 if is_well else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(collection) == 3


# A server that dies -----------------------------------------------------------------------------------------


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(toy_encoder: ToyEncoder) -> None:
    server = PostgresServer()
    try:
        address = address_in(server.uri, "killed")
        acknowledged: list[int] = []
        errors: list[Exception] = []
        stop = threading.Event()
        with create_collection(address, toy_encoder, timeout_seconds=60) as collection:

            def add() -> None:
                number = 0
                try:
                    while not stop.is_set():
                        ids = list(range(number, number + 20))
                        collection.add([f"the dog number {n}" for n in ids], ids)
                        acknowledged.extend(ids)
                        number += 20
                except Exception as error:  # to be told by the test, and not by the thread
                    errors.append(error)

            thread = threading.Thread(target=add)
            thread.start()
            for _ in range(2):
                _wait_for_more(acknowledged)
                server.kill()
                time.sleep(0.5)
                server.restart()
            _wait_for_more(acknowledged)
            stop.set()
            thread.join(60)
            assert errors == []  # the client has waited, and gone on
            there = {record.id for record in collection}
            assert set(acknowledged) <= there
            assert len(there - set(acknowledged)) <= 20
            assert len(collection.search(["the dog"], k=10)[0]) == 10
            impatient = open_collection(address, timeout_seconds=5)
            assert impatient.count() == len(there)
            server.kill()
            with pytest.raises(ServerError, match="cannot be reached, and was not back within 5 seconds"):
                impatient.count()
            impatient.close()
    finally:
        server.stop()


def _wait_for_more(acknowledged: list[int], seconds: float = 180) -> None:
    n_wanted, deadline = len(acknowledged) + 100, time.monotonic() + seconds
    while len(acknowledged) < n_wanted:
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


# The index --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "dtype"), [(48, "float32"), (48, "float16"), (2_100, "float32")])
def test_recall_of_the_index_with_and_without_filters(
    place: Place, dim: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "READ_COST", 1e9)  # so that all searches go by the index
    n = 3_000 if dim < 100 else 600
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, dim))
    rows = (centres[rng.integers(0, 40, n)] + 0.7 * rng.standard_normal((n, dim))).astype(np.float32)
    queries = (centres[rng.integers(0, 40, 40)] + 0.7 * rng.standard_normal((40, dim))).astype(np.float32)
    with create_collection(place.address(), KnownModel("m", dim), dtype=dtype) as made:
        assert isinstance(made, RemoteCollection)
        records = [
            Record(k, f"text {k}", {"tenth": k % 10 == 0, "hundredth": k % 100 == 0}) for k in range(n)
        ]
        made.add_vectors(records, rows, fingerprint="m")
        made.build_index()
        assert made.plan().method == "approximate"
        for filter_, step in ((None, 1), ("tenth", 10), ("hundredth", 100), ("hundredth and tenth", 100)):
            k = min(10, n // step)
            expected = top_k(queries, rows[::step].astype(dtype), k).ids * step
            found = made.search_vectors(queries, k, fingerprint="m", filter=filter_)
            shares = [
                len({hit.record.id for hit in hits} & set(row.tolist())) / k
                for hits, row in zip(found, expected, strict=True)
            ]
            assert np.mean(shares) >= 0.98, filter_


def test_an_index_appears_when_it_is_worthwhile(
    place: Place, toy_encoder: ToyEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "INDEX_ROWS", 50)
    monkeypatch.setattr(searching, "READ_COST", 1e9)
    texts = list(dict.fromkeys(sentences(200)))
    with create_collection(place.address(), toy_encoder) as made:
        made.add(texts[:40])
        assert made.plan().method == "exact"
        made.add(texts)
        assert made.plan().method == "approximate"
        assert made.search(["the dog"], k=100) != [[]]
        assert len(made.search(["the dog"], k=100_000)[0]) == len(texts)  # more than any walk finds
        assert "index" in made.info().plan.reason


def test_an_index_whose_making_was_broken_off_is_made_again(
    place: Place, collection: Store, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "READ_COST", 1e9)
    collection.add(sentences(60))
    assert isinstance(collection, RemoteCollection)
    collection.build_index()
    server.execute(
        "update pg_index set indisvalid = false where indexrelid = "
        f"to_regclass('\"{schema_of(place)}\".{backend.INDEX_NAME}')"
    )
    assert collection.plan().method == "exact"
    collection.build_index()
    assert collection.plan().method == "approximate"


def test_a_filter_that_lets_few_through_is_read_in_full(place: Place, toy_encoder: ToyEncoder) -> None:
    texts = [f"{text} {n}" for n, text in enumerate(sentences(3_000))]
    with create_collection(place.address(), toy_encoder, text_search=()) as made:
        assert isinstance(made, RemoteCollection)
        made.add(texts, range(3_000), [{"n": n} for n in range(3_000)])
        made.build_index()
        assert made.plan().method == "approximate"
        assert made.plan("n < 2500").method == "approximate"
        assert made.plan("n < 3").reason == "reading all rows is quicker than asking the index"
        assert {hit.record.id for hit in made.search(["dog"], filter="n < 3")[0]} == {0, 1, 2}


def test_vectors_of_zeros_are_found(place: Place) -> None:
    with create_collection(place.address(), KnownModel("m", 3)) as made:
        made.add_vectors(["a", "b", "c"], [[0, 0, 0], [1, 0, 0], [-1, 0, 0]], fingerprint="m")
        found = made.search_vectors([[1, 0, 0]], 3, fingerprint="m")[0]
        assert [(hit.record.text, hit.score) for hit in found] == [("b", 1.0), ("a", 0.0), ("c", -1.0)]


def _everything(error: BaseException | None) -> str:
    """All that anybody gets to read of an error."""
    told = ""
    while error is not None:
        told += f"{error!r} {error} "
        error = error.__cause__
    return told

"""A collection keeps what it was given, finds it again, and refuses what it could not keep."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences

from gemel.errors import Busy, InvalidInput, SlowSearchWarning, WriteFailed
from gemel.index import Collection, Found, HnswParameters, Record
from gemel.index.database import FILE_NAME
from gemel.index.lock import locked
from gemel.index.writing import LOCK_NAME
from gemel.similarity import top_k

TEXTS = ["the dog sleeps", "the cat sleeps", "a man plays guitar", "a woman plays piano", "cold green street"]
YEARS = [{"year": 2018 + n, "tags": ["even" if n % 2 == 0 else "odd"]} for n in range(5)]


def ids_of(found: list[Found]) -> list[Any]:
    return [hit.record.id for hit in found]


def brute(queries: list[str], texts: dict[Any, str], k: int, measure: str = "cosine") -> list[list[Any]]:
    encoder, ids = ToyEncoder(), list(texts)
    hits = top_k(encoder.encode(queries), encoder.encode(list(texts.values())), k, measure)
    return [[ids[place] for place in row if place >= 0] for row in hits.ids.tolist()]


# In and out ------------------------------------------------------------------------------------------------


def test_vectors_are_given_back_with_their_ids(collection: Collection, toy_encoder: ToyEncoder) -> None:
    collection.add(TEXTS, range(5))
    ids, vectors = collection.vectors()
    assert ids == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(vectors, toy_encoder.encode(TEXTS))
    assert isinstance(vectors, np.memmap)
    collection.remove([1])
    ids, vectors = collection.vectors()
    assert ids == [0, 2, 3, 4]
    np.testing.assert_array_equal(vectors, toy_encoder.encode([TEXTS[n] for n in ids]))
    ids, vectors = collection.vectors([4, 1, "no", 2])
    assert ids == [4, 2]
    np.testing.assert_array_equal(vectors, toy_encoder.encode([TEXTS[4], TEXTS[2]]))
    assert collection.vectors([])[1].shape == (0, 16)


def test_no_character_is_lost(collection: Collection) -> None:
    collection.add(["a\0b"], ["c\0d"], [{"e\0f": "\0"}])
    assert list(collection) == [Record("c\0d", "a\0b", {"e\0f": "\0"})]


# Search ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_sizes")
def test_a_large_collection_is_searched_by_an_index(collection: Collection) -> None:
    texts = dict(enumerate(dict.fromkeys(sentences(400))))
    metadata = [{"tenth": n % 10 == 0} for n in texts]
    collection.add(list(texts.values())[:40], range(40), metadata[:40])
    assert collection.plan().method == "exact"
    collection.add(list(texts.values()), list(texts), metadata)
    plan = collection.info().plan
    assert plan.method == "approximate"
    assert f"an index of {len(texts)} vectors" in plan.reason
    queries = sentences(30, seed=1)

    def recall(texts: dict[Any, str], **options: Any) -> float:
        expected = brute(queries, texts, 10)
        found = [ids_of(hits) for hits in collection.search(queries, k=10, **options)]
        return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, expected, strict=True)]))

    assert recall(texts) >= 0.98
    few = {n: text for n, text in texts.items() if n % 10 == 0}
    assert collection.plan("tenth").method == "exact"
    assert recall(few, filter="tenth") == 1
    many = {n: text for n, text in texts.items() if n % 10}
    assert collection.plan("not tenth").method == "approximate"
    assert recall(many, filter="not tenth") >= 0.98
    gone = list(texts)[::3]
    collection.remove(gone)
    left = {n: text for n, text in texts.items() if n not in gone} | {-1: "a new dog", -2: "a new cat"}
    collection.add(["a new dog", "a new cat"], [-1, -2])
    assert "2 later vectors exactly" in collection.plan().reason
    assert recall(left) >= 0.98
    collection.compact()
    assert f"an index of {len(left)} vectors" in collection.plan().reason
    assert recall(left) >= 0.98


@pytest.mark.usefixtures("small_sizes")
def test_a_collection_that_shall_keep_no_index_stays_exact(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    Collection.create(tmp_path / "c", toy_encoder).close()
    with Collection.open(tmp_path / "c", toy_encoder, keeps_index=False) as made:
        made.add(sentences(300))
        assert made.plan().reason == "there is no index: build_index() makes one"
        seen: list[tuple[int, int]] = []
        made.build_index(HnswParameters(16, dtype="float32"), on_progress=lambda *done: seen.append(done))
        assert made.plan().method == "approximate"
        assert seen == [(len(made), len(made))]


# Opening and writing ---------------------------------------------------------------------------------------


def test_a_reader_sees_what_a_writer_commits(collection: Collection, toy_encoder: ToyEncoder) -> None:
    with Collection.open(collection.path, toy_encoder, read_only=True) as reader:
        assert reader.search(["dog"]) == [[]]
        collection.add(TEXTS, range(5))
        assert len(reader.search(["dog"])[0]) == 5
        collection.remove([0, 1])
        assert len(reader.search(["dog"])[0]) == 3
        collection.compact()
        assert len(reader.search(["dog"])[0]) == 3
        iterator = reader.records()
        next(iterator)
        collection.remove([2, 3, 4])
        assert [record.id for record in iterator] == [3, 4]  # one commit, for as long as it reads
        assert reader.search(["dog"]) == [[]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"measure": "jaccard"}, "measure is 'jaccard'"),
        ({"text_search": ("words",)}, "text_search has 'words'"),
    ],
)
def test_unknown_settings_are_refused_by_name(
    tmp_path: Path, toy_encoder: ToyEncoder, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        Collection.create(tmp_path / "c", toy_encoder, **settings)
    assert list(tmp_path.iterdir()) == []


def test_no_folder_is_overwritten_and_none_is_taken_for_a_collection(
    collection: Collection, tmp_path: Path, toy_encoder: ToyEncoder
) -> None:
    with pytest.raises(InvalidInput, match="exists already"):
        Collection.create(collection.path, toy_encoder)
    with pytest.raises(InvalidInput, match="is not a collection"):
        Collection.open(tmp_path / "nothing")
    (tmp_path / "other").mkdir()
    with sqlite3.connect(tmp_path / "other" / FILE_NAME) as connection:
        connection.execute("create table a (b)")
    connection.close()
    with pytest.raises(InvalidInput, match="not a table of records"):
        Collection.open(tmp_path / "other")


def test_a_newer_format_is_refused(collection: Collection) -> None:
    collection.close()
    with sqlite3.connect(collection.path / FILE_NAME) as connection:
        connection.execute("pragma user_version = 2")
    connection.close()
    with pytest.raises(InvalidInput, match=r"format 2 and this version of gemel reads up to 1; upgrade"):
        Collection.open(collection.path)


IN_A_READ_ONLY_FOLDER = """
import mmap, os, sys
sys.path[:0] = [{tests!r}]
from stand_ins import ToyEncoder
from gemel.errors import WriteFailed
from gemel.index import Collection
encoder = ToyEncoder()
encoder.encode(["dog"])  # which imports what nobody else may read
if os.getuid() == 0:
    os.setuid(65534)
with Collection.open({path!r}, encoder) as opened:
    print(len(opened), opened.search(["dog"], k=1)[0][0].record.id, opened.lexical("dog")[0].record.id)
    try:
        opened.add(["new"])
    except WriteFailed as error:
        print(error)
    print(opened.doctor(repair=False).findings)
"""


def test_a_read_only_folder_can_be_read(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    folder = tmp_path / "c"
    with Collection.create(folder, toy_encoder) as made:
        made.add(TEXTS, range(5))
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if not parent.stat().st_mode & 0o001:
            parent.chmod(0o755)  # of pytest's own folders, which nobody else may enter
    try:
        script = IN_A_READ_ONLY_FOLDER.format(tests=str(Path(__file__).parent.parent), path=str(folder))
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert run.stderr == ""
        assert run.stdout.startswith("5 0 0\n")
        assert "is open for reading only" in run.stdout
        assert run.stdout.endswith("\n()\n")
        assert sorted(file.name for file in folder.iterdir()) == [FILE_NAME, "vectors-1.bin", LOCK_NAME]
    finally:
        folder.chmod(0o755)


def test_nor_can_it_be_indexed_or_mended(collection: Collection, toy_encoder: ToyEncoder) -> None:
    with Collection.open(collection.path, toy_encoder, read_only=True) as reader:
        for call in (reader.build_index, reader.doctor):
            with pytest.raises(WriteFailed, match="open for reading only"):
                call()
        assert reader.doctor(repair=False).is_sound


# One writer at a time --------------------------------------------------------------------------------------


def test_a_second_writer_waits_and_is_told_for_whom(collection: Collection, toy_encoder: ToyEncoder) -> None:
    with Collection.open(collection.path, toy_encoder, timeout_seconds=0.05) as second:
        with (
            locked(collection.path / LOCK_NAME, 1),
            pytest.raises(Busy, match=rf"by process {os.getpid()} on "),
        ):
            second.add(["a"])
        second.add(["a"])
    assert len(collection) == 1


def test_a_writer_goes_on_when_the_other_has_ended(collection: Collection) -> None:
    with locked(collection.path / LOCK_NAME, 1):
        other = threading.Thread(target=collection.add, args=(TEXTS,))
        other.start()
        time.sleep(0.1)
        assert len(collection) == 0
    other.join()
    assert len(collection) == 5


def test_many_threads_may_use_one_collection(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    Collection.create(tmp_path / "shared", toy_encoder).close()
    collection = Collection.open(tmp_path / "shared", toy_encoder, timeout_seconds=120)
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                ids = [f"{number} {turn} {n}" for n in range(10)]
                collection.add([f"the dog number {id_}" for id_ in ids], ids)
                assert len(collection.search(["the dog"], k=10)[0]) == 10
                collection.remove(ids[:5])
        except Exception as error:  # to be told by the test, and not by the thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(collection) == 6 * 5 * 5
    assert collection.doctor().is_sound
    collection.close()


def test_a_reader_keeps_its_moment_while_others_see_a_later_one(collection: Collection) -> None:
    collection.add(TEXTS, range(5))
    with collection._database.reading() as connection:
        connection.execute("select change from state").fetchone()  # here its moment begins
        collection.remove([0])
        collection.add(["the dog sleeps on"], [9])
        assert ids_of(collection.search([TEXTS[0]], k=1)[0]) == [9]
        view = collection._dense.current(connection)
        assert (view.n_slots, view.live.tolist()) == (5, [True] * 5)
    assert ids_of(collection.search([TEXTS[0]], k=1)[0]) == [9]


def test_files_that_come_and_go_are_no_matter_to_info(collection: Collection) -> None:
    """As those of the table's log and of generations do, when another process compacts or closes."""
    collection.add(TEXTS, range(5))
    has_ended = threading.Event()

    def come_and_go() -> None:
        while not has_ended.is_set():
            for name in range(50):
                (collection.path / f"passing-{name}").touch()
            for name in range(50):
                (collection.path / f"passing-{name}").unlink()

    passing = threading.Thread(target=come_and_go)
    passing.start()
    try:
        assert {collection.info().n_records for _ in range(300)} == {5}
    finally:
        has_ended.set()
        passing.join()


def test_a_collection_may_be_used_after_a_fork(collection: Collection) -> None:
    collection.add(TEXTS, range(5))
    child = os.fork()
    if not child:
        os._exit(
            0 if len(collection.search(["dog"], k=5)[0]) == 5 and collection.add(["new"], [9]).n_new else 1
        )
    assert os.waitpid(child, 0)[1] == 0
    assert len(collection) == 6


@pytest.mark.usefixtures("small_sizes")
def test_an_index_of_which_nothing_is_left_is_made_anew(collection: Collection) -> None:
    collection.add(sentences(200), range(200))
    collection.build_index()
    collection.remove(range(200))
    collection.compact()
    assert collection.search(["dog"], k=3) == [[]]
    assert collection.vectors()[1].shape == (0, 16)
    collection.add(TEXTS, range(5))
    assert ids_of(collection.search([TEXTS[3]], k=1)[0]) == [3]


@pytest.mark.usefixtures("small_sizes")
def test_a_lost_index_is_told_once_and_built_again(collection: Collection, toy_encoder: ToyEncoder) -> None:
    collection.add(sentences(300), metadata=[{"n": n} for n in range(300)])
    expected = collection.search(["dog cat"], k=10)
    next(collection.path.glob("index-*.usearch")).write_bytes(b"nothing of an index")
    with Collection.open(collection.path, toy_encoder) as opened:
        with pytest.warns(SlowSearchWarning, match="look at every vector"):
            assert opened.search(["dog cat"], k=10) == expected
        assert opened.search(["dog cat"], k=10) == expected
        assert opened.plan().reason.startswith("the index is lost or damaged")
        opened.add(["one more"])  # what is derived is mended by the next writer that has noticed
        assert opened.plan().method == "approximate"
        assert opened.search(["dog cat"], k=10) == expected

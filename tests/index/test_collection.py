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

from gemel.errors import Busy, InvalidInput, ModelMismatch, SlowSearchWarning, WriteFailed
from gemel.index import Added, Collection, Filter, Found, HnswParameters, KnownModel, Record, lexical
from gemel.index.database import FILE_NAME
from gemel.index.lock import locked
from gemel.index.writing import LOCK_NAME
from gemel.similarity import MEASURES, top_k

TEXTS = ["the dog sleeps", "the cat sleeps", "a man plays guitar", "a woman plays piano", "cold green street"]
YEARS = [{"year": 2018 + n, "tags": ["even" if n % 2 == 0 else "odd"]} for n in range(5)]


def ids_of(found: list[Found]) -> list[Any]:
    return [hit.record.id for hit in found]


def brute(queries: list[str], texts: dict[Any, str], k: int, measure: str = "cosine") -> list[list[Any]]:
    encoder, ids = ToyEncoder(), list(texts)
    hits = top_k(encoder.encode(queries), encoder.encode(list(texts.values())), k, measure)
    return [[ids[place] for place in row if place >= 0] for row in hits.ids.tolist()]


# In and out ------------------------------------------------------------------------------------------------


def test_what_was_added_is_found_with_its_metadata_and_score(collection: Collection) -> None:
    assert collection.add(TEXTS, ids=list("abcde"), metadata=YEARS) == Added(5, 0, 0, 5)
    found = collection.search(["the dog sleeps", "guitar"], k=2)
    assert ids_of(found[0]) == ["a", "b"]
    assert found[0][0] == Found(Record("a", "the dog sleeps", {"year": 2018, "tags": ["even"]}), 1.0)
    assert ids_of(found[1])[0] == "c"
    assert len(collection) == 5
    assert "a" in collection
    assert "z" not in collection
    assert [record.id for record in collection] == list("abcde")


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_search_is_exact_by_every_measure(
    tmp_path: Path, toy_encoder: ToyEncoder, measure: str, dtype: Any
) -> None:
    texts = dict(enumerate(sentences(300)))
    with Collection.create(tmp_path / "c", toy_encoder, measure=measure, dtype=dtype) as made:
        made.add(list(texts.values()), list(texts))
        stored = toy_encoder.encode(list(texts.values())).astype(dtype)
        expected = top_k(toy_encoder.encode(sentences(20, seed=1)), stored, 7, measure)
        found = made.search(sentences(20, seed=1), k=7)
    assert [ids_of(hits) for hits in found] == expected.ids.tolist()
    assert [[hit.score for hit in hits] for hits in found] == expected.scores.tolist()


def test_ids_are_kept_as_given(collection: Collection) -> None:
    ids = [1, "1", -5, 2**63 - 1, -(2**63), "", "日本", "a\0b", "' or 1=1 --", np.int32(7)]
    collection.add([f"text {n}" for n in range(10)], ids)
    assert [record.id for record in collection] == ids
    kept = collection.get(ids)
    assert [(type(r.id), r.text) for r in kept if r] == [
        (str if isinstance(id_, str) else int, f"text {n}") for n, id_ in enumerate(ids)
    ]
    assert collection.get(["7", 8]) == [None, None]


def test_unchanged_text_is_not_encoded_again(collection: Collection, toy_encoder: ToyEncoder) -> None:
    collection.add(TEXTS, range(5), YEARS)
    assert collection.add(TEXTS, range(5), YEARS) == Added(n_unchanged=5)
    assert toy_encoder.n_encoded == 5
    assert collection.add(TEXTS, range(5)) == Added(n_changed=5)  # their metadata is gone
    assert toy_encoder.n_encoded == 5
    assert collection.add([TEXTS[0], "another"], [0, 1]) == Added(n_changed=1, n_unchanged=1, n_encoded=1)
    assert toy_encoder.n_encoded == 6
    assert ids_of(collection.search(["another"], k=1)[0]) == [1]
    assert collection.get([1]) == [Record(1, "another", {})]


def test_texts_without_ids_are_known_by_what_they_say(collection: Collection) -> None:
    assert collection.add([*TEXTS, TEXTS[0]]) == Added(5, 0, 1, 5)
    assert collection.add(TEXTS) == Added(n_unchanged=5)
    assert len(collection) == 5


def test_a_stream_of_records_is_added_in_windows(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemel.index.planning.WINDOW_TEXTS", 10)
    seen: list[int] = []
    stream = (Record(n, f"text {n}", {"n": n}) for n in range(25))
    assert collection.add(stream, on_progress=seen.append) == Added(25, 0, 0, 25)
    assert seen == [10, 20, 25]
    assert collection.get([17]) == [Record(17, "text 17", {"n": 17})]


def test_removed_records_are_never_found(collection: Collection) -> None:
    collection.add(TEXTS, range(5))
    assert collection.remove([0, 3, 99, 0]) == 2
    assert ids_of(collection.search(["the dog sleeps"], k=5)[0])[0] == 1
    assert ids_of(collection.lexical("dog sleeps piano", k=5)) == [1]
    assert collection.get([0]) == [None]
    assert collection.add([TEXTS[0]], [0]) == Added(1, 0, 0, 1)
    assert ids_of(collection.search(["the dog sleeps"], k=1)[0]) == [0]


def test_vectors_made_elsewhere_are_kept(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    model = KnownModel("toy-16", 16)
    with Collection.create(tmp_path / "c", model) as made:
        records = [Record(n, text) for n, text in enumerate(TEXTS)]
        added = made.add_vectors(records, toy_encoder.encode(TEXTS), fingerprint="toy-16")
        assert added == Added(n_new=5)
        found = made.search_vectors(toy_encoder.encode(TEXTS[:1]), k=1, fingerprint="toy-16")
        assert ids_of(found[0]) == [0]
        with pytest.raises(InvalidInput, match="opened without an encoder"):
            made.search(["dog"])
        with pytest.raises(InvalidInput, match="opened without an encoder"):
            made.add(["dog"])


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


# Search ----------------------------------------------------------------------------------------------------


def test_offset_continues_where_k_ended(collection: Collection) -> None:
    collection.add(sentences(100), range(100))
    whole = ids_of(collection.search(["the dog"], k=20)[0])
    assert ids_of(collection.search(["the dog"], k=5, offset=7)[0]) == whole[7:12]
    assert collection.search(["the dog"], k=5, offset=100) == [[]]
    words = ids_of(collection.lexical("dog cat", k=20))
    assert ids_of(collection.lexical("dog cat", k=5, offset=3)) == words[3:8]


@pytest.mark.parametrize(
    ("filter_", "allowed"),
    [
        ("year >= 2020", {2, 3, 4}),
        ('tags contains "odd"', {1, 3}),
        (Filter("year = ?", 2019), {1}),
        ("year = 1", set()),
    ],
)
def test_only_records_that_pass_the_filter_are_found(
    collection: Collection, filter_: Any, allowed: set[int]
) -> None:
    collection.add(TEXTS, range(5), YEARS)
    assert set(ids_of(collection.search(["the dog sleeps"], k=5, filter=filter_)[0])) == allowed
    assert set(ids_of(collection.lexical(" ".join(TEXTS), k=5, filter=filter_))) == allowed
    assert {record.id for record in collection.records(filter_)} == allowed
    assert collection.count(filter_) == len(allowed)
    collection.add(["the dog sleeps well"], [9], [YEARS[0]])
    assert set(ids_of(collection.search(["the dog sleeps"], k=5, filter=filter_)[0])) == allowed


def test_words_are_ranked_by_bm25(collection: Collection) -> None:
    collection.add(TEXTS, range(5))
    found = collection.lexical("Guitar the", k=5)
    assert ids_of(found) == [2, 0, 1]  # the rarer word counts more
    assert found[0].score > found[1].score > 0
    assert collection.lexical("nothing of this", k=5) == []
    assert collection.lexical("", k=5) == []


@pytest.mark.parametrize(
    "query", ['"', "a AND", "NEAR(", "*", "text:dog", "-dog", "dog OR", "!!!", "(", "^x", "\0"]
)
def test_no_word_is_taken_for_syntax(collection: Collection, query: str) -> None:
    collection.add(TEXTS, range(5))
    for tokenizer in ("word", "trigram"):
        assert isinstance(collection.lexical(query, tokenizer=tokenizer), list)


def test_accents_case_and_punctuation_make_no_difference(collection: Collection) -> None:
    collection.add(["Crème brûlée, s'il vous plaît!", "plain cream"], range(2))
    for query in ("creme BRULEE", "Crème", "(brûlée)", "plait?"):
        assert ids_of(collection.lexical(query)) == [0]


def test_words_that_stand_everywhere_give_way_to_rarer_ones(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add([f"the dog number {n}" for n in range(50)] + ["the rare one"], range(51))
    assert len(collection.lexical("the rare", k=60)) == 51
    monkeypatch.setattr(lexical, "MAX_MATCHES", 40)
    assert ids_of(collection.lexical("the rare", k=60)) == [50]
    assert len(collection.lexical("the", k=60)) == 51


def test_korean_is_found_before_its_particles(collection: Collection) -> None:
    collection.add(["나는 학교에 갔다", "우리 집은 작다", "고양이가 잔다"], range(3))
    assert ids_of(collection.lexical("학교", tokenizer="trigram")) == [0]
    assert ids_of(collection.lexical("학교는", tokenizer="trigram")) == [0]
    assert ids_of(collection.lexical("고양이는", tokenizer="trigram")) == [2]
    assert collection.lexical("고양이는", tokenizer="word") == []


def test_a_collection_without_full_text_says_so(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    with Collection.create(tmp_path / "c", toy_encoder, text_search=()) as made:
        made.add(TEXTS)
        with pytest.raises(InvalidInput, match="made without full text"):
            made.lexical("dog")
    with Collection.create(tmp_path / "d", toy_encoder, text_search="trigram") as made:
        with pytest.raises(InvalidInput, match="no full text by word: it has trigram"):
            made.lexical("dog", tokenizer="word")
        assert made.lexical("dog") == []


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


def test_everything_is_there_when_it_is_opened_again(collection: Collection, toy_encoder: ToyEncoder) -> None:
    collection.add(TEXTS, range(5), YEARS)
    before = collection.search(TEXTS, k=3)
    collection.close()
    with pytest.raises(InvalidInput, match="has been closed"):
        collection.count()
    with Collection.open(collection.path, toy_encoder) as opened:
        assert opened.search(TEXTS, k=3) == before
        assert opened.settings == collection.settings
        assert opened.info().n_records == 5


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


def test_another_models_vectors_and_queries_are_refused_naming_both(
    collection: Collection, toy_encoder: ToyEncoder
) -> None:
    class Other(ToyEncoder):
        fingerprint = "other-16"

    class Short(ToyEncoder):
        dim = 8

    for options in ({"encoder": Other()}, {"query_encoder": Other()}):
        with pytest.raises(ModelMismatch, match=r"toy-16.*other-16"):
            Collection.open(collection.path, **options)
    with pytest.raises(ModelMismatch, match=r"16 numbers.*gives 8"):
        Collection.open(collection.path, Short())
    with pytest.raises(ModelMismatch, match=r"toy-16.*other-16"):
        collection.add_vectors(["a"], np.zeros((1, 16)), fingerprint="other-16")
    with pytest.raises(ModelMismatch, match=r"toy-16.*other-16"):
        collection.search_vectors(np.zeros((1, 16)), fingerprint="other-16")


BAD_RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a lone text": ({"texts": "dog"}, "one str was given"),
    "a number": ({"texts": 5}, "one int was given"),
    "a text that is none": ({"texts": ["dog", 3]}, "text 1 is the int 3"),
    "half a surrogate pair": ({"texts": ["\ud800"]}, "half a surrogate pair"),
    "an id twice": ({"texts": ["a", "b"], "ids": [1, 1]}, "id 1 is given twice, at 0 and at 1"),
    "a lone id": ({"texts": ["a"], "ids": "x"}, "ids is the str 'x'"),
    "an id that is a float": ({"texts": ["a"], "ids": [1.0]}, "id 0 is the float 1.0"),
    "an id that is a bool": ({"texts": ["a"], "ids": [True]}, "id 0 is the bool True"),
    "an id that is None": ({"texts": ["a"], "ids": [None]}, "id 0 is the NoneType None"),
    "an id of 65 bits": ({"texts": ["a"], "ids": [2**63]}, "more than 64 bits"),
    "too few ids": ({"texts": ["a", "b"], "ids": [1]}, "ids end after 1"),
    "too many ids": ({"texts": ["a"], "ids": [1, 2]}, "more ids than the 1 texts"),
    "too few metadata": ({"texts": ["a", "b"], "metadata": [{}]}, "metadata end after 1"),
    "metadata for all": ({"texts": ["a"], "metadata": {"a": 1}}, "metadata is the dict"),
    "metadata that is no dict": ({"texts": ["a"], "metadata": [3]}, "metadata 0 is the int 3"),
    "metadata that is not JSON": ({"texts": ["a"], "metadata": [{"a": {1, 2}}]}, "not JSON"),
    "NaN in metadata": ({"texts": ["a"], "metadata": [{"a": float("nan")}]}, "not JSON"),
    "a key that is a number": ({"texts": ["a"], "metadata": [{1: 2}]}, "come back changed"),
    "metadata too deep": (
        {
            "texts": ["a"],
            "metadata": [eval("{'a':" * 90 + "1" + "}" * 90) | {"b": eval("[" * 101 + "]" * 101)}],
        },
        "deeper than 100",
    ),
    "ids beside records": ({"texts": [Record(1, "a")], "ids": [2]}, "give them once"),
}


@pytest.mark.parametrize("flaw", BAD_RECORDS)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(collection: Collection, flaw: str) -> None:
    collection.add(TEXTS, range(5))
    arguments, message = BAD_RECORDS[flaw]
    with pytest.raises(InvalidInput, match=message):
        collection.add(**arguments)
    assert len(collection) == 5


BAD_CALLS: dict[str, tuple[Any, str]] = {
    "a lone query": (lambda c: c.search("dog"), "one str"),
    "no k": (lambda c: c.search(["dog"], k=0), "k is 0"),
    "a negative offset": (lambda c: c.search(["dog"], offset=-1), "offset is -1"),
    "too many hits": (lambda c: c.search(["dog"], k=10**9), "at most"),
    "a filter that injects": (lambda c: c.search(["dog"], filter="1=1); drop table records; --"), "filter"),
    "a filter that is none": (lambda c: c.count(filter=3), "a filter is a str"),
    "a query of words that is a list": (lambda c: c.lexical(["dog"]), "is a str"),
    "vectors of another size": (
        lambda c: c.add_vectors(["a"], np.zeros((1, 5)), fingerprint="toy-16"),
        r"shape \(n, 16\)",
    ),
    "fewer vectors": (
        lambda c: c.add_vectors(["a", "b"], np.zeros((1, 16)), fingerprint="toy-16"),
        "2 records and 1 vectors",
    ),
    "vectors that are not finite": (
        lambda c: c.add_vectors(["a"], np.full((1, 16), np.inf), fingerprint="toy-16"),
        "row 0",
    ),
    "a query that is not finite": (
        lambda c: c.search_vectors(np.full((1, 16), np.nan), fingerprint="toy-16"),
        "row 0",
    ),
    "ids to remove that are none": (lambda c: c.remove([1.5]), "id 0 is the float 1.5"),
    "a lone id to remove": (lambda c: c.remove("abc"), "put it into a list"),
}


@pytest.mark.parametrize("flaw", BAD_CALLS)
def test_a_wrong_call_is_told_what_is_wrong(collection: Collection, flaw: str) -> None:
    collection.add(TEXTS, range(5))
    call, message = BAD_CALLS[flaw]
    with pytest.raises(InvalidInput, match=message):
        call(collection)
    assert len(collection) == 5


def test_half_precision_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    with (
        Collection.create(tmp_path / "c", KnownModel("m", 4), dtype="float16") as made,
        pytest.raises(InvalidInput, match="too large for float16 in row 1"),
    ):
        made.add_vectors(["a", "b"], [[1, 2, 3, 4], [1, 2, 3, 70_000]], fingerprint="m")


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


def test_what_is_open_for_reading_cannot_be_changed(collection: Collection, toy_encoder: ToyEncoder) -> None:
    collection.add(TEXTS, range(5))
    with Collection.open(collection.path, toy_encoder, read_only=True) as reader:
        calls = (
            lambda: reader.add(["a"]),
            lambda: reader.remove([1]),
            lambda: reader.compact(),
            lambda: reader.build_index(),
            lambda: reader.doctor(),
            lambda: reader.add_vectors(["a"], np.zeros((1, 16)), fingerprint="toy-16"),
        )
        for call in calls:
            with pytest.raises(WriteFailed, match="open for reading only"):
                call()
        assert reader.doctor(repair=False).is_sound
    assert len(collection) == 5


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
"""


def test_a_read_only_folder_can_be_read(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    folder = tmp_path / "c"
    with Collection.create(folder, toy_encoder) as made:
        made.add(TEXTS, range(5))
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)  # of pytest's own folders, which nobody else may enter
    try:
        script = IN_A_READ_ONLY_FOLDER.format(tests=str(Path(__file__).parent.parent), path=str(folder))
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert run.stderr == ""
        assert run.stdout.startswith("5 0 0\n")
        assert "is open for reading only" in run.stdout
        assert sorted(file.name for file in folder.iterdir()) == [FILE_NAME, "vectors-1.bin", LOCK_NAME]
    finally:
        folder.chmod(0o755)


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


def test_many_threads_may_use_one_collection(collection: Collection) -> None:
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

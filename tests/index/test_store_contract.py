"""What every collection does, wherever its records are kept: another store joins by a line in PLACES."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences
from store_places import Place

from gemel.errors import InvalidInput, ModelMismatch, WriteFailed
from gemel.index import Added, Filter, Found, KnownModel, Record, Store, lexical
from gemel.index.opening import create_collection, open_collection
from gemel.similarity import MEASURES, top_k

TEXTS = ["the dog sleeps", "the cat sleeps", "a man plays guitar", "a woman plays piano", "cold green street"]
YEARS = [{"year": 2018 + n, "tags": ["even" if n % 2 == 0 else "odd"]} for n in range(5)]


@pytest.fixture
def collection(place: Place, toy_encoder: ToyEncoder) -> Iterator[Store]:
    """An empty collection of a toy encoder's, in each place."""
    with create_collection(place.address(), toy_encoder) as made:
        yield made


def ids_of(found: list[Found]) -> list[Any]:
    return [hit.record.id for hit in found]


def test_what_was_added_is_found_with_its_metadata_and_score(collection: Store) -> None:
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
    place: Place, toy_encoder: ToyEncoder, measure: str, dtype: Any
) -> None:
    if place.kind == "milvus" and measure == "manhattan":
        with pytest.raises(InvalidInput, match="Milvus does not measure by manhattan"):
            create_collection(place.address("c"), toy_encoder, measure=measure)
        return
    texts = dict(enumerate(sentences(300)))
    with create_collection(place.address("c"), toy_encoder, measure=measure, dtype=dtype) as made:
        made.add(list(texts.values()), list(texts))
        stored = toy_encoder.encode(list(texts.values())).astype(dtype)
        expected = top_k(toy_encoder.encode(sentences(20, seed=1)), stored, 7, measure)
        found = made.search(sentences(20, seed=1), k=7)
    assert [ids_of(hits) for hits in found] == expected.ids.tolist()
    assert [[hit.score for hit in hits] for hits in found] == expected.scores.tolist()


def test_ids_are_kept_as_given(collection: Store) -> None:
    ids = [1, "1", -5, 2**63 - 1, -(2**63), "", "日本", "a\tb\\", "' or 1=1 --", np.int32(7)]
    collection.add([f"text {n}" for n in range(10)], ids)
    assert [record.id for record in collection] == ids
    kept = collection.get(ids)
    assert [(type(r.id), r.text) for r in kept if r] == [
        (str if isinstance(id_, str) else int, f"text {n}") for n, id_ in enumerate(ids)
    ]
    assert collection.get(["7", 8]) == [None, None]


def test_unchanged_text_is_not_encoded_again(collection: Store, toy_encoder: ToyEncoder) -> None:
    collection.add(TEXTS, range(5), YEARS)
    assert collection.add(TEXTS, range(5), YEARS) == Added(n_unchanged=5)
    assert toy_encoder.n_encoded == 5
    assert collection.add(TEXTS, range(5)) == Added(n_changed=5)  # their metadata is gone
    assert toy_encoder.n_encoded == 5
    assert collection.add([TEXTS[0], "another"], [0, 1]) == Added(n_changed=1, n_unchanged=1, n_encoded=1)
    assert toy_encoder.n_encoded == 6
    assert ids_of(collection.search(["another"], k=1)[0]) == [1]
    assert collection.get([1]) == [Record(1, "another", {})]


def test_texts_without_ids_are_known_by_what_they_say(collection: Store) -> None:
    assert collection.add([*TEXTS, TEXTS[0]]) == Added(5, 0, 1, 5)
    assert collection.add(TEXTS) == Added(n_unchanged=5)
    assert len(collection) == 5


def test_a_stream_of_records_is_added_in_windows(collection: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemel.index.planning.WINDOW_TEXTS", 10)
    seen: list[int] = []
    stream = (Record(n, f"text {n}", {"n": n}) for n in range(25))
    assert collection.add(stream, on_progress=seen.append) == Added(25, 0, 0, 25)
    assert seen == [10, 20, 25]
    assert collection.get([17]) == [Record(17, "text 17", {"n": 17})]


def test_removed_records_are_never_found(collection: Store) -> None:
    collection.add(TEXTS, range(5))
    assert collection.remove([0, 3, 99, 0]) == 2
    assert ids_of(collection.search(["the dog sleeps"], k=5)[0])[0] == 1
    assert ids_of(collection.lexical("dog sleeps piano", k=5)) == [1]
    assert collection.get([0]) == [None]
    assert collection.add([TEXTS[0]], [0]) == Added(1, 0, 0, 1)
    assert ids_of(collection.search(["the dog sleeps"], k=1)[0]) == [0]


def test_vectors_made_elsewhere_are_kept(place: Place, toy_encoder: ToyEncoder) -> None:
    model = KnownModel("toy-16", 16)
    with create_collection(place.address("c"), model) as made:
        records = [Record(n, text) for n, text in enumerate(TEXTS)]
        added = made.add_vectors(records, toy_encoder.encode(TEXTS), fingerprint="toy-16")
        assert added == Added(n_new=5)
        found = made.search_vectors(toy_encoder.encode(TEXTS[:1]), k=1, fingerprint="toy-16")
        assert ids_of(found[0]) == [0]
        with pytest.raises(InvalidInput, match="opened without an encoder"):
            made.search(["dog"])
        with pytest.raises(InvalidInput, match="opened without an encoder"):
            made.add(["dog"])


def test_offset_continues_where_k_ended(collection: Store) -> None:
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
    collection: Store, filter_: Any, allowed: set[int]
) -> None:
    collection.add(TEXTS, range(5), YEARS)
    assert set(ids_of(collection.search(["the dog sleeps"], k=5, filter=filter_)[0])) == allowed
    assert set(ids_of(collection.lexical(" ".join(TEXTS), k=5, filter=filter_))) == allowed
    assert {record.id for record in collection.records(filter_)} == allowed
    assert collection.count(filter_) == len(allowed)
    collection.add(["the dog sleeps well"], [9], [YEARS[0]])
    assert set(ids_of(collection.search(["the dog sleeps"], k=5, filter=filter_)[0])) == allowed


def test_words_are_ranked_by_bm25(collection: Store) -> None:
    collection.add(TEXTS, range(5))
    found = collection.lexical("Guitar the", k=5)
    assert ids_of(found) == [2, 0, 1]  # the rarer word counts more
    assert found[0].score > found[1].score > 0
    assert collection.lexical("nothing of this", k=5) == []
    assert collection.lexical("", k=5) == []


@pytest.mark.parametrize(
    "query", ['"', "a AND", "NEAR(", "*", "text:dog", "-dog", "dog OR", "!!!", "(", "^x", "\0"]
)
def test_no_word_is_taken_for_syntax(collection: Store, query: str) -> None:
    collection.add(TEXTS, range(5))
    for tokenizer in ("word", "trigram"):
        assert isinstance(collection.lexical(query, tokenizer=tokenizer), list)


def test_accents_case_and_punctuation_make_no_difference(collection: Store) -> None:
    collection.add(["Crème brûlée, s'il vous plaît!", "plain cream"], range(2))
    for query in ("creme BRULEE", "Crème", "(brûlée)", "plait?"):
        assert ids_of(collection.lexical(query)) == [0]


WORDS = (
    *("чай", "ёлка", "їжак", "ўрад", "οδός", "أحمد", "résumé", "İstanbul", "naïve", "한국어", "がっこう"),
    *("हिन्दी", "שָׁלוֹם", "Łódź", "Ångström", "Việt", "Ωμέγα", "ñandú"),
)


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
def test_every_word_is_found_by_itself_however_its_accents_are_written(
    collection: Store, stored: Literal["NFC", "NFD"]
) -> None:
    texts = [f"before {unicodedata.normalize(stored, word)} after" for word in WORDS]
    collection.add(texts, range(len(WORDS)))
    missed = [
        (word, asked)
        for number, word in enumerate(WORDS)
        for asked in ("NFC", "NFD")
        if number not in ids_of(collection.lexical(unicodedata.normalize(asked, word), k=len(WORDS)))
    ]
    assert missed == []


def test_words_that_the_filter_leaves_nothing_of_give_way_to_common_ones(
    collection: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "MAX_MATCHES", 10)
    collection.add(
        ["an invoice for us"] * 30 + ["a zebra"], range(31), [{"tenant": "kim"}] * 30 + [{"tenant": "lee"}]
    )
    assert len(collection.lexical("zebra invoice", k=10, filter="tenant = 'kim'")) == 10
    assert len(collection.lexical("zebra for invoice us", k=40, filter="tenant = 'kim'")) == 30
    assert collection.lexical("zebra", k=10, filter="tenant = 'kim'") == []
    assert ids_of(collection.lexical("zebra invoice", k=10, filter="tenant = 'lee'")) == [30]


def test_words_that_stand_everywhere_give_way_to_rarer_ones(
    collection: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add([f"the dog number {n}" for n in range(50)] + ["the rare one"], range(51))
    assert len(collection.lexical("the rare", k=60)) == 51
    monkeypatch.setattr(lexical, "MAX_MATCHES", 40)
    found = ids_of(collection.lexical("the rare", k=60))
    assert found[0] == 50
    assert place.kind == "milvus" or found == [50]  # Milvus ranks by all of them
    assert len(collection.lexical("the", k=60)) == 51


def test_words_are_counted_anew_when_texts_have_come_or_gone(
    collection: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "MAX_MATCHES", 10)
    collection.add(["a cat runs", "a dog runs"], [100, 101])
    assert set(collection.terms("dog cat")) == {"dog", "cat"}
    many = [f"dog number {n}" for n in range(20)]
    collection.add(many, range(20))
    assert place.kind == "milvus" or collection.terms("dog cat") == ["cat"]
    collection.remove(range(20))
    assert set(collection.terms("dog cat")) == {"dog", "cat"}


def test_korean_is_found_before_its_particles(collection: Store) -> None:
    collection.add(["나는 학교에 갔다", "우리 집은 작다", "고양이가 잔다"], range(3))
    assert ids_of(collection.lexical("학교", tokenizer="trigram")) == [0]
    assert ids_of(collection.lexical("학교는", tokenizer="trigram")) == [0]
    assert ids_of(collection.lexical("고양이는", tokenizer="trigram")) == [2]
    assert collection.lexical("고양이는", tokenizer="word") == []


def test_a_collection_without_full_text_says_so(place: Place, toy_encoder: ToyEncoder) -> None:
    with create_collection(place.address("c"), toy_encoder, text_search=()) as made:
        made.add(TEXTS)
        with pytest.raises(InvalidInput, match="made without full text"):
            made.lexical("dog")
    with create_collection(place.address("d"), toy_encoder, text_search="trigram") as made:
        with pytest.raises(InvalidInput, match="no full text by word: it has trigram"):
            made.lexical("dog", tokenizer="word")
        assert made.lexical("dog") == []


def test_everything_is_there_when_it_is_opened_again(
    collection: Store, place: Place, toy_encoder: ToyEncoder
) -> None:
    collection.add(TEXTS, range(5), YEARS)
    before = collection.search(TEXTS, k=3)
    collection.close()
    with pytest.raises(InvalidInput, match="has been closed"):
        collection.count()
    with open_collection(place.address(), toy_encoder) as opened:
        assert opened.search(TEXTS, k=3) == before
        assert opened.settings == collection.settings
        assert opened.info().n_records == 5


def test_another_models_vectors_and_queries_are_refused_naming_both(collection: Store, place: Place) -> None:
    class Other(ToyEncoder):
        fingerprint = "other-16"

    class Short(ToyEncoder):
        dim = 8

    for options in ({"encoder": Other()}, {"query_encoder": Other()}):
        with pytest.raises(ModelMismatch, match=r"toy-16.*other-16"):
            open_collection(place.address(), **options)
    with pytest.raises(ModelMismatch, match=r"16 numbers.*gives 8"):
        open_collection(place.address(), Short())
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
    "65 bits in metadata": (
        {"texts": ["a"], "metadata": [{"a": [{"b": -(2**63) - 1}]}]},
        "metadata 0 has a whole number of more than 64 bits",
    ),
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
def test_what_cannot_be_kept_is_refused_and_changes_nothing(collection: Store, flaw: str) -> None:
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
    "vectors of different lengths": (
        lambda c: c.add_vectors(["a", "b"], [[0.0] * 16, [0.0] * 5], fingerprint="toy-16"),
        "vectors are not one array",
    ),
    "queries of different lengths": (
        lambda c: c.search_vectors([[0.0] * 16, [0.0] * 5], fingerprint="toy-16"),
        "vectors are not one array",
    ),
    "a query that is not finite": (
        lambda c: c.search_vectors(np.full((1, 16), np.nan), fingerprint="toy-16"),
        "row 0",
    ),
    "ids to remove that are none": (lambda c: c.remove([1.5]), "id 0 is the float 1.5"),
    "a lone id to remove": (lambda c: c.remove("abc"), "put it into a list"),
}


@pytest.mark.parametrize("flaw", BAD_CALLS)
def test_a_wrong_call_is_told_what_is_wrong(collection: Store, flaw: str) -> None:
    collection.add(TEXTS, range(5))
    call, message = BAD_CALLS[flaw]
    with pytest.raises(InvalidInput, match=message):
        call(collection)
    assert len(collection) == 5


def test_half_precision_refuses_what_it_cannot_hold(place: Place) -> None:
    with (
        create_collection(place.address("c"), KnownModel("m", 4), dtype="float16") as made,
        pytest.raises(InvalidInput, match="too large for float16 in row 1"),
    ):
        made.add_vectors(["a", "b"], [[1, 2, 3, 4], [1, 2, 3, 70_000]], fingerprint="m")


def test_what_is_open_for_reading_cannot_be_changed(
    collection: Store, place: Place, toy_encoder: ToyEncoder
) -> None:
    collection.add(TEXTS, range(5))
    with open_collection(place.address(), toy_encoder, read_only=True) as reader:
        calls = (
            lambda: reader.add(["a"]),
            lambda: reader.remove([1]),
            lambda: reader.compact(),
            lambda: reader.add_vectors(["a"], np.zeros((1, 16)), fingerprint="toy-16"),
        )
        for call in calls:
            with pytest.raises(WriteFailed, match="open for reading only"):
                call()
        assert len(reader.search(["dog"], k=9)[0]) == 5
    assert len(collection) == 5

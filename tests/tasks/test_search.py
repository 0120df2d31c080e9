"""Search finds the same by every door, pages without overlap, and says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import ToyEncoder, sentences

from gemel.errors import Damaged, InvalidInput
from gemel.index import Collection, KnownModel, Record
from gemel.tasks.ahead import Later
from gemel.tasks.channels import Channels
from gemel.tasks.passages import Chunking, add_documents
from gemel.tasks.rerank import Reranking
from gemel.tasks.search import Hit, Mode, search

MODES: tuple[Mode, ...] = ("dense", "lexical", "hybrid")
every_mode = pytest.mark.parametrize("mode", MODES)


class Longest:
    """A reranker that likes long texts."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.batches.append(len(pairs))
        return np.array([len(text) for _, text in pairs], np.float32)


def ids(hits: Sequence[Hit]) -> list[Any]:
    return [hit.id for hit in hits]


@pytest.fixture
def filled(collection: Collection) -> Collection:
    """300 sentences of nonsense, with the parity of their numbers."""
    metadata = [{"parity": "even" if n % 2 == 0 else "odd", "n": n} for n in range(300)]
    collection.add(sentences(300, max_words=8), ids=range(300), metadata=metadata)
    return collection


@pytest.fixture(scope="module")
def open_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """A collection that all examples of a property share."""
    with Collection.create(tmp_path_factory.mktemp("any") / "c", ToyEncoder()) as made:
        made.add(["the dog", 'a "cat" NEAR -x', "ä ö 학교", "* OR ^"])
        yield made


def test_hybrid_ranks_are_those_of_a_fusion_by_hand(collection: Collection) -> None:
    collection.add(["dog", "dog dog dog cat", "piano guitar", "cold street"], ids=list("abcd"))
    dense = [found.record.id for found in collection.search(["dog cat"], 4)[0]]
    lexical = [found.record.id for found in collection.lexical("dog cat", 4)]
    assert (set(dense), set(lexical)) == (set("abcd"), {"a", "b"})
    expected = {
        id_: sum(1 / (61 + ranking.index(id_)) for ranking in (dense, lexical) if id_ in ranking)
        for id_ in dense
    }
    hits = search(collection, ["dog cat"], 4, mode="hybrid")[0]
    assert ids(hits) == sorted(expected, key=lambda id_: -expected[id_])
    assert [hit.score for hit in hits] == pytest.approx([expected[hit.id] for hit in hits])


def test_channels_beside_each_other_find_what_they_find_in_turns(
    filled: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = ["dog piano", "cold green street", "cat", "a man plays"]
    beside = [search(filled, [query], 20, explain=True) for query in queries]
    monkeypatch.setattr("gemel.tasks.channels.Ahead", Later)
    assert [search(filled, [query], 20, explain=True) for query in queries] == beside
    assert any(hit.explanation and len(hit.explanation.channels) == 2 for hits in beside for hit in hits[0])


def test_an_error_by_words_reaches_who_asked(filled: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Damaged("the words are lost")

    monkeypatch.setattr("gemel.index.commit.Commit.lexical", fail)
    with pytest.raises(Damaged, match="the words are lost"):
        search(filled, ["dog"])
    monkeypatch.undo()
    assert search(filled, ["dog"], 3)[0]


def test_hybrid_is_the_default_and_dense_where_there_is_no_full_text(
    filled: Collection, tmp_path: Path, toy_encoder: ToyEncoder
) -> None:
    assert search(filled, ["the dog"]) == search(filled, ["the dog"], mode="hybrid")
    with Collection.create(tmp_path / "wordless", toy_encoder, text_search=()) as wordless:
        wordless.add(["the dog sleeps", "a cat"])
        assert search(wordless, ["dog"]) == search(wordless, ["dog"], mode="dense")
        with pytest.raises(InvalidInput, match="was made without full text; search it with mode='dense'"):
            search(wordless, ["dog"], mode="hybrid")


def test_words_are_searched_without_an_encoder(filled: Collection) -> None:
    with Collection.open(filled.path) as plain:
        assert search(plain, ["guitar"], mode="lexical") == search(filled, ["guitar"], mode="lexical")
        with pytest.raises(InvalidInput, match="without an encoder"):
            search(plain, ["guitar"])


@every_mode
def test_a_filter_is_respected_in_every_mode(filled: Collection, mode: Mode) -> None:
    everything = search(filled, ["the dog eating food"], 300, mode=mode)[0]
    kept = search(filled, ["the dog eating food"], 300, mode=mode, filter="parity = 'odd' and n < 200")[0]
    assert set(ids(kept)) == {id_ for id_ in ids(everything) if id_ % 2 and id_ < 200}
    assert all(hit.metadata == {"parity": "odd", "n": hit.id} for hit in kept)


@every_mode
@pytest.mark.parametrize("size", [7, 60])
def test_pages_do_not_overlap_and_miss_nothing(filled: Collection, mode: Mode, size: int) -> None:
    whole = search(filled, ["the big red dog runs"], 300, mode=mode)[0]
    pages: list[Hit] = []
    for offset in range(0, 300, size):
        pages += search(filled, ["the big red dog runs"], size, mode=mode, offset=offset)[0]
    assert ids(pages) == ids(whole)
    assert len(set(ids(pages))) == len(pages) > 100


@every_mode
def test_queries_together_find_what_they_find_alone(filled: Collection, mode: Mode) -> None:
    queries = ["the dog", "piano", "", "nothing of this", "old house"]
    assert search(filled, queries, 5, mode=mode) == [
        search(filled, [query], 5, mode=mode)[0] for query in queries
    ]
    assert search(filled, [], mode=mode) == []


def test_a_reranker_decides_the_order_among_its_candidates(filled: Collection) -> None:
    reranker = Longest()
    reading = Reranking(reranker, n_candidates=20, batch_pairs=8)
    hits = search(filled, ["dog", "cat"], 20, reranker=reading, explain=True)
    assert reranker.batches == [8] * 5  # 40 pairs of two queries
    for query, found in zip(("dog", "cat"), hits, strict=True):
        first = search(filled, [query], 20)[0]
        assert [hit.score for hit in found] == [len(hit.text) for hit in found]
        assert ids(found) == ids(sorted(first, key=lambda hit: -len(hit.text)))
        before = [hit.explanation.reranked_from for hit in found if hit.explanation is not None]
        assert [ids(first)[rank - 1] for rank in before if rank] == ids(found)
    assert ids(search(filled, ["dog"], 5, reranker=reading, offset=5)[0]) == ids(hits[0][5:10])


def test_a_reranker_is_not_asked_for_more_than_it_reads(filled: Collection) -> None:
    with pytest.raises(InvalidInput, match="ask for 101 hits and the reranker reads 100"):
        search(filled, ["dog"], 100, offset=1, reranker=Longest())

    class Labels:
        def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            return np.zeros((len(pairs), 3), np.float32)

    with pytest.raises(InvalidInput, match="needs a model with one output"):
        search(filled, ["dog"], reranker=Labels())


def test_an_explanation_adds_up_to_the_score(filled: Collection) -> None:
    for hit in search(filled, ["The Dog sleeps"], 10, explain=True)[0]:
        told = hit.explanation
        assert told is not None
        assert hit.score == pytest.approx(sum(place.share for place in told.channels.values()))
        for channel, mode in (("dense", "dense"), ("lexical", "lexical")):
            alone = search(filled, ["The Dog sleeps"], 50, mode=mode)[0]  # type: ignore[arg-type]
            place = told.channels.get(channel)  # type: ignore[call-overload]
            assert (place is None) == (hit.id not in ids(alone))
            if place is not None:
                assert (alone[place.rank - 1].id, alone[place.rank - 1].score) == (hit.id, place.score)
        marked = {hit.text[start:end] for start, end in told.matches}
        assert marked == set(hit.text.split()) & {"the", "dog", "sleeps"}


def test_influences_are_what_the_score_loses_without_a_word(collection: Collection) -> None:
    collection.add(["the cat sleeps"], ids=["x"])
    (hit,) = search(collection, ["a cat"], 1, mode="dense", explain=True)[0]
    assert hit.explanation is not None
    encoder = ToyEncoder()
    query = encoder.encode(["a cat"])[0]
    for start, end, share in hit.explanation.influences:
        without = hit.text[:start] + " " + hit.text[end:]
        assert share == pytest.approx(hit.score - float(query @ encoder.encode([without])[0]), abs=1e-5)
    first = hit.explanation.influences[0]
    assert hit.text[first.start : first.end] == "cat"
    assert search(collection, ["a cat"], 1, explain=True, mode="lexical")[0][0].explanation.influences == ()  # type: ignore[union-attr]


def test_long_documents_are_found_once_by_their_best_passage(collection: Collection) -> None:
    filler = "cold green street. " * 40
    text = filler + "A dog plays piano. " + filler
    documents = [Record("long", text, {"kind": "book"}), Record("short", "a cat sleeps", {"kind": "note"})]
    add_documents(collection, documents, Chunking(12, 3))
    assert len(collection) > 10
    for mode in MODES:
        hits = search(collection, ["dog plays piano"], 10, mode=mode)[0]
        assert ids(hits).count("long") == 1
        (hit,) = [hit for hit in hits if hit.id == "long"]
        assert "A dog plays piano." in hit.text
        assert hit.passage is not None
        assert text[hit.passage.start : hit.passage.end] == hit.text
        assert hit.metadata == {"kind": "book"}
    assert ids(search(collection, ["cold street"], 10, mode="dense")[0]) == ["long", "short"]
    assert ids(search(collection, ["dog"], 10, filter="kind = 'note'")[0]) == ["short"]


@every_mode
def test_a_search_sees_one_commit_though_others_write_meanwhile(
    collection: Collection, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    collection.add(["a dog sleeps", "a dog sings"], ids=["a", "b"])
    ranked = Channels.ranked

    def ranked_and_then_changed(*given: Any) -> Any:
        found = ranked(*given)
        with Collection.open(collection.path, ToyEncoder()) as other:
            other.remove(["a"])
            other.add(["piano guitar"], ids=["b"])
        return found

    monkeypatch.setattr(Channels, "ranked", ranked_and_then_changed)
    hits = search(collection, ["dog"], mode=mode)[0]
    assert sorted((hit.id, hit.text) for hit in hits) == [("a", "a dog sleeps"), ("b", "a dog sings")]
    monkeypatch.undo()
    assert ids(search(collection, ["piano"], mode=mode)[0]) == ["b"]


def test_korean_is_found_by_parts_of_words(collection: Collection) -> None:
    collection.add(["나는 학교에서 공부한다", "고양이가 잔다"], ids=["school", "cat"])
    (hit,) = search(collection, ["학교는"], 5, mode="lexical", explain=True)[0]
    assert hit.id == "school"
    assert hit.explanation is not None
    assert [hit.text[start:end] for start, end in hit.explanation.matches] == ["학교"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one query": ({"queries": "dog"}, r"one str was given; search for \['dog'\]"),
    "a query that is a number": ({"queries": ["dog", 7]}, "text 1 is the int 7"),
    "no hits": ({"k": 0}, "k is 0; expected a whole number, at least 1"),
    "an offset before the first": ({"offset": -1}, "offset is -1"),
    "too many": ({"k": 10**6}, "expected 100,000 at most"),
    "an unknown mode": ({"mode": "vague"}, "mode is 'vague'; expected one of dense, lexical, hybrid"),
    "a reranker that is none": ({"reranker": "big"}, "of type str; expected one such as load_reranker"),
    "a filter that tries SQL": ({"filter": "1=1; drop table records"}, "cannot be read at character"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_searched_is_refused_in_a_sentence(collection: Collection, name: str) -> None:
    given, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        search(collection, **{"queries": ["dog"], **given})


def test_common_words_give_way_to_rare_ones(tmp_path: Path) -> None:
    known = KnownModel("made-elsewhere", 2)
    with Collection.create(tmp_path / "c", known, text_search=("word",)) as made:
        texts = [f"the one {n}" for n in range(2_100)] + ["a zebra", "the zebra"]
        made.add_vectors(texts, np.ones((len(texts), 2), np.float32), fingerprint="made-elsewhere")
        assert made.terms("the Zebra and 7") == ["7", "zebra"]
        assert {hit.text for hit in search(made, ["the zebra"], 5, mode="lexical")[0]} == {
            "a zebra",
            "the zebra",
        }
        assert len(search(made, ["the"], 5, mode="lexical")[0]) == 5
        assert made.terms("") == made.terms("nowhere") == []


@given(query=st.text(max_size=30))
def test_any_query_is_answered(open_one: Collection, query: str) -> None:
    for mode in MODES:
        assert len(search(open_one, [query], 3, mode=mode, explain=True)[0]) <= 3

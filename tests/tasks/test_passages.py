"""Documents are cut where sentences end, and come and go whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import ToyEncoder

from gemel import load_encoder
from gemel.errors import InvalidInput
from gemel.index import Added, Collection, Record
from gemel.tasks.passages import Chunking, add_documents, passage_of, passages, remove_documents


class Words:
    """Counts words."""

    n_special = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def cut(text: str, max_tokens: int, overlap_tokens: int = 0) -> list[str]:
    spans = passages(text, Chunking(max_tokens, overlap_tokens), Words())
    return [text[start:end] for start, end in spans]


def long_text(n_sentences: int, word: str = "dog") -> str:
    return " ".join(f"Sentence {n} has the {word}." for n in range(n_sentences))


def ids_of(collection: Collection) -> list[object]:
    return [record.id for record in collection]


# Cutting ---------------------------------------------------------------------------------------------------


def test_passages_end_where_sentences_do() -> None:
    text = 'He came in. "Who is there?" she asked at last.\n\nNobody! That was all (he said.) And more'
    assert cut(text, 8) == [
        'He came in. "Who is there?"',
        "she asked at last.\n\nNobody!",
        "That was all (he said.) And more",
    ]


def test_neighbours_share_the_last_sentences_of_the_first() -> None:
    text = "One two three. Four five. Six seven. Eight nine ten. Eleven."
    assert cut(text, 8) == ["One two three. Four five. Six seven.", "Eight nine ten. Eleven."]
    assert cut(text, 8, 2) == ["One two three. Four five. Six seven.", "Six seven. Eight nine ten. Eleven."]


def test_a_dotted_line_takes_time_in_proportion_to_its_length() -> None:
    text = "." * 200_000  # took nine minutes when every dot was tried as the first of the run
    assert cut(text + " And more.", 8) == [text + " And more."]
    assert cut(text, 8) == [text]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    assert cut("a b c d e f g h i j", 8) == ["a b c d e f g h", "i j"]
    assert cut("中文。" * 20, 8) == ["中文。" * 8, "中文。" * 8, "中文。" * 4]


@given(st.text(alphabet="ab .!\n中。", max_size=300), st.integers(8, 20), st.integers(0, 4))
def test_nothing_is_lost_and_every_passage_fits(text: str, size: int, overlap: int) -> None:
    spans = passages(text, Chunking(size, overlap), Words())
    covered = np.zeros(len(text), bool)
    for start, end in spans:
        covered[start:end] = True
        assert Words().count([text[start:end]])[0] <= size
    assert all(covered[at] or text[at].isspace() for at in range(len(text)))
    assert spans == sorted(spans)


def test_a_passage_has_no_more_tokens_than_the_model_reads(tiny_bert: Path, tmp_path: Path) -> None:
    encoder = load_encoder(tiny_bert, on_truncate="error")
    text = long_text(40) + " " + "dogcathorse" * 60 + " end"
    with Collection.create(tmp_path / "c", encoder) as made:
        add_documents(made, [Record("x", text)], Chunking(40, 5))  # a longer one would be an error
        counts = encoder.count_tokens([record.text for record in made])  # type: ignore[attr-defined]
        assert counts.max() <= 40
        assert np.median(counts) > 25


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((4, 0), "passages of 4 tokens"), ((20, 11), "expected 0 to 10"), ((20, -1), "expected 0 to 10")],
)
def test_sizes_that_make_no_sense_are_refused(sizes: tuple[int, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Chunking(*sizes)


# In and out ------------------------------------------------------------------------------------------------


def test_a_short_document_is_stored_as_it_is_and_a_long_one_in_parts(collection: Collection) -> None:
    text = long_text(4)
    add_documents(collection, [Record("a", "short", {"x": 1}), Record(7, text, {"y": 2})], Chunking(10))
    assert collection.get(["a"]) == [Record("a", "short", {"x": 1})]
    parts = [record for record in collection if record.id != "a"]
    assert [record.id for record in parts] == ["7#1", "7#2"]
    for number, record in enumerate(parts, 1):
        place = passage_of(record)
        assert place is not None
        assert (place.document, place.number, place.count) == (7, number, 2)
        assert text[place.start : place.end] == record.text
        assert record.metadata["y"] == 2


def test_adding_again_costs_nothing_and_leaves_no_old_passages(
    collection: Collection, toy_encoder: ToyEncoder
) -> None:
    chunking = Chunking(10)
    add_documents(collection, [Record("x", long_text(300))], chunking)
    before = toy_encoder.n_encoded
    assert add_documents(collection, [Record("x", long_text(300))], chunking) == Added(0, 0, 150, 0)
    assert toy_encoder.n_encoded == before
    add_documents(collection, [Record("x", long_text(6))], chunking)
    assert ids_of(collection) == ["x#1", "x#2", "x#3"]
    add_documents(collection, [Record("x", "short")], chunking)
    assert ids_of(collection) == ["x"]
    add_documents(collection, [Record("x", long_text(4))], chunking)
    assert ids_of(collection) == ["x#1", "x#2"]


def test_documents_are_removed_with_all_their_passages(collection: Collection) -> None:
    documents = [Record(name, long_text(n)) for name, n in (("a", 1), ("b", 200), ("c", 4))]
    add_documents(collection, documents, Chunking(10))
    assert remove_documents(collection, ["a", "b", "b", "z", "c#1"]) == 2
    assert ids_of(collection) == ["c#1", "c#2"]


def test_progress_is_told_in_documents(collection: Collection) -> None:
    told: list[int] = []
    documents = (Record(n, f"text {n}") for n in range(5_000))
    assert len(add_documents(collection, documents, Chunking(10), on_progress=told.append)) == 5_000
    assert told == [2_048, 4_096, 5_000]


def test_ids_that_would_collide_are_refused(collection: Collection) -> None:
    chunking = Chunking(10)
    add_documents(collection, [Record("x", long_text(4)), Record("y#1", "mine")], chunking)
    with pytest.raises(InvalidInput, match="'x#1' would be both a document and a passage"):
        add_documents(collection, [Record("x#1", "other")], chunking)
    with pytest.raises(InvalidInput, match="'y#1' would be both"):
        add_documents(collection, [Record("y", long_text(4))], chunking)
    with pytest.raises(InvalidInput, match="'z' is given twice"):
        add_documents(collection, [Record("z", "a"), Record("z", "b")], chunking)
    with pytest.raises(InvalidInput, match="has '_passage', which is kept"):
        add_documents(collection, [Record("z", "a", {"_passage": 1})], chunking)
    assert len(collection) == 3

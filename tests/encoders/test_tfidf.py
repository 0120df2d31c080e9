"""tf-idf beside scikit-learn's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from stand_ins import sentences

from gemel import load_encoder
from gemel.encoders import TfIdfEncoder
from gemel.errors import InvalidInput, UnknownWordsWarning

TEXTS = [*sentences(200, seed=3, max_words=15), "Ein Café, zwei CAFÉS: 3 x 42?", "the the the dog"]


def cosines(vectors: np.ndarray) -> np.ndarray:
    return vectors @ vectors.T


@pytest.mark.filterwarnings("ignore::gemel.errors.UnknownWordsWarning")
def test_with_a_dimension_a_word_it_is_scikit_learns() -> None:
    encoder = TfIdfEncoder.fit(TEXTS)
    theirs = TfidfVectorizer().fit(TEXTS)
    assert encoder.dim == len(theirs.vocabulary_)
    other = [*TEXTS, "a dog nobody has heard of", "the café"]
    vectors = theirs.transform(other).toarray()
    np.testing.assert_allclose(cosines(encoder.encode(other)), cosines(vectors), atol=1e-6)
    # Each word alone finds its own dimension, and the same words share none.
    words = sorted(theirs.vocabulary_)
    np.testing.assert_allclose(
        encoder.encode(words), np.eye(len(words))[encoder.encode(words).argmax(1)], atol=1e-6
    )


def test_a_worked_example() -> None:
    # "cat" is in 2 of 3 texts: 1 + ln(4 / 3); "dog" and "bird" in 1: 1 + ln(4 / 2).
    encoder = TfIdfEncoder.fit(["cat dog", "cat", "bird"])
    common, rare = 1 + np.log(4 / 3), 1 + np.log(2)
    vectors = encoder.encode(["cat cat dog", "dog", "cat"])
    expected = np.array([2 * common, rare]) / np.hypot(2 * common, rare)
    np.testing.assert_allclose(vectors[0] @ vectors[2], expected[0], rtol=1e-6)
    np.testing.assert_allclose(vectors[0] @ vectors[1], expected[1], rtol=1e-6)


def test_rarer_words_share_dimensions_and_still_find_themselves() -> None:
    words = [f"word{number}" for number in range(300)]
    common = "every text has this"
    encoder = TfIdfEncoder.fit([f"{common} {word}" for word in words], dim=100)
    assert encoder.dim == 100
    vectors = encoder.encode(words)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.isclose(np.abs(vectors).max(axis=1), 1).all()
    used = np.abs(vectors).argmax(axis=1)
    assert used.min() == 4  # four words stand in every text and have dimensions of their own
    frequent = sorted(words)[:71]  # three quarters of the dimensions, less those four
    np.testing.assert_allclose(cosines(encoder.encode(frequent)), np.eye(71), atol=1e-6)


def test_what_is_fitted_is_told_by_the_fingerprint() -> None:
    encoder = TfIdfEncoder.fit(TEXTS)
    assert encoder.fingerprint == TfIdfEncoder.fit(TEXTS[::-1]).fingerprint
    assert encoder.fingerprint != TfIdfEncoder.fit([*TEXTS, "one dog more"]).fingerprint
    assert encoder.fingerprint != TfIdfEncoder.fit(TEXTS, dim=20).fingerprint


def test_a_file_of_texts_is_fitted_by_name(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("id,text\n1,a dog\n2,the cat\n", encoding="utf-8")
    encoder = load_encoder(f"tfidf:{tmp_path}/texts.csv")
    assert encoder.fingerprint == TfIdfEncoder.fit(["a dog", "the cat"]).fingerprint
    with pytest.warns(UnknownWordsWarning, match="1 of 2 texts"):
        assert encoder.encode(["a horse", "a cat"]).any(axis=1).tolist() == [False, True]


@pytest.mark.parametrize(
    ("texts", "dim", "said"),
    [
        ([], 100, "0 texts without a word"),
        (["a", "!"], 100, "2 texts without a word of two letters or more"),
        (["dog"], 3, "dim=3 was given, and at least 4"),
        ("dog", 100, "a sequence of texts was expected"),
    ],
)
def test_what_cannot_be_fitted_is_refused(texts: list[str], dim: int, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        TfIdfEncoder.fit(texts, dim=dim)

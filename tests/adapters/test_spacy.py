"""gemel inside a spaCy pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported

from gemel import load_encoder
from gemel.similarity import pairwise

pytestmark = pytest.mark.extras

TEXTS = ["the dog runs", "a cat sleeps", "the old piano"]


@pytest.fixture(scope="module")
def nlp(tiny_bert: Path) -> Any:
    spacy = imported("spacy")
    import gemel.adapters.spacy  # registers the component

    assert gemel.adapters.spacy.NAME == "gemel"
    made = spacy.blank("en")
    made.add_pipe("sentencizer")
    made.add_pipe("gemel", config={"model": str(tiny_bert), "precision": "float32"})
    return made


def test_documents_and_spans_have_the_encoders_vectors(nlp: Any, tiny_bert: Path) -> None:
    encoder = load_encoder(tiny_bert, precision="float32")
    doc = nlp("the dog runs . a cat sleeps .")
    assert doc.has_vector
    assert np.array_equal(doc.vector, encoder.encode_one(doc.text))
    assert doc.vector_norm == pytest.approx(np.linalg.norm(doc.vector))
    for sentence in doc.sents:
        assert np.array_equal(sentence.vector, encoder.encode_one(sentence.text))
    assert np.array_equal(doc[1:3].vector, encoder.encode_one("dog runs"))


def test_many_documents_give_the_same_as_one_by_one(nlp: Any) -> None:
    for doc, text in zip(nlp.pipe(TEXTS, batch_size=2), TEXTS, strict=True):
        assert np.array_equal(doc.vector, nlp(text).vector)


class KnownOnly:
    """In place of an encoder that has nothing left to encode."""

    def __init__(self, encoder: Any) -> None:
        self.dim, self.fingerprint = encoder.dim, encoder.fingerprint

    def encode(self, texts: Any) -> np.ndarray:
        assert not texts
        return np.zeros((0, self.dim), np.float32)


@pytest.mark.filterwarnings("ignore:.*W109:UserWarning")
def test_documents_from_elsewhere_have_vectors_again_once_they_pass_through_the_component(
    nlp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    component, expected = nlp.get_pipe("gemel"), nlp(TEXTS[0]).vector
    saved = imported("spacy").tokens.Doc(nlp.vocab).from_bytes(nlp(TEXTS[0]).to_bytes())
    docs = [saved, *nlp.pipe(TEXTS[:1], n_process=2)]
    monkeypatch.setattr(component, "encoder", KnownOnly(component.encoder))
    for doc in component.pipe(docs):
        assert np.array_equal(doc.vector, expected)
        assert doc.similarity(doc) == pytest.approx(1)


def test_a_vector_of_another_model_is_made_anew(nlp: Any) -> None:
    doc = nlp(TEXTS[0])
    expected = doc.vector
    doc.user_data.update(gemel_vector=np.zeros(3, np.float32), gemel_source="another")
    assert np.array_equal(nlp.get_pipe("gemel")(doc).vector, expected)


def test_a_part_that_was_made_with_the_whole_ones_data_has_its_own_vector(nlp: Any) -> None:
    doc = nlp(TEXTS[0])
    part = nlp.get_pipe("gemel")(doc[0:2].as_doc(copy_user_data=True))
    assert np.array_equal(part.vector, nlp(part.text).vector)
    assert not np.array_equal(part.vector, doc.vector)


def test_similarity_is_the_cosine_of_the_vectors(nlp: Any) -> None:
    first, second = nlp(TEXTS[0]), nlp(TEXTS[1])
    expected = pairwise(first.vector[None], second.vector[None])[0]
    assert first.similarity(second) == pytest.approx(float(expected))
    assert first[0:2].similarity(second) == pytest.approx(
        float(pairwise(first[0:2].vector[None], second.vector[None])[0])
    )


def test_a_pipeline_is_saved_and_opened_with_the_component(nlp: Any, tmp_path: Path) -> None:
    spacy = imported("spacy")
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert again.pipe_names == nlp.pipe_names
    assert np.array_equal(again(TEXTS[0]).vector, nlp(TEXTS[0]).vector)

"""BERTopic's and KeyBERT's own examples, with only the import changed."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported
from stand_ins import ToyEncoder

pytestmark = pytest.mark.extras

# The example of KeyBERT's documentation.
DOCUMENT = """
         Supervised learning is the machine learning task of learning a function that
         maps an input to an output based on example input-output pairs. It infers a
         function from labeled training data consisting of a set of training examples.
         In supervised learning, each example is a pair consisting of an input object
         (typically a vector) and a desired output value (also called the supervisory signal).
         A supervised learning algorithm analyzes the training data and produces an inferred function,
         which can be used for mapping new examples. An optimal scenario will allow for the
         algorithm to correctly determine the class labels for unseen instances. This requires
         the learning algorithm to generalize from the training data to unseen situations in a
         'reasonable' way (see inductive bias).
      """


def test_keyberts_example_runs_and_gives_the_key_words_of_the_original(default_weights: Path) -> None:
    theirs = imported("keybert")
    from gemel.adapters.keybert import KeyBERT

    found = KeyBERT().extract_keywords(DOCUMENT)
    original = theirs.KeyBERT(model=str(default_weights)).extract_keywords(DOCUMENT)
    assert {word for word, _ in found} == {word for word, _ in original}
    assert [score for _, score in found] == pytest.approx([score for _, score in original], abs=0.02)
    phrases = KeyBERT().extract_keywords(DOCUMENT, keyphrase_ngram_range=(1, 2), use_mmr=True, diversity=0.7)
    assert len(phrases) == 5


def test_keyberts_own_class_takes_the_backend(default_weights: Path) -> None:
    keybert = imported("keybert")
    from gemel.adapters.keybert import SentenceTransformerBackend
    from gemel.adapters.sentence_transformers import SentenceTransformer

    sentence_model = SentenceTransformer("all-MiniLM-L6-v2")
    kw_model = keybert.KeyBERT(model=SentenceTransformerBackend(sentence_model))
    document_embeddings, word_embeddings = kw_model.extract_embeddings(DOCUMENT)
    found = kw_model.extract_keywords(
        DOCUMENT, doc_embeddings=document_embeddings, word_embeddings=word_embeddings
    )
    assert found == kw_model.extract_keywords(DOCUMENT)


def test_bertopics_example_finds_topics_of_real_news(real_data: Path, default_weights: Path) -> None:
    """Its first example, seeded as its answers to questions advise, on news instead of newsgroups."""
    imported("bertopic")
    umap = imported("umap")
    from gemel.adapters.bertopic import BERTopic

    lines = (real_data / "ag_news" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:2001]
    docs, classes = ([line.split("\t")[column] for line in lines] for column in (1, 2))
    umap_model = umap.UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=42)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        topic_model = BERTopic(umap_model=umap_model)
        topics, _ = topic_model.fit_transform(docs)
        (football, *_), _ = topic_model.find_topics("football match", top_n=3)
    by_topic: dict[int, Counter[str]] = {}
    for topic, kind in zip(topics, classes, strict=True):
        by_topic.setdefault(topic, Counter())[kind] += 1
    by_topic.pop(-1)
    assert len(by_topic) > 10
    n_of_main_class = sum(kinds.most_common(1)[0][1] for kinds in by_topic.values())
    assert n_of_main_class / sum(kinds.total() for kinds in by_topic.values()) > 0.8
    assert by_topic[football].most_common(1)[0][0] == "Sports"


def test_bertopic_keeps_its_settings_and_any_encoder_serves() -> None:
    imported("bertopic")
    from gemel.adapters.bertopic import BERTopic, SentenceTransformerBackend

    backend = SentenceTransformerBackend(ToyEncoder())
    model: Any = BERTopic(embedding_model=backend, min_topic_size=7)
    assert model.get_params()["min_topic_size"] == 7
    assert model.embedding_model is backend
    assert np.array_equal(backend.embed_documents(["a dog"]), ToyEncoder().encode(["a dog"]))

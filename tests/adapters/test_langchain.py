"""gemel inside LangChain: its own suites for embeddings and vector stores, and what they do not ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported
from stand_ins import ToyEncoder

from gemel import load_encoder
from gemel.errors import InvalidInput, ModelMismatch
from gemel.pair_scorer import PairScorer

pytestmark = pytest.mark.extras

imported("langchain_core")
suites = imported("langchain_tests.integration_tests")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402

from gemel.adapters.langchain import (  # noqa: E402
    GemelCrossEncoder,
    GemelEmbeddings,
    GemelReranker,
    GemelVectorStore,
    HuggingFaceEmbeddings,
)

TEXTS = ["the dog runs", "a cat sleeps", "the old piano", "a new guitar", "the dog and the cat"]


def claims_of(suite: type) -> list[str]:
    return [name for name in dir(suite) if name.startswith("test_") and "OVERRIDE" not in name]


@pytest.mark.parametrize("name", claims_of(suites.VectorStoreIntegrationTests))
def test_the_store_passes_langchains_own_tests(tmp_path: Path, name: str) -> None:
    class Suite(suites.VectorStoreIntegrationTests):  # type: ignore[misc]
        def vectorstore(self) -> None: ...

    suite = Suite()
    store = GemelVectorStore(tmp_path / "store", suite.get_embeddings())
    found = getattr(suite, name)(store)
    assert (asyncio.run(found) if asyncio.iscoroutine(found) else found) is None
    store.collection.close()


@pytest.mark.parametrize("kind", [GemelEmbeddings, HuggingFaceEmbeddings])
@pytest.mark.parametrize("name", claims_of(suites.EmbeddingsIntegrationTests))
def test_embeddings_pass_langchains_tests(tiny_bert: Path, kind: Any, name: str) -> None:
    class Suite(suites.EmbeddingsIntegrationTests):  # type: ignore[misc]
        embeddings_class = kind

    found = getattr(Suite(), name)(kind(model=str(tiny_bert)))
    assert (asyncio.run(found) if asyncio.iscoroutine(found) else found) is None


def test_each_side_has_its_own_prompt(prompted_folder: Path) -> None:
    embeddings = GemelEmbeddings(str(prompted_folder), precision="float32")
    plain = load_encoder(prompted_folder, precision="float32")
    assert embeddings.embed_query("dog") == plain.encode_one("the red dog").tolist()
    assert embeddings.embed_documents(["dog", "cat"]) == plain.encode(["a big dog", "a big cat"]).tolist()


def test_the_drop_in_takes_the_arguments_of_the_class_it_replaces(tiny_bert: Path) -> None:
    embeddings = HuggingFaceEmbeddings(
        model_name=str(tiny_bert),
        model_kwargs={"device": "cpu", "precision": "float32"},
        encode_kwargs={"normalize_embeddings": True},
        query_encode_kwargs={"prompt": "the red ", "normalize_embeddings": True},
    )
    plain = load_encoder(tiny_bert, precision="float32")
    expected = plain.encode_one("the red dog runs")
    np.testing.assert_allclose(
        embeddings.embed_query("dog\nruns"), expected / np.linalg.norm(expected), rtol=1e-5
    )
    assert np.linalg.norm(embeddings.embed_documents(TEXTS), axis=1) == pytest.approx(1)


def test_the_drop_in_gives_the_vectors_of_the_class_it_replaces(tiny_bert: Path) -> None:
    theirs = imported("langchain_huggingface").HuggingFaceEmbeddings
    assert set(HuggingFaceEmbeddings.model_fields) == set(theirs.model_fields)
    arguments = {"model_name": str(tiny_bert), "encode_kwargs": {"normalize_embeddings": True}}
    expected = theirs(**arguments, model_kwargs={"device": "cpu"})
    ours = HuggingFaceEmbeddings(**arguments, model_kwargs={"device": "cpu", "precision": "float32"})
    np.testing.assert_allclose(ours.embed_documents(TEXTS), expected.embed_documents(TEXTS), atol=1e-5)
    np.testing.assert_allclose(ours.embed_query("a dog"), expected.embed_query("a dog"), atol=1e-5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GemelVectorStore]:
    made = GemelVectorStore.from_texts(
        TEXTS,
        GemelEmbeddings(ToyEncoder()),
        [{"row": row, "kind": "music" if row in (2, 3) else "animal"} for row in range(5)],
        ids=[f"t{row}" for row in range(5)],
        path=tmp_path / "store",
    )
    yield made
    made.collection.close()


def test_hits_come_with_similarities_and_pass_filters(store: GemelVectorStore) -> None:
    (first, score), *_ = store.similarity_search_with_score("a cat sleeps", k=2)
    assert (first.id, first.page_content, score) == ("t1", "a cat sleeps", pytest.approx(1))
    for where in ({"kind": "music"}, 'kind = "music"'):
        assert {each.id for each in store.similarity_search("the dog", k=5, filter=where)} == {"t2", "t3"}
    relevant = store.similarity_search_with_relevance_scores("a cat sleeps", k=5)
    assert all(0 <= each <= 1 for _, each in relevant)


def test_documents_are_forgotten_by_id_or_all_at_once(store: GemelVectorStore) -> None:
    store.delete(["t0", "t1"])
    assert {each.id for each in store.similarity_search("the dog", k=9)} == {"t2", "t3", "t4"}
    store.delete()
    assert store.similarity_search("the dog", k=9) == []


def test_words_find_too(store: GemelVectorStore) -> None:
    assert [each.id for each in store.similarity_search("guitar", k=1, mode="lexical")] == ["t3"]
    assert store.similarity_search("old piano", k=1, mode="hybrid")[0].id == "t2"


def test_a_retriever_and_diversity_work_as_elsewhere(store: GemelVectorStore) -> None:
    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 3, "fetch_k": 5})
    assert isinstance(retriever, BaseRetriever)
    found = retriever.invoke("the dog runs")
    assert len({each.id for each in found}) == 3
    assert found[0].id == "t0"
    by_vector = store.similarity_search_by_vector(store.embeddings.embed_query("a cat sleeps"), k=1)
    assert by_vector[0].id == "t1"


def test_a_store_lasts_and_refuses_another_model(store: GemelVectorStore, tiny_bert: Path) -> None:
    again = GemelVectorStore(store.collection.path, GemelEmbeddings(ToyEncoder()))
    assert again.get_by_ids(["t4"])[0].metadata == {"row": 4, "kind": "animal"}
    with pytest.raises(ModelMismatch):
        GemelVectorStore(store.collection.path, GemelEmbeddings(str(tiny_bert)))
    with pytest.raises(InvalidInput, match="no path was given"):
        GemelVectorStore.from_texts(TEXTS, GemelEmbeddings(ToyEncoder()))
    again.collection.close()


def test_documents_are_put_into_the_rerankers_order(
    tiny_reranker: PairScorer, tiny_reranker_folder: Path
) -> None:
    documents = [Document(page_content=text, metadata={"row": row}) for row, text in enumerate(TEXTS)]
    scores = tiny_reranker.score([("a dog", text) for text in TEXTS])
    expected = np.argsort(-scores, kind="stable")[:2].tolist()
    for model in (tiny_reranker, str(tiny_reranker_folder)):
        found = GemelReranker(model=model, top_n=2).compress_documents(documents, "a dog")
        assert [each.metadata["row"] for each in found] == expected
        assert [each.metadata["relevance_score"] for each in found] == pytest.approx(
            scores[expected].tolist()
        )
    assert "relevance_score" not in documents[0].metadata


def test_langchains_own_compressor_takes_the_cross_encoder(tiny_reranker: PairScorer) -> None:
    compressors = imported("langchain_classic.retrievers.document_compressors")
    documents = [Document(page_content=text) for text in TEXTS]
    theirs = compressors.CrossEncoderReranker(model=GemelCrossEncoder(tiny_reranker), top_n=3)
    ours = GemelReranker(model=tiny_reranker, top_n=3)
    found = [each.page_content for each in theirs.compress_documents(documents, "a dog")]
    assert found == [each.page_content for each in ours.compress_documents(documents, "a dog")]

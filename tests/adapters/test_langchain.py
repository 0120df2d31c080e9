"""gemel inside LangChain: its own suites for embeddings and vector stores, and what they do not ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported
from stand_ins import ToyEncoder

from gemel import load_encoder
from gemel.errors import InvalidInput, ModelMismatch
from gemel.index import Collection, Record
from gemel.pair_scorer import PairScorer
from gemel.tasks.passages import Chunking, add_documents

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


def ids_of(documents: Iterable[Document]) -> set[str | None]:
    return {each.id for each in documents}


def test_only_documents_that_pass_the_filter_are_forgotten(store: GemelVectorStore) -> None:
    store.delete(filter={"kind": "music"})
    assert ids_of(store.similarity_search("the dog", k=9)) == {"t0", "t1", "t4"}
    asyncio.run(store.adelete(filter="row > 0"))
    assert ids_of(store.similarity_search("the dog", k=9)) == {"t0"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"where": {"kind": "music"}}, "delete was given where, which it does not know"),
        ({"delete_all": False}, "delete was given delete_all"),
        ({"filter": {}}, "the filter {}, which everything passes"),
        ({"filter": None}, "the filter None, which everything passes"),
        ({"filter": ""}, "its end at character 0"),
        ({"filter": {"row` > 0 or `row": 0}}, "no ` in it"),
        ({"filter": {"row": 1}, "ids": ["t0"]}, "ids and a filter"),
        ({"ids": "t0"}, "put it into a list"),
    ],
)
def test_what_delete_cannot_honour_removes_nothing(
    store: GemelVectorStore, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        store.delete(**arguments)
    assert len(store.collection) == 5


@pytest.mark.parametrize("search_type", ["similarity", "similarity_score_threshold", "mmr"])
def test_a_keyword_that_a_search_does_not_know_is_refused(store: GemelVectorStore, search_type: str) -> None:
    known = {"score_threshold": 0.1} if search_type == "similarity_score_threshold" else {}
    retriever = store.as_retriever(search_type=search_type, search_kwargs={"where": {"row": 1}, **known})
    with pytest.raises(InvalidInput, match="was given where, which it does not know"):
        retriever.invoke("dog")
    with pytest.raises(InvalidInput, match="was given where, which it does not know"):
        asyncio.run(retriever.ainvoke("dog"))


def test_unknown_keywords_are_refused_beside_vectors_and_texts_too(store: GemelVectorStore) -> None:
    vector = store.embeddings.embed_query("dog")
    for ask in (store.similarity_search_by_vector, store.max_marginal_relevance_search_by_vector):
        with pytest.raises(InvalidInput, match="was given where"):
            ask(vector, where={"row": 1})
    with pytest.raises(InvalidInput, match="add_texts was given namespace"):
        store.add_texts(["a dog"], namespace="mine")
    assert len(store.collection) == 5


def test_what_retrievers_of_langchain_give_is_honoured(store: GemelVectorStore) -> None:
    music = {"filter": {"kind": "music"}}
    for search_type, choices in (
        ("similarity", {"k": 5, "mode": "hybrid"}),
        ("similarity_score_threshold", {"k": 5, "score_threshold": 0.0, "mode": "dense"}),
        ("mmr", {"k": 5, "fetch_k": 5, "lambda_mult": 0.3}),
    ):
        retriever = store.as_retriever(search_type=search_type, search_kwargs={**choices, **music})
        assert ids_of(retriever.invoke("the piano")) == {"t2", "t3"}


def test_scores_are_those_of_the_mode(store: GemelVectorStore) -> None:
    ((found, score),) = store.similarity_search_with_score("guitar", k=1, mode="lexical")
    (expected,) = store.collection.lexical("guitar", 1)
    assert (found.id, score) == ("t3", expected.score)
    (_, score), *_ = store.similarity_search_with_score("the old piano", k=2, mode="hybrid")
    assert score == pytest.approx(2 / 61)
    with pytest.raises(InvalidInput, match="mode is 'both'; expected one of dense, lexical, hybrid"):
        store.similarity_search("guitar", mode="both")  # type: ignore[arg-type]


def test_relevance_is_refused_where_scores_have_no_upper_end(store: GemelVectorStore) -> None:
    retriever = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.2, "mode": "hybrid"}
    )
    with pytest.raises(InvalidInput, match="only mode='dense' has it"):
        retriever.invoke("guitar")
    with pytest.raises(InvalidInput, match="only mode='dense' has it"):
        asyncio.run(retriever.ainvoke("guitar"))


def test_ids_that_are_integers_serve_as_they_are_shown(tmp_path: Path) -> None:
    texts = dict(zip((17, -3, "18", 1 << 40), TEXTS, strict=False))
    with Collection.create(tmp_path / "store", ToyEncoder()) as collection:
        collection.add(list(texts.values()), ids=list(texts))
    store = GemelVectorStore(tmp_path / "store", GemelEmbeddings(ToyEncoder()))
    shown = store.similarity_search("the dog", k=9)
    assert ids_of(shown) == {"17", "-3", "18", str(1 << 40)}
    found = store.get_by_ids([str(each.id) for each in shown])
    assert found == shown
    assert store.get_by_ids(["017", "9" * 30, "3"]) == []
    assert store.add_texts(["a new guitar"], ids=["17"]) == ["17"]
    assert [each.page_content for each in store.get_by_ids(["17"])] == ["a new guitar"]
    assert len(store.collection) == 4
    store.delete(["17", "18"])
    assert ids_of(store.similarity_search("the dog", k=9)) == {"-3", str(1 << 40)}
    store.collection.close()


@pytest.fixture
def store_of_passages(tmp_path: Path) -> Iterator[GemelVectorStore]:
    documents = [
        Record("long", "the dog runs in the old garden. " * 6, {"kind": "animal"}),
        Record(17, "a new guitar and an old piano. " * 6, {"kind": "music"}),
        Record("short", "a cat sleeps"),
    ]
    with Collection.create(tmp_path / "store", ToyEncoder()) as collection:
        add_documents(collection, documents, Chunking(16))
    made = GemelVectorStore(tmp_path / "store", GemelEmbeddings(ToyEncoder()))
    yield made
    made.collection.close()


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_a_passage_that_was_found_is_known_by_its_id(store_of_passages: GemelVectorStore, mode: Any) -> None:
    for query in ("the dog runs", "a new guitar", "a cat sleeps"):
        for found in store_of_passages.similarity_search(query, k=2, mode=mode):
            assert found.id is not None
            assert store_of_passages.get_by_ids([found.id]) == [found]


def test_a_document_that_was_cut_is_found_and_forgotten_as_a_whole(
    store_of_passages: GemelVectorStore,
) -> None:
    store = store_of_passages
    n_passages = len(store.get_by_ids(["long"]))
    assert n_passages > 1
    assert ids_of(store.get_by_ids(["long"])) == {f"long#{number}" for number in range(1, n_passages + 1)}
    assert "17#1" in ids_of(store.get_by_ids(["17"]))
    store.delete(["long#2"])
    assert store.get_by_ids(["long", "long#1", "long#2"]) == []
    store.delete(filter="_passage.number = 2")
    assert ids_of(store.similarity_search("guitar", k=9)) == {"short"}


def test_a_passage_whose_document_lacks_its_first_one_can_be_forgotten(
    store_of_passages: GemelVectorStore,
) -> None:
    store_of_passages.collection.remove(["long#1"])
    store_of_passages.delete(["long#2"])
    assert store_of_passages.get_by_ids(["long#2"]) == []


def test_indexing_by_langchain_goes_on_where_documents_are_gone_already(store: GemelVectorStore) -> None:
    from langchain_core.indexing import InMemoryRecordManager, index

    manager = InMemoryRecordManager("gemel")
    manager.create_schema()
    documents = [Document(page_content=text, metadata={"source": text}) for text in TEXTS]
    index(documents, manager, store, cleanup="full", key_encoder="sha256")
    store.delete()
    found = index(documents[:1], manager, store, cleanup="full", key_encoder="sha256")
    assert found["num_deleted"] == 4


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


def test_a_text_that_changes_during_a_search_is_not_judged_by_another_ones_vector(
    store: GemelVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = store.collection.search_vectors

    def search_and_change(*arguments: Any, **choices: Any) -> Any:
        found = search(*arguments, **choices)
        store.add_texts(["a new guitar"], ids=["t0"])
        store.delete(["t1"])
        return found

    monkeypatch.setattr(store.collection, "search_vectors", search_and_change)
    found = store.max_marginal_relevance_search("the dog runs", k=5, fetch_k=5)
    assert ids_of(found) == {"t2", "t3", "t4"}


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

"""Scores and classes over HTTP are those of the models; what is not loaded says how to load it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from serve.made import LABELS, TinyModels
from serving_process import RunningServer
from stand_ins import sentences

QUERY, DOCUMENTS = "the man runs", sentences(30, seed=4, max_words=12)
LONG = "the man runs to a big red house " * 20


@pytest.fixture(scope="module")
def bare_server(tiny_bert: Path) -> Iterator[RunningServer]:
    """A server with an encoder only."""
    running = RunningServer("--model", str(tiny_bert))
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_come_in_the_order_of_the_rerankers_scores(
    server: RunningServer, tiny_models: TinyModels, path: str
) -> None:
    scores = tiny_models.reranker().score([(QUERY, document) for document in DOCUMENTS])
    order = np.argsort(-scores, kind="stable")
    request = {"model": "tiny-reranker", "query": QUERY, "documents": DOCUMENTS}
    answer = server.post(path, request).json()
    assert [entry["index"] for entry in answer["results"]] == order.tolist()
    found = np.array([entry["relevance_score"] for entry in answer["results"]], np.float32)
    assert found.tobytes() == scores[order].tobytes()
    best = server.post(path, {**request, "top_n": 3, "return_documents": True}).json()["results"]
    assert [entry["document"]["text"] for entry in best] == [DOCUMENTS[row] for row in order[:3]]


def test_tei_reranks_with_texts_and_raw_scores(server: RunningServer, tiny_models: TinyModels) -> None:
    scores = tiny_models.reranker().score([(QUERY, document) for document in DOCUMENTS])
    request = {"query": QUERY, "texts": DOCUMENTS, "return_text": True}
    answer = server.post("/rerank", request).json()
    assert [entry["index"] for entry in answer] == np.argsort(-scores, kind="stable").tolist()
    assert all(entry["text"] == DOCUMENTS[entry["index"]] for entry in answer)
    assert server.post("/rerank", {**request, "top_n": 3}).json() == answer[:3]
    raw = server.post("/rerank", {**request, "raw_scores": True}).json()
    logits = {entry["index"]: entry["score"] for entry in raw}
    expected = np.log(scores.astype(float)) - np.log1p(-scores.astype(float))
    np.testing.assert_allclose([logits[row] for row in range(len(DOCUMENTS))], expected, rtol=1e-4)


@pytest.fixture(scope="module")
def strict_server(
    tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server that refuses texts longer than its models read."""
    running = RunningServer(
        *("--model", str(tiny_models.encoder_folder), "--reranker", str(tiny_models.reranker_folder)),
        *("--collections", str(tmp_path_factory.mktemp("strict")), "--refuse-long"),
    )
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def pair_server(tiny_bert: Path, tiny_models: TinyModels) -> Iterator[RunningServer]:
    """A server without a classifier: /predict asks the re-ranker."""
    running = RunningServer("--model", str(tiny_bert), "--reranker", str(tiny_models.reranker_folder))
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/rerank", {"query": "a", "texts": ["b", LONG]}, "pair 1 has more than the 40 tokens"),
        ("/predict", {"inputs": [["a", "b"], ["a", LONG]]}, "pair 1 has more than the 40 tokens"),
    ],
)
def test_pairs_are_cut_or_refused_as_the_request_says(
    server: RunningServer,
    strict_server: RunningServer,
    pair_server: RunningServer,
    path: str,
    body: dict[str, object],
    says: str,
) -> None:
    for running in (server, pair_server):
        assert running.post(path, body).status_code == 200
        assert running.post(path, {**body, "truncation_direction": "Right"}).status_code == 200
        refused = running.post(path, {**body, "truncate": False})
        assert (refused.status_code, refused.json()["error_type"]) == (413, "Validation")
        assert says in refused.json()["error"]
    assert says in strict_server.post(path, body).json()["error"]
    assert strict_server.post(path, {**body, "truncate": True}).headers["x-truncated-inputs"] == "1"


@pytest.mark.parametrize(
    ("path", "short", "long"),
    [
        ("/rerank", {"query": "a", "texts": ["b"]}, {"query": "a", "texts": ["b", LONG]}),
        ("/predict", {"inputs": ["a", "b"]}, {"inputs": [["a", "b"], ["a", LONG]]}),
    ],
)
def test_a_rerankers_pair_is_not_cut_at_the_end_where_the_start_was_meant(
    pair_server: RunningServer, path: str, short: dict[str, object], long: dict[str, object]
) -> None:
    refused = pair_server.post(path, {**long, "truncation_direction": "Left"})
    assert refused.status_code == 422
    assert "pair 1 has more than the 40 tokens" in refused.json()["error"]
    assert "leave truncation_direction out" in refused.json()["error"]
    assert pair_server.post(path, {**short, "truncation_direction": "Left"}).status_code == 200


def test_a_classifiers_texts_are_cut_on_the_side_that_was_asked_for(
    server: RunningServer, tiny_models: TinyModels
) -> None:
    classifier, encoder = tiny_models.classifier(), tiny_models.encoder()
    end = encoder.encode_pieces(encoder.tokenizer.keeping_the_end(True).pieces([LONG]))
    expected = classifier.probabilities_of(encoder.encode(["a"]), end)[0]
    request = {"inputs": ["a", LONG], "truncation_direction": "Left"}
    found = {entry["label"]: entry["score"] for entry in server.post("/predict", request).json()}
    np.testing.assert_array_equal(np.array([found[label] for label in LABELS], np.float32), expected)


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v1/embeddings", {"input": ["a", LONG]}, "input 1"),
        ("/v1/similarity", {"a": LONG, "b": "a"}, "input 0"),
        ("/v1/classify", {"pairs": [["a", "b"], ["a", LONG]]}, "pair 1"),
        ("/v1/rerank", {"query": "a", "documents": ["b", LONG]}, "pair 1"),
        ("/v2/rerank", {"query": LONG, "documents": ["b"]}, "pair 0"),
        ("/v1/dedupe", {"texts": ["a", LONG]}, "a text"),
        ("/v1/collections/kept/add", {"texts": ["a", LONG]}, "a text"),
        ("/v1/search", {"collection": "kept", "queries": LONG}, "a text"),
    ],
)
def test_a_server_that_refuses_long_texts_does_so_on_every_route(
    strict_server: RunningServer, path: str, body: dict[str, object], says: str
) -> None:
    strict_server.post("/v1/collections", {"name": "kept"})
    refused = strict_server.post(path, body)
    assert refused.status_code == 413, refused.text
    assert f"{says} has more than the 40 tokens that are read" in refused.text


def test_stored_texts_that_are_long_with_a_query_are_still_reranked(strict_server: RunningServer) -> None:
    strict_server.post("/v1/collections", {"name": "read"})
    text = " ".join(LONG.split()[:20])
    assert strict_server.post("/v1/collections/read/add", {"texts": [text]}).status_code == 200
    request = {"collection": "read", "queries": text, "rerank": True}
    assert len(strict_server.post("/v1/search", request).json()["data"][0]) == 1


def test_documents_may_be_objects_with_a_text(server: RunningServer) -> None:
    plain = server.post("/v1/rerank", {"query": QUERY, "documents": DOCUMENTS[:3]}).json()["results"]
    objects = [{"text": document, "id": 7, "more": {"title": "a"}} for document in DOCUMENTS[:3]]
    assert server.post("/v1/rerank", {"query": QUERY, "documents": objects}).json()["results"] == plain


def test_classes_are_those_of_the_models_own_classifier(
    server: RunningServer, tiny_models: TinyModels
) -> None:
    pairs = list(zip(DOCUMENTS[:10], DOCUMENTS[10:20], strict=True))
    expected = tiny_models.classifier().probabilities(pairs)
    answer = server.post("/v1/classify", {"pairs": pairs}).json()
    shares = [[entry["scores"][label] for label in LABELS] for entry in answer["data"]]
    assert np.array(shares, np.float32).tobytes() == expected.tobytes()
    assert [entry["label"] for entry in answer["data"]] == [LABELS[best] for best in expected.argmax(axis=1)]
    predicted = server.post("/predict", {"inputs": pairs}).json()
    assert [of_pair[0]["label"] for of_pair in predicted] == [entry["label"] for entry in answer["data"]]
    alone = server.post("/predict", {"inputs": pairs[0]}).json()
    assert [entry["label"] for entry in alone] == [entry["label"] for entry in predicted[0]]


def test_one_text_cannot_be_predicted(server: RunningServer) -> None:
    refused = server.post("/predict", {"inputs": "a man"})
    assert refused.status_code == 424
    assert "send inputs as [a, b]" in refused.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "status", "hint"),
    [
        ("/rerank", {"query": "a", "texts": ["b"]}, 424, "start the server with --reranker NAME"),
        ("/v2/rerank", {"query": "a", "documents": ["b"]}, 404, "start the server with --reranker NAME"),
        ("/v1/classify", {"pairs": [["a", "b"]]}, 404, "start the server with --classifier FOLDER"),
        ("/predict", {"inputs": ["a", "b"]}, 424, "start the server with --reranker NAME"),
    ],
)
def test_what_is_not_loaded_says_how_to_load_it(
    bare_server: RunningServer, path: str, body: dict[str, object], status: int, hint: str
) -> None:
    refused = bare_server.post(path, body)
    assert refused.status_code == status
    assert hint in refused.text

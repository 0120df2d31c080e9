"""Vectors over HTTP are those of `encode`, bit for bit, in every dialect and under load."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from encoders.made import write_static_embedding
from serve.made import TinyModels
from serving_process import RunningServer
from stand_ins import sentences

from gemel.encoders import open_static
from gemel.similarity import normalise, pairwise

TEXTS = ["", "the", "Unknowable WORDS!", "한국어", *sentences(40, seed=3, max_words=38), "the cat " * 40]


def floats(rows: Any) -> np.ndarray:
    return np.array(rows, np.float32)


def embeddings(server: RunningServer, **request: Any) -> np.ndarray:
    response = server.post("/v1/embeddings", request)
    assert response.status_code == 200, response.text
    data = response.json()["data"]
    assert [entry["index"] for entry in data] == list(range(len(data)))
    if request.get("encoding_format") == "base64":
        return np.stack([np.frombuffer(base64.b64decode(entry["embedding"]), "<f4") for entry in data])
    return floats([entry["embedding"] for entry in data])


@pytest.mark.parametrize("encoding_format", ["float", "base64"])
def test_openai_vectors_are_those_of_encode(
    server: RunningServer, tiny_models: TinyModels, encoding_format: str
) -> None:
    expected = tiny_models.encoder().encode(TEXTS)
    found = embeddings(server, input=TEXTS, encoding_format=encoding_format)
    assert found.tobytes() == expected.tobytes()
    alone = embeddings(server, input=TEXTS[5], encoding_format=encoding_format)
    assert alone.tobytes() == expected[5:6].tobytes()


def test_tei_vectors_are_those_of_encode(server: RunningServer, tiny_models: TinyModels) -> None:
    expected = tiny_models.encoder().encode(TEXTS)
    assert floats(server.post("/embed", {"inputs": TEXTS}).json()).tobytes() == expected.tobytes()
    assert floats(server.post("/", {"inputs": TEXTS[4]}).json()).tobytes() == expected[4:5].tobytes()
    raw = server.post("/embed", {"inputs": TEXTS, "normalize": False}).json()
    assert floats(raw).tobytes() == expected.tobytes()  # this model's own vectors are unit vectors


def test_requests_of_all_sizes_at_once_get_their_own_vectors(
    server: RunningServer, tiny_models: TinyModels
) -> None:
    texts = sentences(1_500, seed=9, max_words=20)
    expected = tiny_models.encoder().encode(texts)
    generator = np.random.default_rng(0)
    spans = [
        (0, 1_500),
        (100, 900),
        *((int(start), int(start) + 1) for start in generator.integers(0, 1_500, 120)),
    ]
    with httpx.Client(base_url=server.url, timeout=60) as client, ThreadPoolExecutor(24) as pool:

        def ask(span: tuple[int, int]) -> bytes:
            body = {"input": texts[slice(*span)], "encoding_format": "base64"}
            data = client.post("/v1/embeddings", json=body).json()["data"]
            return b"".join(base64.b64decode(entry["embedding"]) for entry in data)

        for span, found in zip(spans, pool.map(ask, spans), strict=True):
            assert found == expected[slice(*span)].tobytes()


def test_token_ids_stand_for_their_text_with_and_without_special_tokens(
    server: RunningServer, tiny_models: TinyModels
) -> None:
    encoder = tiny_models.encoder()
    texts = TEXTS[4:8]
    expected = encoder.encode(texts)
    with_special = [ids.tolist() for ids in encoder.tokenise(texts).ids]
    without = [ids[1:-1] for ids in with_special]
    for ids in (with_special, without):
        assert embeddings(server, input=ids).tobytes() == expected.tobytes()
        assert floats(server.post("/embed", {"inputs": ids}).json()).tobytes() == expected.tobytes()
    assert embeddings(server, input=without[0]).tobytes() == expected[:1].tobytes()
    response = server.post("/v1/embeddings", {"input": [1, 99_999]})
    assert response.status_code == 400
    assert "token 99999 was given" in response.json()["error"]["message"]


def test_usage_counts_the_tokens_that_are_read(server: RunningServer, tiny_models: TinyModels) -> None:
    texts = ["the man runs", "the cat " * 40]
    answer = server.post("/v1/embeddings", {"input": texts})
    n_tokens = len(tiny_models.encoder().tokenise(texts).flat)
    assert answer.json()["usage"] == {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    assert answer.json()["model"] == "tiny-encoder"
    assert answer.headers["x-truncated-inputs"] == "1"


def test_fewer_dimensions_are_the_first_ones_at_unit_length(
    server: RunningServer, tiny_models: TinyModels
) -> None:
    expected = normalise(tiny_models.encoder().with_dim(7).encode(TEXTS))
    assert embeddings(server, input=TEXTS, dimensions=7).tobytes() == expected.tobytes()
    found = server.post("/embed", {"inputs": TEXTS, "dimensions": 7, "normalize": False}).json()
    assert floats(found).tobytes() == expected.tobytes()
    assert embeddings(server, input=TEXTS, dimensions=32).shape[1] == 32
    response = server.post("/v1/embeddings", {"input": "a", "dimensions": 33})
    assert response.status_code == 400
    assert "have 32 numbers; ask for fewer" in response.json()["error"]["message"]


def test_prompts_are_those_of_the_model(server: RunningServer, tiny_models: TinyModels) -> None:
    expected = tiny_models.encoder().with_prompt("query").encode(TEXTS)
    found = server.post("/embed", {"inputs": TEXTS, "prompt_name": "query"}).json()
    assert floats(found).tobytes() == expected.tobytes()
    refused = server.post("/embed", {"inputs": "a", "prompt_name": "nothing"})
    assert refused.status_code == 422
    assert "it has passage, query" in refused.json()["error"]


def test_long_texts_are_cut_where_the_request_says(server: RunningServer, tiny_models: TinyModels) -> None:
    encoder = tiny_models.encoder()
    words = sentences(1, seed=5, max_words=30)[0].split() * 40
    long, end = " ".join(words), encoder.tokenizer.keeping_the_end(True).pieces([" ".join(words)])
    right = server.post("/embed", {"inputs": long}).json()
    left = server.post("/embed", {"inputs": long, "truncation_direction": "Left"}).json()
    assert floats(right).tobytes() == encoder.encode([long]).tobytes()
    assert floats(left).tobytes() == encoder.encode_pieces(end).tobytes()
    assert right != left
    refused = server.post("/embed", {"inputs": ["the", long], "truncate": False})
    assert refused.status_code == 413
    assert refused.json()["error_type"] == "Validation"
    assert "input 1 has more than the 40 tokens" in refused.json()["error"]


def test_token_vectors_are_the_last_layers(server: RunningServer, tiny_models: TinyModels) -> None:
    encoder = tiny_models.encoder()
    found = server.post("/embed_all", {"inputs": TEXTS}).json()
    for text, rows in zip(TEXTS, found, strict=True):
        expected = encoder.encode_tokens(encoder.tokenise([text]))
        assert floats(rows).tobytes() == expected.tobytes()
    mean = normalise(floats(found[5]).mean(axis=0, keepdims=True))
    np.testing.assert_allclose(mean, encoder.encode([TEXTS[5]]), atol=1e-5)


def test_more_token_vectors_than_an_answer_holds_are_refused_before_they_are_computed(
    tiny_models: TinyModels,
) -> None:
    limits = ("--max-request-tokens", "700000", "--max-queue-tokens", "700000")
    running = RunningServer("--model", str(tiny_models.encoder_folder), *limits)
    refused = running.post("/embed_all", {"inputs": ["the man " * 30] * 16_000})  # 40 tokens, 32 numbers each
    assert refused.status_code == 413
    assert refused.json()["error"].startswith(
        "the vectors of 640,000 tokens have 20,480,000 numbers, over the"
    )
    assert "compute_seconds" not in str(running.log) or running.metric("te_batch_next_size_count") == 0
    assert running.stop() == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": "a", "model": "BAAI/bge-small", "encoding_format": "float"}),
        ("/embed_all", {"inputs": "a", "pooled": False}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"], "x": 1}, "options": {}}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"x": 1}}),
        ("/tokenize", {"inputs": "a", "model": "m"}),
        ("/decode", {"ids": [1], "model": "m"}),
        ("/rerank", {"query": "a", "texts": ["b"], "model": "m", "return_documents": True}),
        ("/predict", {"inputs": ["a", "b"], "model": "m"}),
    ],
)
def test_fields_that_text_embeddings_inference_ignores_are_ignored(
    server: RunningServer, path: str, body: dict[str, Any]
) -> None:
    answer = server.post(path, body)
    assert answer.status_code == 200, answer.text


def test_similarity_is_the_cosine_of_the_vectors(server: RunningServer, tiny_models: TinyModels) -> None:
    vectors = tiny_models.encoder().encode(TEXTS)
    request = {"inputs": {"source_sentence": TEXTS[4], "sentences": TEXTS}}
    expected = pairwise(np.repeat(vectors[4:5], len(TEXTS), axis=0), vectors, "cosine")
    assert floats(server.post("/similarity", request).json()).tobytes() == expected.tobytes()


@pytest.mark.parametrize("measure", ["cosine", "dot", "euclidean", "manhattan"])
def test_own_similarity_is_row_by_row_or_all_with_all(
    server: RunningServer, tiny_models: TinyModels, measure: str
) -> None:
    vectors = tiny_models.encoder().encode(TEXTS)
    a, b = TEXTS[:6], TEXTS[6:12]
    rows = server.post("/v1/similarity", {"a": a, "b": b, "measure": measure}).json()
    assert floats(rows["scores"]).tobytes() == pairwise(vectors[:6], vectors[6:12], measure).tobytes()
    assert rows["measure"] == measure
    matrix = server.post("/v1/similarity", {"a": a, "matrix": True, "measure": measure}).json()
    table = floats(matrix["scores"])
    assert table.shape == (6, 6)
    np.testing.assert_allclose(table[2], pairwise(vectors[[2] * 6], vectors[:6], measure), atol=1e-5)
    refused = server.post("/v1/similarity", {"a": a, "b": b[:2]})
    assert refused.status_code == 400
    assert "a has 6 texts and b 2" in refused.json()["error"]["message"]


def test_tokens_are_explained_and_put_together_again(server: RunningServer, tiny_models: TinyModels) -> None:
    text = "The cat, unhappy 한국 runs"
    (tokens,) = server.post("/tokenize", {"inputs": text}).json()
    assert [token["id"] for token in tokens] == tiny_models.encoder().tokenise([text]).flat.tolist()
    assert [token["special"] for token in tokens] == [True, *[False] * (len(tokens) - 2), True]
    for token in tokens[1:-1]:
        assert text[token["start"] : token["stop"]] == token["text"]
    assert tokens[0]["start"] is None
    bare = server.post("/tokenize", {"inputs": [text], "add_special_tokens": False}).json()[0]
    assert bare == tokens[1:-1]
    ids = [token["id"] for token in server.post("/tokenize", {"inputs": "the cat runs"}).json()[0]]
    assert server.post("/decode", {"ids": ids}).json() == ["the cat runs"]
    assert server.post("/decode", {"ids": [ids, ids[1:2]]}).json() == ["the cat runs", "the"]
    assert server.post("/decode", {"ids": [99_999]}).status_code == 422


def test_models_are_called_by_their_names(server: RunningServer) -> None:
    ids = [model["id"] for model in server.get("/v1/models").json()["data"]]
    assert ids == ["tiny-encoder", "tiny-reranker"]
    assert server.get("/v1/models/tiny-encoder").json()["object"] == "model"
    assert server.get("/v1/models/other/one").status_code == 404
    assert server.post("/v1/embeddings", {"input": "a", "model": "tiny-encoder"}).status_code == 200
    refused = server.post("/v1/embeddings", {"input": "a", "model": "text-embedding-3-small"})
    assert refused.status_code == 404
    assert refused.json()["error"]["code"] == "model_not_found"
    assert "here is 'tiny-encoder'" in refused.json()["error"]["message"]


def test_info_says_what_is_loaded(server: RunningServer, tiny_models: TinyModels) -> None:
    info = server.get("/info").json()
    encoder = tiny_models.encoder()
    assert (info["model_id"], info["dim"]) == ("tiny-encoder", encoder.dim)
    assert info["fingerprint"] == encoder.fingerprint
    assert info["max_input_length"] == 40
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}


def test_an_encoder_without_tokens_is_served_too(tmp_path: Path) -> None:
    write_static_embedding(tmp_path / "static")
    encoder = open_static(tmp_path / "static")
    running = RunningServer("--model", str(tmp_path / "static"), threads=None)
    texts = [text for text in TEXTS if text.isascii() and text.strip()]
    assert embeddings(running, input=texts).tobytes() == encoder.encode(texts).tobytes()
    assert floats(running.post("/embed", {"inputs": texts, "normalize": False}).json()).shape[0] == len(texts)
    for path in ("/tokenize", "/embed_all"):
        refused = running.post(path, {"inputs": "a"})
        assert refused.status_code == 424
        assert "has no tokens of its own; start the server with --model NAME" in refused.json()["error"]
    assert running.post("/v1/embeddings", {"input": [1, 2]}).status_code == 404
    assert running.stop() == 0

"""The clients that people have, pointed at a gemel server; schemathesis over what it says of itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from serve.made import TinyModels, save_tiny_encoder
from serving_process import RunningServer
from stand_ins import sentences

from gemel.checkpoint import read_encoder_folder
from gemel.model import CrossEncoder
from gemel.similarity import normalise, pairwise

pytestmark = pytest.mark.extras

KEY = "a-key-for-every-client"
TEXTS = sentences(12, seed=8, max_words=15)
QUERY = "the man runs"


@pytest.fixture(scope="module")
def models(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    place = tmp_path_factory.mktemp("served")
    save_tiny_encoder(tiny_bert, place / "tiny-encoder")
    torch.manual_seed(0)
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), ("score",), device="cpu").save(
        place / "tiny-reranker"
    )
    return TinyModels(place / "tiny-encoder", place / "tiny-reranker")


@pytest.fixture(scope="module")
def server(models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(
        *("--model", str(models.encoder_folder), "--reranker", str(models.reranker_folder)),
        *("--collections", str(tmp_path_factory.mktemp("collections"))),
        GEMEL_API_KEYS=KEY,
    )
    yield running
    assert running.stop() == 0


def bin_of_clients() -> Path:
    place = Path(os.environ.get("GEMEL_CLIENTS", ".venv-clients")).resolve() / "bin"
    assert (place / "python").exists(), f"{place}/python is missing: `make test-extras` makes it"
    return place


def ask(client: str, server: RunningServer) -> Any:
    worker = Path(__file__).with_name("clients_worker.py")
    request = json.dumps({"url": server.url, "key": KEY, "texts": TEXTS, "query": QUERY})
    done = subprocess.run(
        [bin_of_clients() / "python", worker, client, request], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.splitlines()[-1])


def bits(rows: Any) -> bytes:
    return np.array(rows, np.float32).tobytes()


def test_openai(server: RunningServer, models: TinyModels) -> None:
    encoder = models.encoder()
    expected = encoder.encode(TEXTS)
    found = ask("openai", server)
    assert bits(found["vectors"]) == bits(found["floats"]) == bits(found["async"]) == expected.tobytes()
    assert bits(found["short"]) == normalise(encoder.with_dim(5).encode(TEXTS[:1])).tobytes()
    assert found["tokens"] == len(encoder.tokenise(TEXTS).flat)
    assert found["model"] == "tiny-encoder"
    assert found["errors"]["model"][:3] == ["NotFoundError", 404, "model_not_found"]
    assert found["errors"]["size"][:2] == ["BadRequestError", 400]
    assert found["errors"]["key"][:3] == ["AuthenticationError", 401, "invalid_api_key"]
    assert "have 32 numbers" in found["errors"]["size"][3]


def test_cohere(server: RunningServer, models: TinyModels) -> None:
    scores = models.reranker().score([(QUERY, text) for text in TEXTS])
    best = np.argsort(-scores, kind="stable")[:5]
    found = ask("cohere", server)
    for version in ("v1", "v2"):
        assert [index for index, _ in found[version]] == best.tolist()
        assert bits([score for _, score in found[version]]) == scores[best].tobytes()
        assert "'rerank-v3.5' is not loaded" in found[f"{version} error"]


def test_huggingface_hub(server: RunningServer, models: TinyModels) -> None:
    encoder = models.encoder()
    vectors = encoder.encode(TEXTS)
    found = ask("huggingface", server)
    assert bits(found["root"]) == bits(found["embed"]) == vectors[1].tobytes()
    assert bits(found["prompted"]) == encoder.with_prompt("query").encode(TEXTS[1:2]).tobytes()
    expected = pairwise(vectors[[0] * (len(TEXTS) - 1)], vectors[1:], "cosine")
    assert bits(found["similarity"]) == expected.tobytes()


@pytest.mark.parametrize("client", ["langchain", "llama_index"])
def test_frameworks_that_speak_openai(server: RunningServer, models: TinyModels, client: str) -> None:
    expected = models.encoder().encode(TEXTS)
    found = ask(client, server)
    assert bits(found["documents"]) == expected.tobytes()
    assert bits(found["query"]) == expected[0].tobytes()


def test_schemathesis_finds_no_server_error_and_no_answer_that_breaks_the_document(
    server: RunningServer, tmp_path: Path
) -> None:
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    command = [
        *(bin_of_clients() / "schemathesis", "run", f"{server.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {KEY}", "--checks", checks),
        *("--max-examples", os.environ.get("GEMEL_SCHEMATHESIS_EXAMPLES", "60"), "--seed", "1"),
        *("--request-timeout", "60", "--no-color"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_200, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]

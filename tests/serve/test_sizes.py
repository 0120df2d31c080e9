"""Lists of too many entries are refused by their length, and large bodies keep nobody waiting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from serve.made import TinyModels
from serving_process import RunningServer

JSON = {"Content-Type": "application/json"}
INPUTS, TOKENS = "max_inputs=16,384", "max_request_tokens=300,000"


def body_of(before: str, entry: str, after: str, n_bytes: int) -> bytes:
    """A body of as many entries as fit."""
    return (before + ",".join([entry] * (n_bytes // (len(entry) + 1))) + after).encode()


@pytest.mark.parametrize(
    ("path", "before", "entry", "after", "limit"),
    [
        ("/embed", '{"inputs":[', '""', "]}", INPUTS),
        ("/embed", '{"inputs":[', "[1]", "]}", INPUTS),
        ("/embed", '{"inputs":[', "1", "]}", TOKENS),
        ("/embed", '{"inputs":[', "[" + "1," * 200_000 + "1]", "]}", TOKENS),
        ("/decode", '{"ids":[', "1", "]}", TOKENS),
        ("/decode", '{"ids":[', "[1]", "]}", INPUTS),
        ("/decode", '{"ids":[', "[" + "1," * 200_000 + "1]", "]}", TOKENS),
        ("/tokenize", '{"inputs":[', '""', "]}", INPUTS),
        ("/similarity", '{"inputs":{"source_sentence":"a","sentences":[', '""', "]}}", INPUTS),
        ("/rerank", '{"query":"a","texts":[', '""', "]}", INPUTS),
        ("/predict", '{"inputs":[', '["",""]', "]}", INPUTS),
        ("/v1/rerank", '{"query":"a","documents":[', '{"text":""}', "]}", INPUTS),
        ("/v1/classify", '{"pairs":[', '["",""]', "]}", INPUTS),
        ("/v1/similarity", '{"matrix":true,"a":[', '""', "]}", INPUTS),
        ("/v1/mine", '{"texts":[', '""', "]}", INPUTS),
    ],
)
def test_too_many_entries_are_refused_on_every_route(
    server: RunningServer, path: str, before: str, entry: str, after: str, limit: str
) -> None:
    body = body_of(before, entry, after, 1_000_000)
    refused = httpx.post(server.url + path, content=body, headers=JSON, timeout=60)
    assert refused.status_code == 413, refused.text
    assert f"over the limit {limit}; send them in" in refused.text


def test_the_list_that_is_too_long_is_named(server: RunningServer) -> None:
    request = {"inputs": {"source_sentence": "a", "sentences": ["b"] * 16_385}}
    assert (
        server.post("/similarity", request).json()["error"].startswith("inputs.sentences has 16,385 entries")
    )
    refused = server.post("/v1/rerank", {"query": "a", "documents": ["b"] * 16_385})
    assert refused.json()["message"].startswith("documents has 16,385 entries")


@pytest.mark.parametrize(
    ("path", "before", "entry"),
    [
        ("/v1/rerank", '{"query":"a","documents":[', '{"text":""}'),
        ("/v1/rerank", '{"query":"a","documents":[1,', '{"text":""}'),
        ("/decode", '{"ids":[', "[1]"),
    ],
)
def test_a_body_of_millions_of_entries_keeps_nobody_waiting_for_long(
    server: RunningServer, path: str, before: str, entry: str
) -> None:
    body = body_of(before, entry, "]}", 15_900_000)
    assert any(longest_wait_for_health(server, path, body) < 10 for _ in range(3))


def longest_wait_for_health(server: RunningServer, path: str, body: bytes) -> float:
    """While a body that is refused is looked at."""
    longest = 0.0
    with httpx.Client(base_url=server.url, timeout=60) as client, ThreadPoolExecutor(1) as pool:
        client.get("/health")
        asked = pool.submit(httpx.post, server.url + path, content=body, headers=JSON, timeout=60)
        while not asked.done():
            longest = max(longest, client.get("/health").elapsed.total_seconds())
    assert asked.result().status_code == 413
    return longest


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v1/rerank", {"query": "a", "documents": ["b", {"text": 1}]}, "documents[1].text is the number 1"),
        ("/v1/rerank", {"query": "a", "documents": ["b", 1]}, "documents[1] is the number 1, and a text, or"),
        ("/decode", {"ids": [[1], [1, "a"]]}, "ids[1][1] is a text, and a whole number"),
        ("/decode", {"ids": [1, [1]]}, "ids[1] is a list, and a whole number"),
        ("/decode", {"ids": ["a"]}, "ids is a list, and token ids, or a list of such was expected"),
        ("/decode", {"ids": []}, "ids has 0 entries"),
        ("/decode", {"ids": "a"}, "ids is a text, and token ids"),
        ("/predict", {"inputs": [["a", "b"], ["a"] * 3]}, "inputs[1] has 3 entries, and 1 to 2"),
        ("/tokenize", {"inputs": ["a", 1]}, "inputs[1] is the number 1, and a text"),
        ("/tokenize", {"inputs": [1]}, "inputs[0] is the number 1, and a text"),
        ("/embed", {"inputs": [[1], [1, "a"]]}, "inputs[1][1] is a text, and a token id"),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": [1]}}, "inputs.sentences[0] is the"),
    ],
)
def test_the_entry_that_is_wrong_is_named(
    server: RunningServer, path: str, body: dict[str, object], says: str
) -> None:
    refused = server.post(path, body)
    assert refused.status_code in (400, 422)
    assert says in refused.text


def test_large_bodies_are_read_as_small_ones_are(server: RunningServer) -> None:
    texts = [f"the man runs {'a ' * (row % 20)}{row}" for row in range(8_000)]
    whole = server.post("/embed", {"inputs": texts}).json()
    assert whole[7_000:7_002] == server.post("/embed", {"inputs": texts[7_000:7_002]}).json()
    wrong = server.post("/embed", {"inputs": [*texts, 1]})
    assert wrong.status_code == 422
    assert "inputs[8000] is the number 1, and a text was expected" in wrong.json()["error"]


def test_what_a_request_holds_is_counted_once(tiny_models: TinyModels, tmp_path: Path) -> None:
    models = ("--model", str(tiny_models.encoder_folder), "--reranker", str(tiny_models.reranker_folder))
    running = RunningServer(*models, "--collections", str(tmp_path))
    running.post("/v1/collections", {"name": "notes"})
    asked = {
        "added": ("/v1/collections/notes/add", {"texts": ["a man", "a dog", "a cat"]}, 3),
        "again": ("/v1/collections/notes/add", {"texts": ["a man", "a dog", "a cow", "a cow"]}, 4),
        "one": ("/v1/search", {"collection": "notes", "queries": "a horse"}, 1),
        "two": ("/v1/search", {"collection": "notes", "queries": ["a man", "a house"]}, 2),
        "reranked": ("/v1/search", {"collection": "notes", "queries": "a horse", "rerank": True}, 1),
        "mined": ("/v1/mine", {"texts": ["a man", "a dog", "a cat"], "n_pairs": 1}, 3),
        "classes": ("/v1/classify", {"pairs": [["a man", "a dog"]]}, 2),
    }
    for name, (path, body, _) in asked.items():
        answer = running.post(path, body, headers={"X-Request-Id": name})
        assert answer.status_code == 200, answer.text
    assert running.stop() == 0
    told = {entry.get("id"): entry for entry in running.log}
    assert {name: told[name]["inputs"] for name in asked} == {name: n for name, (_, _, n) in asked.items()}

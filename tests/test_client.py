"""The client gives what the models give, and says what went wrong."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from serving_process import RunningServer
from stand_ins import sentences

from gemel import Client, Encoder, InvalidInput, Overloaded, ServerError, load_encoder
from gemel.similarity import pairwise

KEY = "a-key-for-the-client"


@pytest.fixture(scope="module")
def guarded(tiny_bert: Path) -> Iterator[RunningServer]:
    running = RunningServer("--model", str(tiny_bert), GEMEL_API_KEYS=KEY)
    yield running
    assert running.stop() == 0


def test_the_client_is_an_encoder_with_the_same_bits(guarded: RunningServer, tiny_bert: Path) -> None:
    client, local = Client(guarded.url, key=KEY), load_encoder(tiny_bert, on_truncate="ignore")
    texts = ["", "한국어", *sentences(2_500, seed=1, max_words=9)]
    assert isinstance(client, Encoder)
    assert (client.dim, client.fingerprint) == (local.dim, local.fingerprint)
    assert client.encode(texts).tobytes() == local.encode(texts).tobytes()
    assert client.encode_one(texts[3]).tobytes() == local.encode_one(texts[3]).tobytes()
    assert client.encode([]).shape == (0, local.dim)
    expected = pairwise(local.encode(texts[:5]), local.encode(texts[5:10]), "cosine")
    np.testing.assert_array_equal(client.similarity(texts[:5], texts[5:10]), expected)
    assert client.models() == ["bert"]
    assert client.is_ready()


def test_what_the_server_refuses_is_raised_with_its_words(guarded: RunningServer) -> None:
    client = Client(guarded.url, key=KEY)
    with pytest.raises(ServerError, match=r"/v2/rerank answered 404: no re-ranker is loaded") as raised:
        client.rerank("a", ["b"])
    assert raised.value.status == 404
    with pytest.raises(ServerError, match="answered 404: no classifier is loaded"):
        client.classify([("a", "b")])
    with pytest.raises(ServerError, match="answered 401: this server needs a key"):
        Client(guarded.url).encode(["a"])
    with pytest.raises(InvalidInput, match=r"a sequence of texts was expected"):
        client.encode("a")
    with pytest.raises(InvalidInput, match="lone surrogate"):
        client.encode(["\ud800"])


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = Client(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ServerError, match="is gemel serve running"):
            client.encode(["a"])
        assert not client.is_ready()
    with pytest.raises(InvalidInput, match="was expected"):
        Client("127.0.0.1:8080")


def test_a_kept_connection_that_was_closed_is_opened_again(tiny_bert: Path) -> None:
    first = RunningServer("--model", str(tiny_bert))
    client = Client(first.url)
    expected = client.encode(["the cat"])
    assert first.stop() == 0
    second = RunningServer("--model", str(tiny_bert), "--port", str(first.port))
    assert client.encode(["the cat"]).tobytes() == expected.tobytes()
    assert second.stop() == 0


def test_an_overloaded_server_is_asked_again_until_the_time_is_over(tiny_bert: Path) -> None:
    running = RunningServer("--model", str(tiny_bert), "--max-concurrent-requests", "1")
    half = (
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", running.port)) as occupying:
        occupying.sendall(half)
        while running.metric("gemel_requests") < 2:  # the one above, and the question itself
            pass
        with pytest.raises(Overloaded, match="max_concurrent_requests=1"):
            Client(running.url, timeout_seconds=1.5).encode(["a"])
    assert Client(running.url).encode(["a"]).shape[0] == 1
    assert running.stop() == 0

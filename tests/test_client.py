"""The client gives what the models give, and says what went wrong."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
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


@pytest.fixture(scope="module")
def narrow(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that takes little at once."""
    root = tmp_path_factory.mktemp("narrow")
    limits = ("--max-request-tokens", "2000", "--max-body-bytes", "100000")
    running = RunningServer("--model", str(tiny_bert), "--collections", str(root), *limits)
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


def test_what_is_too_large_for_the_server_goes_in_halves(narrow: RunningServer, tiny_bert: Path) -> None:
    client, local = Client(narrow.url), load_encoder(tiny_bert, on_truncate="ignore")
    texts = sentences(300, seed=2, max_words=30)
    assert client.encode(texts).tobytes() == local.encode(texts).tobytes()
    client.create("halves")
    assert client.add("halves", texts, range(300), [{"row": row} for row in range(300)]) == 300
    (hit,) = client.search("halves", [texts[7]], 1, mode="dense", filter="row = 7")[0]
    assert (hit.id, hit.text) == (7, texts[7])


def test_one_text_that_is_too_large_is_refused_with_its_place(narrow: RunningServer) -> None:
    texts = ["the man", "runs", "a" * 150_000, "the cat"]
    with pytest.raises(ServerError, match=r"max_body_bytes=100,000.*\(this was text 2\)") as raised:
        Client(narrow.url).encode(texts)
    assert raised.value.status == 413


def test_long_texts_are_sent_in_parts_of_so_many_characters(tiny_bert: Path) -> None:
    running = RunningServer("--model", str(tiny_bert))
    texts = ["the man runs " * 46] * 2_048  # about 600 characters each
    assert len(Client(running.url).encode(texts)) == len(texts)
    assert running.metric("te_request_success") == 3
    assert running.metric("te_request_failure") == 0
    assert running.stop() == 0


def test_ids_and_metadata_that_do_not_fit_the_texts_are_refused_before_anything_is_stored(
    narrow: RunningServer,
) -> None:
    client, texts = Client(narrow.url), sentences(300, seed=2, max_words=30)
    client.create("fitting")
    with pytest.raises(InvalidInput, match="299 ids were given for 300 texts; give one for each text"):
        client.add("fitting", texts, range(299))
    with pytest.raises(InvalidInput, match="301 metadata were given for 300 texts"):
        client.add("fitting", texts, metadata=[{}] * 301)
    with pytest.raises(InvalidInput, match="id 0 is given twice, at 0 and at 299; give every id once"):
        client.add("fitting", texts, [*range(299), 0])
    with pytest.raises(InvalidInput, match="Path was given, which JSON cannot hold"):
        client.add("fitting", texts[:1], metadata=[{"file": Path("a")}])
    assert narrow.get("/v1/collections/fitting").json()["n_records"] == 0


def test_numbers_of_numpy_are_taken_for_ids_and_metadata(narrow: RunningServer) -> None:
    client = Client(narrow.url)
    client.create("numbered")
    metadata = [{"share": np.float32(0.5), "is_even": np.bool_(row % 2 == 0)} for row in range(4)]
    assert client.add("numbered", sentences(4), np.arange(4), metadata) == 4
    assert client.remove("numbered", np.arange(3, 5)) == 1
    (hit,) = client.search("numbered", ["the man"], 9, mode="dense", filter="is_even and share < 1")[0][:1]
    assert hit.id in (0, 2)


class TakenMeanwhile(deque[http.client.HTTPConnection]):
    """Connections of which another thread takes the last between a look and a grasp."""

    def __bool__(self) -> bool:
        was_there = len(self) > 0
        self.clear()
        return was_there


def test_a_connection_that_another_thread_takes_is_not_missed(guarded: RunningServer) -> None:
    client = Client(guarded.url, key=KEY)
    client._kept = TakenMeanwhile()
    assert [client.is_ready() for _ in range(3)] == [True] * 3
    client.close()


@pytest.mark.parametrize("url", ["http://h:abc", "http://h:99999", "http://[", "ftp://h", "h:8080"])
def test_what_is_no_address_is_refused_in_words(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"was given, and one such as http://127.0.0.1:8080 was expected"):
        Client(url)


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = Client(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ServerError, match="is gemel serve running"):
            client.encode(["a"])
        assert not client.is_ready()
    with pytest.raises(InvalidInput, match="was expected"):
        Client("127.0.0.1:8080")


@contextmanager
def something_else(*answers: tuple[int, bytes, str | None]) -> Iterator[str]:
    """A web server that is not ours, such as a proxy: status, body and Retry-After of each answer in turn."""
    remaining = list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body, retry_after = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            self.send_response(status)
            if retry_after is not None:
                self.send_header("Retry-After", retry_after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"", b"[1]", b"\xff", b"[" * 100_000])
def test_an_answer_that_is_not_the_server_s_is_told_as_such(body: bytes) -> None:
    with something_else((200, body, None)) as url, Client(url) as client:
        with pytest.raises(ServerError, match=r"/info answered 200 with what is no JSON object") as raised:
            client.info()
        assert raised.value.status == 200
        assert client.is_ready() == (body == b"")  # which is how ours says so


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (formatdate(0, usegmt=True), 0.1),
        ("-5", 0.1),
        ("0.3", 0.3),
        ("soon", 1.0),
        ("nan", 1.0),
        (None, 1.0),
    ],
)
def test_whatever_a_server_says_of_coming_again_it_is_asked_again(
    told: str | None, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses, sleep = [], time.sleep
    monkeypatch.setattr("gemel.client.time.sleep", lambda pause: (pauses.append(pause), sleep(pause)))
    good = json.dumps({"dim": 3}).encode()
    with something_else((503, b"<html>", told), (200, good, None)) as url, Client(url) as client:
        assert client.info() == {"dim": 3}
    assert pauses == [pytest.approx(seconds)]


def test_a_date_too_far_off_is_not_waited_for() -> None:
    later = formatdate(time.time() + 1_000, usegmt=True)
    with something_else((503, b"<html>", later)) as url, Client(url, timeout_seconds=5) as client:
        with pytest.raises(ServerError, match="/info answered 503: <html>"):
            client.info()
        assert not client.is_ready()


def test_a_server_that_has_too_much_to_do_is_not_ready() -> None:
    with something_else((429, b"", None)) as url, Client(url) as client:
        assert not client.is_ready()


def test_a_key_is_taken_without_the_end_of_its_line_and_never_shown(guarded: RunningServer) -> None:
    assert Client(guarded.url, key=f" {KEY}\n").encode(["a"]).shape[0] == 1
    for wrong in (f"{KEY}\r\n{KEY}", f"{KEY} {KEY}", f"{KEY}한"):
        with pytest.raises(InvalidInput, match=f"character {len(KEY)} of the key") as raised:
            Client(guarded.url, key=wrong)
        assert KEY not in str(raised.value)


def test_no_texts_are_added_and_the_records_counted_all_the_same(narrow: RunningServer) -> None:
    client = Client(narrow.url)
    client.create("counted")
    assert client.add("counted", []) == 0
    assert client.add("counted", ["the man", "the cat"]) == 2
    assert client.add("counted", []) == 2
    with pytest.raises(ServerError, match="answered 404: there is no collection 'absent'"):
        client.add("absent", [])


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
        until = time.monotonic() + 60
        while running.metric("gemel_requests") < 2:  # the one above, and the question itself
            assert time.monotonic() < until
        with pytest.raises(Overloaded, match="max_concurrent_requests=1"):
            Client(running.url, timeout_seconds=4).encode(["a"])
    assert Client(running.url).encode(["a"]).shape[0] == 1
    assert running.stop() == 0

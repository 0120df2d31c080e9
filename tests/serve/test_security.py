"""Who is heard: hosts, origins, keys, content types, limits."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving_process import COMMAND, RunningServer
from stand_ins import sentences

from gemel.errors import InvalidInput
from gemel.serve.keys import Keys
from gemel.serve.refusals import Refusal
from gemel.serve.settings import Limits

READ_KEY, WRITE_KEY = "r" * 24, "w" * 24
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def guarded(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with keys, tight limits and one foreign page."""
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    file.write_text(f"# who may what\n{READ_KEY} read\n{WRITE_KEY}\n", encoding="utf-8")
    limits = ["--max-body-bytes", "5000", "--max-inputs", "8", "--max-request-tokens", "100"]
    running = RunningServer(
        *("--model", str(tiny_bert), "--key-file", str(file), "--cors-origin", PAGE, *limits),
        GEMEL_API_KEYS="environment-key-0001",
    )
    yield running
    assert running.stop() == 0


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("key", [READ_KEY, WRITE_KEY, "environment-key-0001"])
def test_every_key_may_read(guarded: RunningServer, key: str) -> None:
    assert guarded.post("/embed", {"inputs": "a"}, headers=bearer(key)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("x" * 24),
        bearer(READ_KEY[:-1]),
        {"Authorization": "Bearer"},
        {"Authorization": READ_KEY},
        {"Authorization": "Basic " + base64.b64encode(READ_KEY.encode()).decode()},
        {"Authorization": "Bearer \xff\xfe"},
    ],
)
def test_without_a_key_nothing_but_health_is_told(guarded: RunningServer, headers: dict[str, str]) -> None:
    for path in ("/embed", "/v1/embeddings", "/v2/rerank"):
        refused = guarded.post(
            path, {"inputs": "a"}, headers={k: v.encode("latin-1") for k, v in headers.items()}
        )
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
    for path in ("/info", "/metrics", "/v1/models"):
        assert guarded.get(path).status_code == 401
    for path in ("/health", "/ready", "/ping", "/openapi.json"):
        assert guarded.get(path).status_code == 200


def test_a_reading_key_may_not_write() -> None:
    keys = Keys([(READ_KEY, "read"), (WRITE_KEY, "write")])
    keys.check(f"Bearer {WRITE_KEY}", "write")
    keys.check(f"bearer {READ_KEY}", "read")
    with pytest.raises(Refusal, match="may only read"):
        keys.check(f"Bearer {READ_KEY}", "write")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("short", "a key has 5 characters; use at least 16"),
        ("k" * 20 + " admin", "a key's scope is 'admin'"),
        ("# nothing\n\n", "has no key; write one a line"),
    ],
)
def test_a_file_of_keys_that_is_wrong_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "keys").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=problem):
        Keys.read(tmp_path / "keys")
    with pytest.raises(InvalidInput, match="cannot be read"):
        Keys.read(tmp_path / "nowhere")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "localhost.evil"])
def test_a_host_that_is_not_the_servers_is_refused(server: RunningServer, host: str) -> None:
    refused = server.post("/embed", {"inputs": "a"}, headers={"Host": host})
    assert refused.status_code == 421
    assert "--allowed-host" in refused.json()["error"]["message"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:80", "[::1]:80"])
def test_every_name_of_this_machine_is_heard(server: RunningServer, host: str) -> None:
    assert server.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://["])
def test_a_page_of_another_origin_is_refused(server: RunningServer, origin: str) -> None:
    refused = server.post("/embed", {"inputs": "a"}, headers={"Origin": origin})
    assert refused.status_code == 403
    assert "access-control-allow-origin" not in refused.headers


def test_the_servers_own_origin_is_heard(server: RunningServer) -> None:
    headers = {"Origin": server.url}
    assert server.post("/embed", {"inputs": "a"}, headers=headers).status_code == 200


def test_only_the_page_that_was_named_may_ask_across_origins(guarded: RunningServer) -> None:
    preflight = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    allowed = httpx.options(guarded.url + "/embed", headers=preflight, timeout=60)
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == PAGE
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    foreign = {**preflight, "Origin": "https://evil.example"}
    refused = httpx.options(guarded.url + "/embed", headers=foreign, timeout=60)
    assert refused.status_code == 403
    assert "access-control-allow-origin" not in refused.headers


# What openai-node 4 asks for from within a browser.
OPENAI_NODE = (
    "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,"
    "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout"
)


def test_a_page_may_send_the_headers_of_its_client_and_read_ours(guarded: RunningServer) -> None:
    preflight = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": OPENAI_NODE,
    }
    allowed = httpx.options(guarded.url + "/v1/embeddings", headers=preflight, timeout=60)
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-headers"] == OPENAI_NODE
    assert allowed.headers["vary"] == "Origin, Access-Control-Request-Headers"
    answer = guarded.post("/embed", {"inputs": "a"}, headers={"Origin": PAGE, **bearer(READ_KEY)})
    told = answer.headers["access-control-expose-headers"].split(", ")
    assert {"retry-after", "x-truncated-inputs", "x-request-id"} <= set(told)
    assert "access-control-expose-headers" not in guarded.get("/health").headers


@pytest.mark.parametrize("wanted", ["*", "a b", "x-é", "a,,b", ",a", "a:b", "x" * 65, ",".join(["x"] * 65)])
def test_what_are_no_names_of_headers_is_not_repeated(guarded: RunningServer, wanted: str) -> None:
    preflight = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": wanted,
    }
    raw = {name: value.encode("latin-1") for name, value in preflight.items()}
    allowed = httpx.options(guarded.url + "/embed", headers=raw, timeout=60)
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-headers"].startswith("authorization, content-type, ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": ""},
    ],
)
def test_what_is_no_plain_json_is_refused(server: RunningServer, headers: dict[str, str]) -> None:
    refused = httpx.post(server.url + "/embed", content=b'{"inputs": "a"}', headers=headers, timeout=60)
    assert refused.status_code == 415


def test_every_answer_has_the_security_headers_and_an_id(server: RunningServer) -> None:
    answers = [server.get("/health"), server.get("/nothing"), server.post("/embed", {"inputs": "a"})]
    for answer in (*answers, server.get("/health", headers={"Host": "evil"})):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["cache-control"] == "no-store"
        assert len(answer.headers["x-request-id"]) == 32
        assert "server" not in answer.headers
    own = server.get("/health", headers={"X-Request-Id": "mine-42"})
    assert own.headers["x-request-id"] == "mine-42"
    foreign = server.get("/health", headers={"X-Request-Id": "a\tb{}"})
    assert foreign.headers["x-request-id"] != "a\tb{}"


@pytest.mark.parametrize(
    ("inputs", "limit"),
    [
        (["a"] * 9, "max_inputs=8"),
        (["the cat runs " * 10] * 4, "max_request_tokens=100"),
        (["x" * 6_000], "max_body_bytes=5,000"),
    ],
)
def test_the_limit_is_named_in_the_refusal(guarded: RunningServer, inputs: list[str], limit: str) -> None:
    for path, field in (("/embed", "inputs"), ("/v1/embeddings", "input")):
        refused = guarded.post(path, {field: inputs}, headers=bearer(READ_KEY))
        assert refused.status_code == 413
        assert limit in refused.text


def test_a_body_that_grows_over_the_limit_without_announcing_it_is_refused(guarded: RunningServer) -> None:
    headers = {"Content-Type": "application/json", **bearer(READ_KEY)}
    content = (b" " * 1_000 for _ in range(20))
    refused = httpx.post(guarded.url + "/embed", content=content, headers=headers, timeout=60)
    assert refused.status_code == 413
    assert "max_body_bytes=5,000" in refused.text


def test_other_machines_are_not_let_in_without_a_key(tiny_bert: Path) -> None:
    command = [*COMMAND, "--host", "0.0.0.0", "--port", "0", "--model", str(tiny_bert)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "lets other machines in and there is no key" in done.stderr


def test_a_port_that_is_taken_is_told_in_one_line(server: RunningServer, tiny_bert: Path) -> None:
    command = [*COMMAND, "--port", str(server.port), "--model", str(tiny_bert)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"gemel: port {server.port} of '127.0.0.1' cannot be listened on (Address already")


def test_the_log_has_numbers_and_never_texts(server: RunningServer) -> None:
    secret = "the horse knows Zanzibar"
    server.post("/embed", {"inputs": [secret, secret]}, headers={"X-Request-Id": "told"})
    server.post("/embed", {"inputs": {secret: secret}}, headers={"X-Request-Id": "refused"})
    server.post(f"/{secret}", {"inputs": secret}, headers={"X-Request-Id": "nowhere"})
    server.wait_for("request")
    entries = {}
    for _ in range(100):
        entries = {entry.get("id"): entry for entry in server.log}
        if {"told", "refused", "nowhere"} <= entries.keys():
            break
        server.get("/health")
    assert entries["told"]["inputs"] == 2
    assert entries["told"]["status"] == 200
    assert entries["told"]["tokens"] > 4
    assert entries["refused"]["status"] == 422
    assert entries["nowhere"]["route"] is None
    assert "Zanzibar" not in str(server.log)


@pytest.mark.parametrize(
    "wrong",
    [{"max_inputs": 0}, {"timeout_seconds": -1.0}, {"max_request_tokens": 10, "max_queue_tokens": 5}],
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        Limits(**wrong)


def test_real_texts_pass_the_guard(guarded: RunningServer) -> None:
    texts = sentences(5, seed=2, max_words=8)
    assert len(guarded.post("/embed", {"inputs": texts}, headers=bearer(WRITE_KEY)).json()) == 5

"""Collections and gemel's own work over HTTP: the same as the functions, within limits, under one root."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serve.made import TinyModels
from serving_process import RunningServer
from stand_ins import sentences

from gemel import Client, ServerError
from gemel.index import Collection, Record
from gemel.index.database import FILE_NAME, Database
from gemel.serve.demo import add_demo
from gemel.serve.library import Library
from gemel.serve.refusals import Refusal
from gemel.tasks.cluster import cluster
from gemel.tasks.corpus import make_corpus
from gemel.tasks.dedupe import dedupe
from gemel.tasks.hit_fields import fields_of
from gemel.tasks.mine import mine
from gemel.tasks.search import search

TEXTS = [*sentences(60), sentences(60)[3].upper(), sentences(60)[7]]
READ_KEY, WRITE_KEY = "r" * 24, "w" * 24


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "collections"


@pytest.fixture(scope="module")
def keeper(tiny_models: TinyModels, root: Path) -> Iterator[RunningServer]:
    """A server with a collection named stored."""
    running = RunningServer(
        *("--model", str(tiny_models.encoder_folder), "--reranker", str(tiny_models.reranker_folder)),
        *("--collections", str(root)),
    )
    assert running.get("/v1/collections").json() == {"object": "list", "data": []}
    assert running.post("/v1/collections", {"name": "stored"}).json()["n_records"] == 0
    request = {
        "texts": TEXTS,
        "ids": list(range(len(TEXTS))),
        "metadata": [{"even": row % 2 == 0} for row in range(len(TEXTS))],
    }
    assert running.post("/v1/collections/stored/add", request).json()["n_new"] == len(TEXTS)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def stored(keeper: RunningServer, tiny_models: TinyModels, root: Path) -> Iterator[Collection]:
    """The same collection, opened here."""
    encoder = tiny_models.encoder()
    with Collection.open(
        root / "stored",
        encoder.with_prompt("passage"),
        query_encoder=encoder.with_prompt("query"),
        read_only=True,
    ) as collection:
        yield collection


def failure_of(running: RunningServer, answer: httpx.Response) -> dict[str, Any]:
    """What the log says of a request that failed; its line comes before the answer."""
    id_ = answer.headers["x-request-id"]
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for entry in running.log:
            if (entry["event"], entry.get("id")) == ("failure", id_):
                return entry
        time.sleep(0.02)
    raise AssertionError(f"no failure of {id_} in the log: {running.log[-5:]}")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "dense", "k": 3},
        {"mode": "lexical"},
        {"mode": "hybrid", "explain": True, "k": 4},
        {"filter": "even = true", "offset": 2},
    ],
)
def test_a_search_finds_what_the_function_finds(
    keeper: RunningServer, stored: Collection, options: dict[str, object]
) -> None:
    queries = [TEXTS[5], "the man"]
    expected = [[fields_of(hit) for hit in hits] for hits in search(stored, queries, **options)]  # type: ignore[arg-type]
    for path, request in (
        ("/v1/search", {"collection": "stored", "queries": queries}),
        ("/v1/collections/stored/search", {"queries": queries}),
    ):
        answer = keeper.post(path, request | options)
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"] == expected


def test_a_reranked_search_is_the_function_s(
    keeper: RunningServer, stored: Collection, tiny_models: TinyModels
) -> None:
    expected = search(stored, [TEXTS[5]], 5, reranker=tiny_models.reranker())
    request = {"collection": "stored", "queries": TEXTS[5], "k": 5, "rerank": True}
    answer = keeper.post("/v1/search", request).json()
    assert [(hit["id"], hit["score"]) for hit in answer["data"][0]] == [
        (hit.id, hit.score) for hit in expected[0]
    ]
    assert answer["reranker"] == "tiny-reranker"


def test_what_is_added_is_found_and_what_is_removed_is_not(keeper: RunningServer) -> None:
    keeper.post("/v1/collections", {"name": "changing"})
    added = keeper.post("/v1/collections/changing/add", {"texts": TEXTS[:4], "ids": ["a", "b", "c", "d"]})
    assert added.json()["n_records"] == 4
    again = keeper.post("/v1/collections/changing/add", {"texts": TEXTS[:4], "ids": ["a", "b", "c", "d"]})
    assert (again.json()["n_unchanged"], again.json()["n_encoded"]) == (4, 0)
    removed = keeper.post("/v1/collections/changing/remove", {"ids": ["b", "nowhere"]})
    assert (removed.json()["n_removed"], removed.json()["n_records"]) == (1, 3)
    found = keeper.post("/v1/collections/changing/search", {"queries": TEXTS[1]}).json()["data"][0]
    assert sorted(hit["id"] for hit in found) == ["a", "c", "d"]
    assert keeper.get("/v1/collections/changing").json()["n_records"] == 3


@pytest.mark.parametrize("options", [{"n_pairs": 10}, {"k": 2}, {"at_least": 0.9, "skip_identical": True}])
def test_mining_gives_the_function_s_pairs(
    keeper: RunningServer, tiny_models: TinyModels, options: dict[str, object]
) -> None:
    corpus = make_corpus(TEXTS, tiny_models.encoder().with_prompt("passage"))
    expected = [
        (int(i), int(j))
        for block in mine(corpus, **options)  # type: ignore[arg-type]
        for i, j in zip(block.first, block.second, strict=True)
    ]
    for source in ({"texts": TEXTS}, {"collection": "stored"}):
        data = keeper.post("/v1/mine", source | options).json()["data"]
        assert [(pair["id_a"], pair["id_b"]) for pair in data] == expected
        assert all(pair["text_a"] == TEXTS[pair["id_a"]] for pair in data)
    short = keeper.post("/v1/mine", {"collection": "stored", "return_texts": False, **options}).json()
    assert set(short["data"][0]) == {"id_a", "id_b", "score"}


def test_duplicates_are_the_function_s(keeper: RunningServer, tiny_models: TinyModels) -> None:
    corpus = make_corpus(TEXTS, tiny_models.encoder().with_prompt("passage"))
    expected = dedupe(corpus, threshold=0.97)
    answer = keeper.post("/v1/dedupe", {"collection": "stored", "threshold": 0.97}).json()
    keepers = {dropped["id"]: group["kept"]["id"] for group in answer["data"] for dropped in group["dropped"]}
    assert keepers == {int(row): int(expected.keepers[row]) for row in expected.dropped}
    assert answer["n_kept"] + answer["n_dropped"] == len(TEXTS)
    assert keepers[len(TEXTS) - 1] == keepers.get(7, 7)  # the same text


def test_clusters_are_the_function_s_and_lie_on_a_map(keeper: RunningServer, tiny_models: TinyModels) -> None:
    corpus = make_corpus(TEXTS, tiny_models.encoder().with_prompt("passage"))
    expected = cluster(corpus.vectors, method="kmeans", n_clusters=4)
    request = {"collection": "stored", "method": "kmeans", "n_clusters": 4, "map": True, "return_texts": True}
    answer = keeper.post("/v1/cluster", request).json()
    np.testing.assert_array_equal(answer["labels"], expected.labels)
    assert [each["size"] for each in answer["data"]] == expected.sizes.tolist()
    assert np.isfinite(np.array(answer["places"])).all()
    assert np.array(answer["places"]).shape == (len(TEXTS), 2)
    assert answer["texts"] == TEXTS


@pytest.mark.parametrize("name", ["../stored", "..", ".hidden", "a/b", "", "a" * 65, "a\\b", "stored\n", "é"])
def test_no_name_leads_out_of_the_root(keeper: RunningServer, root: Path, name: str) -> None:
    before = sorted(path.name for path in root.parent.iterdir())
    assert keeper.post("/v1/collections", {"name": name}).status_code == 400
    assert keeper.post("/v1/search", {"collection": name, "queries": "a"}).status_code == 400
    assert keeper.post("/v1/mine", {"collection": name, "n_pairs": 1}).status_code == 400
    assert sorted(path.name for path in root.parent.iterdir()) == before


def test_a_link_out_of_the_root_is_no_collection(root: Path, keeper: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "records.sqlite").write_bytes(b"")
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    assert keeper.get("/v1/collections/linked").status_code == 404
    assert "linked" not in [each["name"] for each in keeper.get("/v1/collections").json()["data"]]


@pytest.mark.parametrize(
    ("path", "request_", "status", "says"),
    [
        ("/v1/search", {"collection": "absent", "queries": "a"}, 404, "no collection 'absent'"),
        ("/v1/collections", {"name": "stored"}, 400, "exists already"),
        ("/v1/mine", {"n_pairs": 3}, 400, "either texts or the name"),
        ("/v1/mine", {"collection": "stored", "texts": ["a"], "k": 1}, 400, "either texts or the name"),
        ("/v1/mine", {"collection": "stored"}, 400, "n_pairs"),
        ("/v1/dedupe", {"collection": "stored", "threshold": 7}, 400, "threshold"),
        ("/v1/cluster", {"collection": "stored", "n_clusters": 9}, 400, "n_clusters"),
        ("/v1/search", {"collection": "stored", "queries": "a", "filter": "even ="}, 400, "filter"),
        ("/v1/search", {"collection": "stored", "queries": "a", "k": 1001}, 400, "1 to 1000"),
        ("/v1/search", {"collection": "stored", "queries": []}, 400, "queries has 0 entries, and at least 1"),
        (
            "/v1/search",
            {"collection": "stored", "queries": ["a", 1]},
            400,
            "queries[1] is the number 1",
        ),
        (
            "/v1/search",
            {"collection": "stored", "queries": 1},
            400,
            "a query or a list of queries",
        ),
        ("/v1/collections/stored/add", {"texts": ["a"], "ids": [1, 2]}, 400, "ids"),
        ("/v1/collections/stored/add", {"texts": ["a"], "metadata": [3]}, 400, "metadata"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(
    keeper: RunningServer, root: Path, path: str, request_: dict[str, object], status: int, says: str
) -> None:
    refused = keeper.post(path, request_)
    message = refused.json()["error"]["message"]
    assert refused.status_code == status, message
    assert says in message
    assert str(root) not in message


def test_a_collection_of_another_model_is_refused_and_shown_as_such(
    keeper: RunningServer, root: Path, tiny_bert: Path
) -> None:
    from gemel.loading import load_encoder

    Collection.create(root / "foreign", load_encoder(tiny_bert)).close()
    refused = keeper.post("/v1/search", {"collection": "foreign", "queries": "a"})
    assert refused.status_code == 409
    assert str(root) not in refused.text
    assert keeper.get("/v1/collections/foreign").json()["is_usable"] is False


def test_a_damaged_collection_hides_no_other(keeper: RunningServer, root: Path) -> None:
    broken = root / "broken"
    broken.mkdir()
    (broken / FILE_NAME).write_bytes(b"nothing of a table" * 1000)
    try:
        listed = keeper.get("/v1/collections")
        assert listed.status_code == 200
        found = {each["name"]: each for each in listed.json()["data"]}
        assert (found["stored"]["n_records"], found["stored"]["is_usable"]) == (len(TEXTS), True)
        assert "error" not in found["stored"]
        assert found["broken"]["is_usable"] is False
        assert "records.sqlite is damaged" in found["broken"]["error"]
        assert found["broken"].keys() - {"error"} == found["stored"].keys()
        assert str(root) not in listed.text
        assert keeper.get("/v1/collections/broken").status_code == 507
    finally:
        shutil.rmtree(broken)


def test_what_is_compared_is_of_one_moment(
    keeper: RunningServer, root: Path, tiny_models: TinyModels
) -> None:
    keeper.post("/v1/collections", {"name": "restless"})
    encoder = tiny_models.encoder()
    rows = np.random.default_rng(0).standard_normal((3_000, encoder.dim))
    has_ended = threading.Event()

    def change(collection: Collection) -> None:
        while not has_ended.is_set():
            collection.remove(range(50))
            collection.add_vectors(records[:50], rows[:50], fingerprint=encoder.fingerprint)

    records = [Record(row, f"text {row}") for row in range(len(rows))]
    with Collection.open(root / "restless") as collection:
        collection.add_vectors(records, rows, fingerprint=encoder.fingerprint)
        changing = threading.Thread(target=change, args=(collection,))
        changing.start()
        try:
            request = {"collection": "restless", "n_pairs": 1}
            answers = [keeper.post("/v1/mine", request) for _ in range(25)]
        finally:
            has_ended.set()
            changing.join()
    assert [answer.status_code for answer in answers] == [200] * 25
    assert {answer.json()["n_rows"] for answer in answers} <= {len(rows), len(rows) - 50}


def test_a_collection_that_another_process_changes_is_busy(keeper: RunningServer, root: Path) -> None:
    keeper.post("/v1/collections", {"name": "locked"})
    database = Database(root / "locked", read_only=False, timeout_seconds=1)
    try:
        with database.writing():
            refused = keeper.post("/v1/collections/locked/add", {"texts": ["a"]})
    finally:
        database.close()
    assert refused.status_code == 503, refused.text
    assert refused.headers["retry-after"] == "1"
    told = failure_of(keeper, refused)
    assert (told["error"], told["route"]) == ("Busy", "/v1/collections/{name}/add")
    assert "try again" in told["message"]
    assert keeper.post("/v1/collections/locked/add", {"texts": ["a"]}).json()["n_new"] == 1


def test_a_whole_number_of_more_than_64_bits_is_refused_and_not_rounded(keeper: RunningServer) -> None:
    keeper.post("/v1/collections", {"name": "exact"})
    path = "/v1/collections/exact/add"
    for number in (10**29 + 1, -(1 << 63) - 1):
        refused = keeper.post(path, {"texts": ["a"], "metadata": [{"deep": [{"n": number}]}]})
        assert refused.status_code == 400, refused.text
        assert "more than 64 bits" in refused.json()["error"]["message"]
    kept = {"least": -(1 << 63), "most": (1 << 63) - 1, "mole": 6.02214076e23, "digits": "1" * 30}
    assert keeper.post(path, {"texts": ["a " + "7" * 40], "metadata": [kept]}).json()["n_new"] == 1
    (hit,) = keeper.post("/v1/collections/exact/search", {"queries": "a"}).json()["data"][0]
    assert hit["metadata"] == kept


def test_an_answer_that_takes_too_long_is_given_up(keeper: RunningServer) -> None:
    request = {"collection": "stored", "method": "kmeans", "n_clusters": 30}
    late = keeper.post("/v1/cluster", request, headers={"X-Timeout-Seconds": "0.0001"})
    assert late.status_code == 504
    assert keeper.post("/v1/cluster", request).status_code == 200


def test_a_demo_that_cannot_be_written_is_told_as_such(tiny_models: TinyModels, tmp_path: Path) -> None:
    (tmp_path / "gone").write_text("no folder", encoding="utf-8")
    with pytest.raises(OSError, match="could not be made"):
        add_demo(Library(tmp_path / "gone" / "deeper"), tiny_models.encoder(), "tiny", n_sentences=9)


def test_without_a_root_there_are_no_collections(server: RunningServer) -> None:
    for refused in (
        server.get("/v1/collections"),
        server.post("/v1/search", {"collection": "stored", "queries": "a"}),
        server.post("/v1/dedupe", {"collection": "stored"}),
    ):
        assert refused.status_code == 404
        assert "--collections" in refused.json()["error"]["message"]
    assert server.post("/v1/dedupe", {"texts": ["a", "a"]}).json()["n_dropped"] == 1


def test_a_reading_key_searches_and_does_not_change(tiny_models: TinyModels, tmp_path: Path) -> None:
    running = RunningServer(
        *("--model", str(tiny_models.encoder_folder), "--collections", str(tmp_path)),
        GEMEL_API_KEYS=f"{READ_KEY} read,{WRITE_KEY}",
    )
    reading, writing = ({"Authorization": f"Bearer {key}"} for key in (READ_KEY, WRITE_KEY))
    try:
        assert running.post("/v1/collections", {"name": "a"}, headers=reading).status_code == 403
        assert running.post("/v1/collections", {"name": "a"}, headers=writing).status_code == 200
        for change in ("add", "remove"):
            request = {"texts": ["a"]} if change == "add" else {"ids": [1]}
            path = f"/v1/collections/a/{change}"
            assert running.post(path, request, headers=reading).status_code == 403
            assert running.post(path, request, headers=writing).status_code == 200
        assert running.post("/v1/collections/a/search", {"queries": "a"}, headers=reading).status_code == 200
        assert running.get("/v1/collections").status_code == 401
    finally:
        assert running.stop() == 0


def test_the_client_keeps_and_searches_as_the_server_does(keeper: RunningServer, stored: Collection) -> None:
    with Client(keeper.url) as client:
        client.create("by-client")
        assert "by-client" in client.collections()
        assert (
            client.add("by-client", TEXTS, range(len(TEXTS)), [{"n": row} for row in range(len(TEXTS))]) == 62
        )
        assert client.remove("by-client", [0, "nowhere"]) == 1
        found = client.search("by-client", [TEXTS[5]], 3, mode="dense", filter="n >= 5")[0]
        expected = search(stored, [TEXTS[5]], 62, mode="dense")[0]
        assert [hit.id for hit in found] == [hit.id for hit in expected if int(hit.id) >= 5][:3]
        assert found[0].metadata == {"n": found[0].id}
        with pytest.raises(ServerError, match="no collection 'absent'"):
            client.search("absent", ["a"])


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_guide_to_serving_run(keeper: RunningServer) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```bash\n(.*?)```", guide, re.DOTALL)
    answers = []
    for command in re.split(r"\n(?=curl)", code.replace("localhost:8080", f"localhost:{keeper.port}")):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
        answers.append(json.loads(done.stdout))
    embeddings, created, added, found = answers
    assert len(embeddings["data"]) == added["n_records"] == 2
    assert created["name"] == found["collection"] == "notes"
    assert [[hit["id"] for hit in hits] for hits in found["data"]] == [[1]]


def test_many_at_once_neither_wait_for_each_other_nor_fail(keeper: RunningServer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    long = " ".join(TEXTS)  # is tokenised on a thread too
    request = {"collection": "stored", "queries": [long] * 8, "explain": True, "k": 3}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: keeper.post("/v1/search", request).status_code, range(32)))
    assert answers == [200] * 32


def test_searches_do_not_wait_for_clusterings(keeper: RunningServer) -> None:
    assert any(n_clusterings_during_a_search(keeper) > 0 for _ in range(3))


def n_clusterings_during_a_search(keeper: RunningServer) -> int:
    """How many of four that were begun before a search are still at work after it."""
    from concurrent.futures import ThreadPoolExecutor

    slow = {"texts": sentences(3_000, seed=3), "method": "kmeans", "n_clusters": 200}
    with ThreadPoolExecutor(4) as pool:
        clusterings = [pool.submit(keeper.post, "/v1/cluster", slow) for _ in range(4)]
        time.sleep(0.3)
        found = keeper.post("/v1/search", {"collection": "stored", "queries": "the man"})
        n_running = sum(not each.done() for each in clusterings)
        assert found.status_code == 200
        assert {each.result().status_code for each in clusterings} <= {200, 504}  # 504 on a slow machine
    return n_running


def test_the_demo_collection_is_made_once_for_each_model(tiny_models: TinyModels, tmp_path: Path) -> None:
    library, began = Library(tmp_path), []
    encoder = tiny_models.encoder()
    name = add_demo(library, encoder, "tiny", n_sentences=50, on_begin=began.append)
    assert add_demo(library, encoder, "tiny", n_sentences=50, on_begin=began.append) == name
    other = add_demo(library, encoder.with_dim(4), "tiny", n_sentences=50, on_begin=began.append)
    assert other != name
    assert began == [50, 50]
    assert len(library.collection(name)) == 50
    assert library.names() == sorted([name, other])
    with pytest.raises(Refusal, match="1 to 64 letters"):
        library.collection(f".{name}.unfinished")
    library.close()

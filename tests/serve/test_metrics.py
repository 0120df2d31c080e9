"""What the server counts is what has happened."""

from __future__ import annotations

import re

import pytest
from serving_process import RunningServer

from gemel.serve.metrics import Counter, Histogram

TEI_NAMES = """
te_request_count te_request_success te_request_failure te_embed_count te_embed_success te_predict_count
te_predict_success te_request_duration te_request_tokenization_duration te_request_queue_duration
te_request_inference_duration te_request_input_length te_embed_duration te_predict_duration
te_batch_next_size te_batch_next_tokens te_queue_size
"""


def test_the_metrics_have_the_names_of_text_embeddings_inference(server: RunningServer) -> None:
    text = server.get("/metrics").text
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    assert set(TEI_NAMES.split()) <= set(types)
    assert types["te_request_count"] == "counter"
    assert types["te_request_duration"] == "histogram"
    assert types["te_queue_size"] == "gauge"
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r'\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [-+.e\d]+', line)


def test_requests_and_texts_are_counted(server: RunningServer) -> None:
    names = ("te_request_count", "te_request_success", "te_embed_success", "te_request_failure")
    before = [server.metric(name) for name in names]
    steps = server.metric("te_batch_next_size_count")
    server.post("/embed", {"inputs": ["a", "b", "c"]})
    server.post("/v1/embeddings", {"input": "a"})
    server.post("/embed_all", {"inputs": ["a", "b"]})
    server.post("/embed", {"inputs": 1})
    after = [server.metric(name) for name in names]
    assert [now - then for now, then in zip(after, before, strict=True)] == [4, 3, 6, 1]
    assert server.metric("te_batch_next_size_count") == steps + 3


def test_counters_and_histograms_are_written_as_prometheus_reads_them() -> None:
    counter = Counter("c", "Says.")
    counter.add(2, kind="a")
    counter.add(kind="a")
    assert counter.lines() == ["# HELP c Says.", "# TYPE c counter", 'c{kind="a"} 3']
    assert counter.value(kind="a") == 3
    histogram = Histogram("h", "Says.", (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    assert histogram.lines()[2:] == [
        'h_bucket{le="1"} 2',
        'h_bucket{le="2"} 3',
        'h_bucket{le="+Inf"} 4',
        "h_sum 12",
        "h_count 4",
    ]


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_an_unknown_method_or_path_is_told_where_to_look(server: RunningServer, method: str) -> None:
    import httpx

    wrong = httpx.request(method, server.url + "/embed", timeout=60)
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "POST"
    nothing = httpx.request(method, server.url + "/embed/", timeout=60)
    assert nothing.status_code == 404
    assert "/openapi.json" in nothing.json()["error"]["message"]

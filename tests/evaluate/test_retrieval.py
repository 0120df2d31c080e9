"""Search over a few documents on a line, where the order can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from by_heart import TableEncoder
from stand_ins import ToyEncoder

from gemel import load_encoder
from gemel.data.retrieval import RetrievalData, read_retrieval
from gemel.errors import InvalidInput
from gemel.evaluate.retrieval import evaluate_retrieval

# By cosine to `east` the documents stand in the order e, ne, n, w.
PLACES = {"east": [1, 0], "e": [1, 0], "ne": [1, 1], "n": [0, 1], "w": [-1, 0.0]}
DOCUMENTS = {"4": "w", "3": "n", "2": "ne", "1": "e"}


def data_of(relevance: dict[str, dict[str, float]], queries: dict[str, str] | None = None) -> RetrievalData:
    return RetrievalData(queries or {"q": "east"}, DOCUMENTS, relevance)


def test_figures_are_those_of_the_documents_in_the_order_of_their_similarity() -> None:
    scores = evaluate_retrieval(TableEncoder(PLACES), data_of({"q": {"2": 2, "3": 1, "4": 0}}))
    log2_3 = np.log2(3)
    assert scores.primary == "ndcg@10"
    assert scores.score == pytest.approx((2 / log2_3 + 1 / 2) / (2 + 1 / log2_3))
    assert scores.metrics["mrr@10"] == 0.5
    assert scores.metrics["map"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert (scores.metrics["recall@1"], scores.metrics["recall@5"]) == (0, 1)
    assert (scores.metrics["precision@1"], scores.metrics["precision@5"]) == (0, pytest.approx(2 / 5))
    assert scores.n_examples == 1
    assert scores.interval == (scores.score, scores.score)


def test_every_text_is_encoded_once_even_as_query_and_document() -> None:
    encoder = TableEncoder(PLACES)
    data = RetrievalData({"q": "e", "r": "e"}, {"1": "e", "2": "n", "3": "n"}, {"q": {"2": 1}, "r": {"1": 1}})
    evaluate_retrieval(encoder, data)
    assert sorted(encoder.seen) == ["e", "n"]


def test_documents_that_score_the_same_stand_in_the_order_of_the_corpus() -> None:
    twins = {"east": [1, 0], **{name: [1, 1] for name in "abc"}}
    for first, rank in (("a", 1), ("b", 2), ("c", 3)):
        data = RetrievalData({"q": "east"}, {name: name for name in "abc"}, {"q": {first: 1}})
        assert evaluate_retrieval(TableEncoder(twins), data).metrics["mrr@10"] == pytest.approx(1 / rank)


def test_queries_without_a_relevant_document_are_left_out_and_counted() -> None:
    queries = {"q": "east", "nothing relevant": "n", "never judged": "w"}
    data = data_of({"q": {"1": 1}, "nothing relevant": {"1": 0}}, queries)
    encoder = TableEncoder(PLACES)
    scores = evaluate_retrieval(encoder, data)
    assert (scores.score, scores.n_examples) == (1, 1)
    assert "2 queries without a relevant document left out" in scores.protocol


def test_a_query_that_is_a_document_may_be_kept_from_finding_itself() -> None:
    data = RetrievalData({"1": "e"}, DOCUMENTS, {"1": {"2": 1}})
    kept = evaluate_retrieval(TableEncoder(PLACES), data)
    assert kept.metrics["mrr@10"] == 0.5
    assert "own document" not in kept.protocol
    skipped = evaluate_retrieval(TableEncoder(PLACES), data, skips_own_id=True)
    assert skipped.metrics["mrr@10"] == 1
    assert "the query's own document left out" in skipped.protocol


class Reversing:
    """A reranker that likes what comes last in the alphabet."""

    def __init__(self) -> None:
        self.n_scored = 0

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.n_scored += len(pairs)
        return np.array([sum(map(ord, text)) for _, text in pairs], np.float32)


def test_a_reranker_reorders_only_the_first_documents() -> None:
    data, reranker = data_of({"q": {"3": 1}}), Reversing()
    # e ne n w: the first two are turned round, n stays third; with three, ne (211) n (110) e (101).
    shallow = evaluate_retrieval(TableEncoder(PLACES), data, reranker=reranker, depth=2)
    assert shallow.metrics["mrr@10"] == pytest.approx(1 / 3)
    assert reranker.n_scored == 2
    deep = evaluate_retrieval(TableEncoder(PLACES), data, reranker=reranker, depth=3)
    assert deep.metrics["mrr@10"] == pytest.approx(1 / 2)
    assert deep.protocol.endswith("the first 3 reranked by Reversing (Reversing)")


def test_figures_of_a_reranker_are_known_by_it_too() -> None:
    class Known(Reversing):
        fingerprint, engine, precision = "abc", "native", "int8"

    encoder, data = TableEncoder(PLACES), data_of({"q": {"3": 1}})
    alone, together = evaluate_retrieval(encoder, data), evaluate_retrieval(encoder, data, reranker=Known())
    assert alone.fingerprint == encoder.fingerprint
    assert together.fingerprint == f"{encoder.fingerprint}+abc"
    assert together.engine == f"{alone.engine} + native int8"
    assert together.protocol.endswith("the first 100 reranked by abc (native int8)")


def test_a_reranker_with_several_outputs_is_refused() -> None:
    class Labels:
        def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            return np.zeros((len(pairs), 3), np.float32)

    with pytest.raises(InvalidInput, match=r"shape \(4, 3\) for 4 pairs; expected one finite score a pair"):
        evaluate_retrieval(TableEncoder(PLACES), data_of({"q": {"3": 1}}), reranker=Labels())
    with pytest.raises(InvalidInput, match="depth is 0"):
        evaluate_retrieval(TableEncoder(PLACES), data_of({"q": {"3": 1}}), depth=0)


class Prompted(TableEncoder):
    """An encoder whose model has prompts of both sides."""

    def __init__(self, vectors: dict[str, list[float]], prompt: str = "") -> None:
        super().__init__(vectors)
        self.spec = SimpleNamespace(prompts={"query": "? ", "passage": "- "})
        self.prompt = prompt

    def with_prompt(self, name: str) -> Prompted:
        return Prompted(self.vectors, self.spec.prompts[name])

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return super().encode([self.prompt + text for text in texts])


def test_the_prompts_of_a_model_are_used_on_both_sides() -> None:
    table = {"? east": [1, 0], "- w": [1, 0], "- n": [0, 1], "- ne": [0, 1], "- e": [0, 1.0]}
    scores = evaluate_retrieval(Prompted(table), data_of({"q": {"4": 1}}))
    assert scores.score == 1
    assert "prompts: query, passage" in scores.protocol


def test_a_folder_of_the_tiny_model_is_measured_without_prompts(tiny_bert: Path) -> None:
    data = RetrievalData({"q": "a dog"}, {"1": "a dog", "2": "the red house ."}, {"q": {"1": 1}})
    scores = evaluate_retrieval(load_encoder(tiny_bert), data)
    assert scores.score == 1
    assert "prompt" not in scores.protocol


def test_shared_words_find_cranfield_documents_better_than_chance(
    real_data: Path, toy_encoder: ToyEncoder
) -> None:
    whole = read_retrieval(real_data / "cranfield")
    assert (len(whole.queries), len(whole.documents)) == (225, 1_400)
    relevance = dict(list(whole.relevance.items())[:30])
    judged = dict.fromkeys(document for grades in relevance.values() for document in grades)
    data = RetrievalData(whole.queries, {name: whole.documents[name] for name in judged}, relevance)
    scores = evaluate_retrieval(toy_encoder, data)
    assert scores.n_examples == 30
    assert "195 queries without a relevant document left out" in scores.protocol
    assert 0.05 < scores.score < 0.4  # a random order of these 206 documents has about 0.03

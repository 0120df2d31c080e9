"""Vectors against reading every pair: speeds measured, times worked out."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.cost import Cost, measure_cost


class SlowReader:
    """A reranker that needs two milliseconds a pair and counts shared words."""

    def __init__(self) -> None:
        self.n_read = 0

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        time.sleep(0.002 * len(pairs))
        self.n_read += len(pairs)
        shared = [len(set(a.split()) & set(b.split())) / len(set((a + " " + b).split())) for a, b in pairs]
        return np.array(shared, np.float32)


def test_times_follow_from_the_speeds_that_were_measured(toy_encoder: ToyEncoder) -> None:
    reader = SlowReader()
    cost = measure_cost(toy_encoder, reader, sentences(200), n_texts=10_000, n_pairs=50)
    assert (cost.n_pairs, cost.n_measured_texts, cost.n_measured_pairs) == (49_995_000, 200, 50)
    assert reader.n_read == 50 + 8
    assert 0 < cost.pairs_per_second <= 500
    assert cost.reranker_mining_seconds == pytest.approx(49_995_000 / cost.pairs_per_second)
    assert cost.reranker_query_seconds == pytest.approx(10_000 / cost.pairs_per_second)
    assert cost.encoder_mining_seconds > 10_000 / cost.texts_per_second
    assert 0 < cost.encoder_query_seconds < cost.reranker_query_seconds
    assert cost.encoder_spearman is None


def test_quality_stands_beside_the_times(toy_encoder: ToyEncoder) -> None:
    columns = {
        "first": ["a dog runs", "a dog runs", "a dog", "cold"],
        "second": ["a dog runs", "a dog sleeps", "a cat", "warm"],
    }
    scored = Examples("scored pairs", columns, np.array([1, 0.6, 0.3, 0], np.float32))
    cost = measure_cost(toy_encoder, SlowReader(), sentences(20), n_pairs=5, scored=scored)
    assert cost.reranker_spearman == pytest.approx(1)
    assert cost.encoder_spearman is not None
    assert "Spearman x 100" in cost.describe()
    assert cost.to_dict()["reranker_spearman"] == pytest.approx(1)


def test_the_words_say_what_was_measured_and_what_was_not() -> None:
    cost = Cost(10_000, 500, 100, 2_000.0, 213.66, 5.2, 234_000.0, 0.0031, 46.8)
    first, second, last = cost.describe().splitlines()
    assert first == "the most similar pair of 10,000 texts: 5.2 s with vectors, 2.7 days with the reranker"
    assert second == "one query against 10,000 texts: 3.1 ms with vectors, 46.8 s with the reranker"
    assert last.startswith("measured: 500 texts encoded")
    assert "extrapolated to 10,000 texts" in last
    assert "49,995,000 pairs" in last


def test_what_cannot_be_measured_is_refused(toy_encoder: ToyEncoder) -> None:
    with pytest.raises(InvalidInput, match="from 1 texts and 500 pairs; expected at least 2 texts"):
        measure_cost(toy_encoder, SlowReader(), ["alone"])
    pairs = Examples("pairs", {"first": ["a"], "second": ["b"]})
    with pytest.raises(InvalidInput, match="quality was asked of pairs; expected scored pairs"):
        measure_cost(toy_encoder, SlowReader(), ["a", "b"], n_pairs=1, scored=pairs)

"""Texts in the order of a reranker's scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gemel.errors import InvalidInput
from gemel.tasks.rerank import Ranked, Reranking, rerank


class Shared:
    """Scores how many words both texts have."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([len(set(a.split()) & set(b.split())) for a, b in pairs], np.float32)


def test_the_best_fit_is_first_and_equal_ones_keep_their_order() -> None:
    texts = ["x", "a b", "y", "a"]
    assert rerank(Shared(), "a b", texts) == [
        Ranked(1, "a b", 2.0),
        Ranked(3, "a", 1.0),
        Ranked(0, "x", 0.0),
        Ranked(2, "y", 0.0),
    ]
    assert [each.row for each in rerank(Shared(), "a b", texts, k=1)] == [1]
    assert rerank(Shared(), "a", []) == []


def test_batches_change_nothing() -> None:
    texts = [f"a {n} b" for n in range(17)]
    assert rerank(Reranking(Shared(), batch_pairs=3), "a 7", texts) == rerank(Shared(), "a 7", texts)


def test_what_is_no_question_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the query is of type list"):
        rerank(Shared(), ["a"], ["b"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="k is 0"):
        rerank(Shared(), "a", ["b"], k=0)
    with pytest.raises(InvalidInput, match="0 candidates"):
        Reranking(Shared(), n_candidates=0)

"""Classes that vectors show, and classes that they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from by_heart import TableEncoder
from stand_ins import ToyEncoder

from gemel.data.labelled import LabelledTexts, read_labelled
from gemel.errors import InvalidInput
from gemel.evaluate.clustering import evaluate_clustering

PLACES = {"a": [1, 0], "b": [1, 0.1], "c": [0, 1], "d": [0.1, 1.0]}


def labelled(labels: list[int]) -> LabelledTexts:
    return LabelledTexts(list(PLACES), np.array(labels), ("one", "two", "three"))


def test_classes_that_lie_apart_are_found_and_others_are_not() -> None:
    found = evaluate_clustering(TableEncoder(PLACES), labelled([0, 0, 2, 2]))
    assert found.metrics == pytest.approx(
        {"v_measure": 1, "homogeneity": 1, "completeness": 1, "adjusted_rand": 1}
    )
    assert "as many groups as classes, 2" in found.protocol  # the third name has no text
    crossed = evaluate_clustering(TableEncoder(PLACES), labelled([0, 1, 0, 1]))
    assert crossed.metrics == pytest.approx(
        {"v_measure": 0, "homogeneity": 0, "completeness": 0, "adjusted_rand": -0.5}
    )


def test_repeated_texts_are_encoded_once_and_counted_each_time() -> None:
    encoder = TableEncoder(PLACES)
    data = LabelledTexts(["a", "a", "c", "c"], np.array([0, 0, 1, 1]), ("one", "two"))
    assert evaluate_clustering(encoder, data).n_examples == 4
    assert encoder.seen == ["a", "c"]


def test_one_class_alone_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"clustering has 4 texts of 1 class\(es\); expected at least two"):
        evaluate_clustering(TableEncoder(PLACES), labelled([1, 1, 1, 1]))


def test_shared_words_find_some_of_the_classes_of_snippets(real_data: Path, toy_encoder: ToyEncoder) -> None:
    data = read_labelled(real_data / "search_snippets" / "all.tsv")
    found = evaluate_clustering(toy_encoder, data.take(slice(0, None, 10)), n_starts=2)
    assert 0.01 < found.score < 0.3

"""Transfer tasks on real vectors: scikit-learn's figures, and chance where labels were shuffled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_scripts import load_benchmark

from gemel import load_encoder
from gemel.evaluate.transfer import TRANSFER_TASKS, TransferData, evaluate_transfer, read_transfer

AGREEMENT = load_benchmark("probe_agreement")
REVIEWS = [task for task in TRANSFER_TASKS if task.name == "CR"]


@pytest.fixture(scope="module")
def reviews(real_data: Path) -> TransferData:
    (data,) = read_transfer(real_data, REVIEWS)
    return data


@pytest.fixture(scope="module")
def encoder(default_weights: Path, reviews: TransferData) -> Any:
    encoder = load_encoder(default_weights, precision="float32", on_truncate="error")
    return AGREEMENT.RememberedEncoder(encoder, AGREEMENT.texts_of([reviews]))


def test_a_slice_of_the_reviews_gives_scikit_learns_figures(reviews: TransferData, encoder: Any) -> None:
    rows = np.arange(0, len(reviews.splits["all"]), 6)
    part = TransferData("a sixth of CR", {"all": reviews.splits["all"].take(rows)})
    result = AGREEMENT.compare(part, encoder, 3, AGREEMENT.converged)
    assert result["gemel"] == pytest.approx(result["scikit-learn"], abs=1e-12)


def test_the_default_model_scores_on_the_reviews_what_scikit_learn_found(
    reviews: TransferData, encoder: Any
) -> None:
    (scores,) = evaluate_transfer(encoder, [reviews])
    # benchmarks/probe_agreement.py --task CR --precision float32, by both; other kernels round otherwise.
    assert 100 * scores.score == pytest.approx(82.84, abs=0.1)
    assert 100 * scores.metrics["dev_accuracy"] == pytest.approx(82.81, abs=0.1)


def test_reviews_with_shuffled_labels_score_no_better_than_the_majority(
    reviews: TransferData, encoder: Any
) -> None:
    (scores,) = evaluate_transfer(encoder, [reviews], labels="shuffled")
    deviation = np.sqrt(0.25 / scores.n_examples)
    assert 0.5 < scores.score < scores.metrics["majority"] + 2 * deviation

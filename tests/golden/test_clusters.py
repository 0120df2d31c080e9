"""Clusters of real texts by a real model: the threshold that is found, and k-means beside scikit-learn's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans

from gemel import cluster, load_encoder
from gemel.data.labelled import LabelledTexts, read_labelled
from gemel.evaluate.agreement import Agreement
from gemel.similarity import normalise

THRESHOLDS = (0.35, 0.45, 0.55, 0.65, 0.75, 0.85)


@pytest.fixture(scope="module", params=["banking77/test.tsv", "search_snippets/all.tsv"])
def labelled(
    request: pytest.FixtureRequest, real_data: Path, default_weights: Path
) -> tuple[np.ndarray, ...]:
    data: LabelledTexts = read_labelled(real_data / request.param)
    some = slice(None, None, max(1, len(data) // 3_000))
    return load_encoder(default_weights, on_truncate="ignore").encode(data.texts[some]), data.labels[some]


def v_measure(labels: np.ndarray, vectors: np.ndarray, method: str, threshold: float | None) -> float:
    """With rows in no cluster as one more, where the method is not chains: these leave many rows alone."""
    min_size = 1 if method == "connected" else None
    found = cluster(vectors, method=method, threshold=threshold, min_size=min_size)
    return Agreement(labels, found.labels).v_measure()


@pytest.mark.parametrize("method", ["star", "connected"])
def test_the_threshold_that_is_found_is_near_the_best(labelled: tuple[np.ndarray, ...], method: str) -> None:
    vectors, labels = labelled
    best = max(v_measure(labels, vectors, method, threshold) for threshold in THRESHOLDS)
    assert v_measure(labels, vectors, method, None) >= 0.93 * best


def test_k_means_finds_what_scikit_learns_finds(labelled: tuple[np.ndarray, ...]) -> None:
    vectors, labels = labelled
    n_classes = len(set(labels.tolist()))
    ours = cluster(vectors, method="kmeans", n_clusters=n_classes).labels
    theirs = KMeans(n_classes, n_init=5, random_state=0).fit_predict(normalise(vectors))
    assert Agreement(labels, ours).v_measure() >= Agreement(labels, theirs).v_measure() - 0.02

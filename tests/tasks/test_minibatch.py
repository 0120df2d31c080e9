"""k-means for many rows: near to what k-means finds, in batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gemel.errors import InvalidInput
from gemel.tasks import minibatch
from gemel.tasks.kmeans import kmeans
from gemel.tasks.minibatch import minibatch_kmeans


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minibatch, "SAMPLE_ROWS", 400)
    monkeypatch.setattr(minibatch, "SAMPLE_ROWS_PER_GROUP", 5)
    monkeypatch.setattr(minibatch, "BATCH_ROWS", 64)


def clouds(spread: float) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    truth = random.integers(8, size=1_500)
    rows = random.standard_normal((8, 16))[truth] + spread * random.standard_normal((1_500, 16))
    return rows.astype(np.float32), truth


@pytest.mark.usefixtures("small_batches")
def test_clouds_that_lie_apart_are_found() -> None:
    rows, truth = clouds(0.1)
    assert adjusted_rand_score(truth, minibatch_kmeans(rows, 8).groups) == 1


@pytest.mark.usefixtures("small_batches")
def test_the_inertia_comes_near_that_of_k_means() -> None:
    rows, _ = clouds(1.0)
    assert minibatch_kmeans(rows, 8).inertia <= 1.02 * kmeans(rows, 8).inertia


@pytest.mark.usefixtures("small_batches")
def test_groups_are_those_of_the_nearest_centres_and_a_seed_gives_them_again() -> None:
    rows, _ = clouds(1.0)
    found = minibatch_kmeans(rows, 12, seed=3)
    assert found.groups.tolist() == (rows @ found.centres.T).argmax(axis=1).tolist()
    assert minibatch_kmeans(rows, 12, seed=3).groups.tolist() == found.groups.tolist()


@pytest.mark.usefixtures("small_batches")
def test_a_memory_map_gives_the_same_groups(tmp_path: Path) -> None:
    rows, _ = clouds(1.0)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert minibatch_kmeans(mapped, 8).groups.tolist() == minibatch_kmeans(rows, 8).groups.tolist()


@pytest.mark.usefixtures("small_batches")
def test_progress_counts_the_rows() -> None:
    seen: list[tuple[int, int]] = []
    minibatch_kmeans(clouds(1.0)[0], 8, on_progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 1_500)
    assert seen[-1] == (1_500, 1_500)


def test_few_rows_are_those_of_k_means() -> None:
    rows, _ = clouds(1.0)
    assert minibatch_kmeans(rows, 8).groups.tolist() == kmeans(rows, 8, n_starts=3).groups.tolist()


def test_more_groups_than_rows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="5 groups were asked of 4 rows"):
        minibatch_kmeans(np.eye(4), 5)

"""Six ways to cluster, against graphs worked by hand and other people's implementations."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from gemel import cluster, communities
from gemel.errors import InvalidInput
from gemel.similarity import pairwise
from gemel.tasks.cluster import METHODS

Array = npt.NDArray[Any]


def around(angles: list[float]) -> Array:
    turned = np.radians(angles)
    return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


def clouds(n_groups: int, n_each: int, spread: float = 0.05) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    centres = np.linalg.qr(random.standard_normal((16, 16)))[0][:n_groups]
    truth = np.repeat(np.arange(n_groups), n_each)
    rows = centres[truth] + spread * random.standard_normal((len(truth), 16))
    order = random.permutation(len(truth))
    return rows[order].astype(np.float32), truth[order]


def whole_numbers(seed: int, n: int, dim: int) -> Array:
    """Many copies, ties and rows of zeros."""
    return np.random.default_rng(seed).integers(-2, 3, (n, dim)).astype(np.float32)


def all_scores(vectors: Array) -> Array:
    n = len(vectors)
    return pairwise(vectors.repeat(n, axis=0), np.tile(vectors, (n, 1))).reshape(n, n)


some_rows = {"seed": st.integers(0, 10_000), "n": st.integers(1, 40), "dim": st.integers(1, 4)}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_clouds_that_lie_apart(method: str) -> None:
    rows, truth = clouds(6, 30)
    wanted = {"n_clusters": 6} if METHODS[method].takes == ("n_clusters",) else {}
    found = cluster(rows, method=method, **wanted)
    assert adjusted_rand_score(truth, found.labels) == 1
    assert found.sizes.tolist() == [30] * 6
    assert found.labels[0] == 0  # of clusters of one size the one with the lowest row comes first
    assert found.method == method
    assert (found.threshold is not None) == ("threshold" in METHODS[method].takes)


def test_the_result_tells_centres_similarities_and_examples() -> None:
    # The mean of 0, 10 and 60 degrees: sines add up to 1.040, cosines to 2.485, so 22.7 degrees.
    found = cluster(around([0, 10, 60, 200]), method="connected", threshold=0.6)
    assert found.labels.tolist() == [0, 0, 0, -1]
    assert found.centres[0] == pytest.approx(around([22.7])[0], abs=1e-3)
    assert found.exemplars.tolist() == [1]
    assert found.members(0).tolist() == [1, 0, 2]
    assert found.similarities[:3] == pytest.approx(np.cos(np.radians([22.7, 12.7, 37.3])), abs=1e-3)
    assert np.isnan(found.similarities[3])
    assert found.n_unclustered == 1


def test_a_star_keeps_its_centre_as_example() -> None:
    # Row 1 has all others within 20 degrees; the mean lies nearer to row 2.
    found = cluster(around([0, 18, 20, 21, 37]), threshold=0.94)
    assert found.exemplars.tolist() == [1]


@given(**some_rows, threshold=st.sampled_from([-1, 0, 0.5, 0.9, 1]))
@settings(max_examples=60)
def test_every_member_of_a_star_is_within_the_threshold_of_its_centre(
    seed: int, n: int, dim: int, threshold: float
) -> None:
    vectors = whole_numbers(seed, n, dim)
    found = cluster(vectors, threshold=threshold, min_size=1)
    for number, exemplar in enumerate(found.exemplars):
        members = found.members(number)
        assert exemplar in members
        scores = pairwise(vectors[members], vectors[[exemplar] * len(members)])
        assert (scores >= np.float32(threshold)).all()
    groups = {frozenset(group.tolist()) for group in communities(vectors, threshold=threshold, min_size=1)}
    assert groups == {frozenset(found.members(number).tolist()) for number in range(len(found))}


@given(**some_rows, threshold=st.sampled_from([-1, 0, 0.5, 0.9, 1]))
@settings(max_examples=60)
def test_connected_clusters_are_the_components_that_scipy_finds(
    seed: int, n: int, dim: int, threshold: float
) -> None:
    vectors = whole_numbers(seed, n, dim)
    graph = csr_array(all_scores(vectors) >= np.float32(threshold))
    _, expected = connected_components(graph, directed=False)
    found = cluster(vectors, method="connected", threshold=threshold, min_size=1)
    assert adjusted_rand_score(expected, found.labels) == 1
    assert (np.diff(found.sizes) <= 0).all()


@pytest.mark.parametrize("linkage", ["average", "complete", "single"])
def test_agglomerative_clusters_are_those_of_scipy(linkage: str) -> None:
    rows = np.random.default_rng(1).standard_normal((60, 5)).astype(np.float32)
    tree = hierarchy.linkage(pdist(rows.astype(np.float64), "cosine"), linkage)
    for threshold in (0.2, 0.5, 0.8):
        expected = hierarchy.fcluster(tree, 1 - threshold, "distance")
        found = cluster(rows, method="agglomerative", linkage=linkage, threshold=threshold, min_size=1)
        assert adjusted_rand_score(expected, found.labels) == 1
    for n_clusters in (1, 7, 60):
        found = cluster(rows, method="agglomerative", linkage=linkage, n_clusters=n_clusters)
        assert len(found) == n_clusters
        expected = hierarchy.fcluster(tree, n_clusters, "maxclust")
        assert adjusted_rand_score(expected, found.labels) == 1


def test_copies_merge_at_the_highest_threshold_there_is() -> None:
    rows = np.random.default_rng(0).standard_normal((4, 300)).astype(np.float32)[[0, 1, 0, 2, 1, 0]]
    for method in ("star", "connected", "agglomerative"):
        found = cluster(rows, method=method, threshold=1, min_size=2)
        assert found.labels.tolist() == [0, 1, 0, -1, 1, 0]


def test_smaller_groups_are_none() -> None:
    vectors = around([0, 1, 90, 91, 92, 180])
    for method in ("star", "connected", "agglomerative"):
        assert cluster(vectors, method=method, threshold=0.9).labels.tolist() == [-1, -1, 0, 0, 0, -1]
        found = cluster(vectors, method=method, threshold=0.9, min_size=2)
        assert found.labels.tolist() == [1, 1, 0, 0, 0, -1]
    assert (cluster(vectors, method="kmeans", n_clusters=3).labels >= 0).all()
    found = cluster(vectors, method="kmeans", n_clusters=3, min_size=2)
    assert found.labels.tolist() == [1, 1, 0, 0, 0, -1]


def test_no_rows_have_no_clusters() -> None:
    for method in ("star", "connected", "hdbscan"):
        found = cluster(np.ones((0, 4)), method=method)
        assert len(found) == len(found.labels) == 0
        assert found.centres.shape == (0, 4)


def test_one_row_is_a_cluster_only_where_that_is_asked() -> None:
    assert cluster([[1.0, 2.0]], threshold=0.5).labels.tolist() == [-1]
    assert cluster([[1.0, 2.0]], threshold=0.5, min_size=1).labels.tolist() == [0]
    assert cluster([[1.0, 2.0]], method="kmeans", n_clusters=1).labels.tolist() == [0]
    assert cluster([[1.0, 2.0]], method="agglomerative", threshold=0.5, min_size=1).labels.tolist() == [0]
    assert cluster([[1.0, 2.0]], method="hdbscan").labels.tolist() == [-1]


def test_progress_ends_where_it_shall() -> None:
    rows, _ = clouds(4, 20)
    seen: list[tuple[int, int]] = []
    cluster(rows, threshold=0.5, on_progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "dbscan"}, "method is 'dbscan'; expected one of star, connected"),
        ({"threshold": 1.5}, "threshold is 1.5; expected a cosine"),
        ({"threshold": float("nan")}, "threshold is nan; expected a cosine"),
        ({"min_size": 0}, "min_size is 0"),
        ({"seed": -1}, "seed is -1; expected a whole number from 0 on"),
        ({"n_clusters": 2}, "method star, which takes threshold; leave it out, or use agglomerative, kmeans"),
        ({"method": "kmeans"}, "n_clusters was not given, and the method kmeans needs it"),
        ({"method": "kmeans", "n_clusters": 9}, "n_clusters is 9, of 4 rows"),
        ({"method": "minibatch", "n_clusters": 0}, "n_clusters is 0, of 4 rows"),
        ({"method": "minibatch", "n_clusters": 2, "threshold": 0.5}, "threshold was given with the method"),
        ({"method": "hdbscan", "threshold": 0.5}, "which takes neither threshold nor n_clusters"),
        ({"method": "hdbscan", "min_size": 1}, "min_size is 1; expected at least 2"),
        ({"method": "agglomerative", "threshold": 0.5, "n_clusters": 2}, "both given; expected one"),
        ({"method": "agglomerative", "linkage": "ward"}, "linkage is 'ward'; expected one of average"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        cluster(np.eye(4), **options)


def test_a_threshold_is_not_guessed_from_two_rows() -> None:
    with pytest.raises(InvalidInput, match=r"shape \(2, 3\).*give a threshold"):
        cluster(np.ones((2, 3)))


@pytest.mark.parametrize("method", ["agglomerative", "hdbscan"])
def test_too_many_rows_are_refused_with_a_method_that_takes_them(method: str) -> None:
    threshold = 0.5 if method == "agglomerative" else None
    with pytest.raises(InvalidInput, match=r"60,000 rows were given.*at most; use the method"):
        cluster(np.ones((60_000, 2)), method=method, threshold=threshold)


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_are_no_numbers_are_refused(method: str) -> None:
    rows, _ = clouds(3, 10)
    rows[17, 3] = np.nan
    wanted = {"n_clusters": 3} if METHODS[method].takes == ("n_clusters",) else {}
    with pytest.raises(InvalidInput, match="row 17"):
        cluster(rows, method=method, **wanted)
    with pytest.raises(InvalidInput, match="shape"):
        cluster(np.ones(3), method=method, **wanted)


ON_THREADS = """
import numpy as np
from gemel import cluster
rows = np.random.default_rng(0).standard_normal((2_000, 24)).astype(np.float32)
for method in ("star", "connected"):
    print(hash(cluster(rows, method=method, threshold=0.6).labels.tobytes()))
print(hash(cluster(rows, method="kmeans", n_clusters=9).labels.tobytes()))
"""


def test_threads_do_not_change_the_labels() -> None:
    printed = set()
    for threads in ("1", "2"):
        named = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(named, threads), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [sys.executable, "-c", ON_THREADS], env=environment, capture_output=True, text=True, check=True
        )
        printed.add(done.stdout)
    assert len(printed) == 1

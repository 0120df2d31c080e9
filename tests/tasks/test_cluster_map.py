"""The map of clusters: what stands on it, and that it is the same every time."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from gemel.errors import InvalidInput, MissingExtra
from gemel.tasks import cluster_map
from gemel.tasks.cluster import cluster
from gemel.tasks.cluster_map import draw_clusters
from gemel.tasks.clustering import Clustering, clustering_of
from gemel.tasks.describe import Description, describe
from gemel.tasks.histogram import sample_similarities

WORDS = ("apple", "river", "engine", "violin")


@pytest.fixture
def clustered() -> tuple[Clustering, np.ndarray, list[Description]]:
    random = np.random.default_rng(0)
    of = np.repeat(np.arange(4), 25)
    rows = (3 * np.eye(4, 8)[of] + 0.3 * random.standard_normal((100, 8))).astype(np.float32)
    found = cluster(rows, threshold=0.7)
    return found, rows, describe(found, [f"{WORDS[number]} {number}" for number in of])


def test_clusters_are_named_by_their_key_words(
    clustered: tuple[Clustering, np.ndarray, list[Description]],
) -> None:
    found, rows, descriptions = clustered
    picture = draw_clusters(found, rows, descriptions, sample=sample_similarities(rows), name="fruits $5$")
    for word in (*WORDS, "threshold 0.7", "4 clusters of 100 texts in fruits", "half-way to the centre"):
        assert word in picture.svg
    assert picture.caption.startswith("Each dot is a text, drawn half-way to the centre of its cluster")
    assert "reach the threshold 0.7" in picture.caption
    assert picture.png.startswith(b"\x89PNG")


def test_the_same_clusters_give_the_same_bytes(
    clustered: tuple[Clustering, np.ndarray, list[Description]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_map, "N_DRAWN", 40)
    found, rows, descriptions = clustered
    first, second = (draw_clusters(found, rows, descriptions, seed=3) for _ in range(2))
    assert first.svg == second.svg


def test_clusters_without_drawable_words_have_numbers() -> None:
    rows = np.eye(3, dtype=np.float32)
    found = clustering_of(rows, np.arange(3))
    without = [
        Description(number, 1, words, (number,)) for number, words in enumerate([(), ("\U0010ffff",), ("x",)])
    ]
    picture = draw_clusters(found, rows, without, name="\U0010ffff")
    assert "cluster 0" in picture.svg
    assert "cluster 1" in picture.svg
    assert "cluster 2" not in picture.svg
    assert picture.title == "3 clusters of 3 texts"


@pytest.mark.parametrize("groups", [[0, 0, 0], [-1, -1, -1], [0, 1, -1]])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_few_clusters_and_few_dimensions_can_be_drawn(groups: list[int], dim: int) -> None:
    rows = np.ones((3, dim), np.float32)
    found = clustering_of(rows, np.array(groups))
    picture = draw_clusters(found, rows, describe(found, ["a", "b", "c"]))
    assert f"{len(found)} clusters of 3 texts" in picture.svg


def test_more_clusters_than_colours_are_grey() -> None:
    rows = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    found = clustering_of(rows, np.arange(20))
    picture = draw_clusters(found, rows, describe(found, [f"word{chr(97 + row) * 9}" for row in range(20)]))
    assert "one of the 12 largest clusters; the other 8 are grey" in picture.caption


def test_what_cannot_be_drawn_is_refused(
    clustered: tuple[Clustering, np.ndarray, list[Description]],
) -> None:
    found, rows, descriptions = clustered
    with pytest.raises(InvalidInput, match="projection is 'tsne'; expected one of pca, umap"):
        draw_clusters(found, rows, descriptions, projection="tsne")
    with pytest.raises(InvalidInput, match="no rows"):
        draw_clusters(clustering_of(rows[:0], np.zeros(0, np.int64)), rows[:0], [])


@pytest.mark.skipif(find_spec("umap") is not None, reason="umap-learn is installed here")
def test_umap_says_what_to_install(clustered: tuple[Clustering, np.ndarray, list[Description]]) -> None:
    found, rows, descriptions = clustered
    with pytest.raises(MissingExtra, match=r"gemel\[umap\]"):
        draw_clusters(found, rows, descriptions, projection="umap")

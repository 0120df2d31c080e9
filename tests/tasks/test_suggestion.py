"""A threshold from the data: between what is near and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from gemel import suggest_threshold
from gemel.errors import InvalidInput
from gemel.similarity import cosine
from gemel.tasks.cluster import cluster
from gemel.tasks.histogram import SimilaritySample
from gemel.tasks.suggestion import gap_below, linking


def scores(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_as_many_neighbours_are_missed_as_random_pairs_reached() -> None:
    # 21 rows at 0, 4, ... 80 degrees: neighbours are 4 degrees apart, pairs at most 80. Within 4 degrees are
    # 40 of 420 ordered pairs, so any cosine below that of 4 degrees is reached by more pairs than missed.
    turned = np.radians(np.arange(0, 81, 4))
    rows = np.stack([np.cos(turned), np.sin(turned)], axis=1)
    assert np.cos(np.radians(8)) < suggest_threshold(rows) <= round(float(np.cos(np.radians(4))), 3)


def test_rows_are_linked_with_one_other_on_average() -> None:
    # Three rows and the three best of their links: the third is 0.7.
    assert linking(scores(0.9, 0.8, 0.7, 0.2, 0.6, 0.1).reshape(3, 2)) == pytest.approx(0.7)


def test_there_is_no_gap_where_pairs_grow_ever_fewer() -> None:
    random = np.abs(np.random.default_rng(0).standard_normal(20_000)).astype(np.float32) / 5
    nearest = scores(0.5, 0.6, 0.7, 0.8)
    assert gap_below(SimilaritySample(random, nearest), 0.75) == 0.75


def test_a_gap_below_many_related_pairs_is_found() -> None:
    # Unrelated pairs end at 0.2, a tenth of all pairs is related and begins at 0.8: the middle is 0.5.
    random = np.concatenate([np.linspace(-0.2, 0.2, 900), np.linspace(0.8, 1, 100)]).astype(np.float32)
    found = gap_below(SimilaritySample(random, scores(0.95, 0.97, 0.99)), 0.96)
    assert found == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("method", ["star", "connected"])
@pytest.mark.parametrize("n_clusters", [5, 40])
def test_clusters_that_stand_clear_are_told_apart_by_the_gap(method: str, n_clusters: int) -> None:
    random = np.random.default_rng(0)
    centres = random.standard_normal((n_clusters, 64))
    rows = (centres[:, None] + 0.4 * random.standard_normal((n_clusters, 40, 64))).reshape(-1, 64)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    of = np.repeat(np.arange(n_clusters), 40)
    cosines, same = units @ units.T, of[:, None] == of
    apart, together = np.quantile(cosines[~same], 0.999), np.quantile(cosines[same], 0.001)
    assert apart < suggest_threshold(rows, method=method) < together


def test_a_seed_gives_the_same_threshold() -> None:
    rows = np.random.default_rng(0).standard_normal((500, 8))
    assert suggest_threshold(rows, sample=50, seed=1) == suggest_threshold(rows, sample=50, seed=1)


def clustered(n_clusters: int, n_rows: int) -> np.ndarray:
    random = np.random.default_rng(0)
    centres = random.standard_normal((n_clusters, 1, 64))
    rows = centres + 0.8 * random.standard_normal((n_clusters, n_rows, 64))
    return rows.reshape(-1, 64).astype(np.float32)


@pytest.mark.parametrize("method", ["star", "connected"])
def test_rows_that_are_there_again_do_not_move_the_threshold(method: str) -> None:
    rows = clustered(50, 6)
    once = suggest_threshold(rows, method=method)
    for repeated in (
        np.vstack([rows, rows]),
        rows.repeat(2, axis=0),
        np.vstack([rows, rows[:1].repeat(900, 0)]),
    ):
        assert suggest_threshold(repeated, method=method) == once
    assert len(cluster(np.vstack([rows, rows]), method=method)) == len(cluster(rows, method=method)) == 50


@pytest.mark.parametrize(
    ("n_clusters", "n_rows", "star", "connected"), [(50, 6, 0.462, 0.46), (5, 60, 0.451, 0.45)]
)
def test_rows_without_copies_have_the_thresholds_that_they_always_had(
    n_clusters: int, n_rows: int, star: float, connected: float
) -> None:
    rows = clustered(n_clusters, n_rows)
    assert suggest_threshold(rows) == star
    assert suggest_threshold(rows, method="connected") == connected


@pytest.mark.parametrize("method", ["star", "connected", "agglomerative"])
@pytest.mark.parametrize("size", [0.03, 0.01, 0.003])
def test_groups_that_share_nearly_all_their_direction_are_told_apart(method: str, size: float) -> None:
    random = np.random.default_rng(0)
    groups = size * random.standard_normal((3, 1, 64)) + size / 4 * random.standard_normal((3, 20, 64))
    rows = (random.standard_normal(64) + groups).reshape(-1, 64)
    assert cosine(rows, rows).min() > 0.99
    found = cluster(rows, method=method)
    assert found.labels.reshape(3, 20).tolist() == [[int(each)] * 20 for each in found.labels[::20]]
    assert (len(found), found.n_unclustered) == (3, 0)


def test_rounding_leaves_the_threshold_within_reach() -> None:
    # Twins at a cosine of 0.9998, unlike all others: to three digits that would be 1, which none reaches.
    random = np.random.default_rng(0)
    rows = random.standard_normal((50, 1, 64)) + 0.0141 * random.standard_normal((50, 2, 64))
    found = suggest_threshold(rows.reshape(-1, 64), method="connected")
    assert found <= 0.999
    assert len(cluster(rows.reshape(-1, 64), method="connected", min_size=2)) == 50


def test_copies_alone_are_told_apart_by_nothing() -> None:
    assert suggest_threshold(np.ones((10, 3))) == 1


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (np.ones((2, 3)), {}, r"shape \(2, 3\).*n at least 3: give a threshold"),
        (np.ones((0, 3)), {}, r"shape \(0, 3\)"),
        (np.ones(9), {}, r"shape \(9,\)"),
        (np.ones((9, 3)), {"sample": 0}, "sample is 0"),
    ],
)
def test_too_little_to_see_is_refused(rows: np.ndarray, options: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        suggest_threshold(rows, **options)

"""A threshold from the data: between what is near and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from gemel import suggest_threshold
from gemel.errors import InvalidInput
from gemel.tasks.suggestion import Levels, sample_levels


def scores(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_as_many_neighbours_are_missed_as_random_pairs_reached() -> None:
    # At 0.5 one of five neighbours is missed and two of ten pairs are reached: a fifth of both.
    random = scores(0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.5, 0.6)
    levels = Levels(scores(0.4, 0.55, 0.7, 0.8, 0.9)[:, None], random)
    assert 0.4 < levels.dividing() <= 0.5


def test_rows_are_linked_with_one_other_on_average() -> None:
    # Three rows and the three best of their links: the third is 0.7.
    levels = Levels(np.array([[0.9, 0.8], [0.7, 0.2], [0.6, 0.1]], np.float32), scores(0, 0.1, 0.2))
    assert levels.linking() == pytest.approx(0.7)


def test_levels_are_those_of_the_rows() -> None:
    turned = np.radians([0, 10, 30, 90])
    rows = np.stack([np.cos(turned), np.sin(turned)], axis=1)
    levels = sample_levels(rows, k=2)
    expected = np.cos(np.radians([[10, 30], [10, 20], [20, 30], [60, 80]]))
    np.testing.assert_allclose(levels.nearest, expected, atol=1e-6)
    possible = np.cos(np.radians([10, 20, 30, 60, 80, 90]))
    assert np.abs(levels.random[:, None] - possible).min(axis=1).max() < 1e-6


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

"""A given number of groups: what k-means finds, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from gemel.errors import InvalidInput
from gemel.similarity import normalise
from gemel.tasks.kmeans import MEASURES, kmeans


def clouds(n_groups: int, n_each: int, spread: float, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    centres = normalise(random.standard_normal((n_groups, 16)))
    truth = np.repeat(np.arange(n_groups), n_each)
    rows = centres[truth] + spread * random.standard_normal((len(truth), 16)) + offset
    order = random.permutation(len(truth))
    return rows[order].astype(np.float32), truth[order]


@pytest.mark.parametrize("measure", MEASURES)
def test_clouds_that_lie_apart_are_found(measure: str) -> None:
    rows, truth = clouds(8, 40, spread=0.05)
    found = kmeans(rows, 8, measure=measure)
    assert adjusted_rand_score(truth, found.groups) == 1
    assert found.centres.shape == (8, 16)


def test_clouds_far_from_the_origin_are_found_by_distance() -> None:
    rows, truth = clouds(5, 40, spread=0.05, offset=1_000)
    found = kmeans(rows, 5, measure="euclidean")
    assert adjusted_rand_score(truth, found.groups) == 1
    assert found.centres == pytest.approx(
        np.stack([rows[found.groups == group].mean(axis=0) for group in range(5)]), abs=1e-3
    )


def test_the_inertia_is_as_low_as_that_of_scikit_learn() -> None:
    rows, _ = clouds(20, 30, spread=0.3)
    theirs = KMeans(20, n_init=5, random_state=0).fit(rows)
    assert kmeans(rows, 20, measure="euclidean").inertia <= 1.03 * theirs.inertia_
    units = normalise(rows)
    theirs = KMeans(20, n_init=5, random_state=0).fit(units)
    cosines = (units * normalise(theirs.cluster_centers_)[theirs.labels_]).sum(axis=1)
    assert kmeans(rows, 20, measure="cosine").inertia <= 1.03 * (2 - 2 * cosines).sum()


def test_the_groups_are_those_of_the_nearest_centres() -> None:
    rows, _ = clouds(6, 30, spread=0.4)
    found = kmeans(rows, 6, measure="euclidean")
    squares = ((rows[:, None] - found.centres) ** 2).sum(axis=2)
    assert found.groups.tolist() == squares.argmin(axis=1).tolist()
    assert found.inertia == pytest.approx(squares.min(axis=1).sum(), rel=1e-5)


def test_a_seed_gives_the_same_groups_and_another_may_not() -> None:
    rows, _ = clouds(10, 20, spread=1.0)
    first = kmeans(rows, 10, n_starts=1, seed=1).groups
    assert kmeans(rows, 10, n_starts=1, seed=1).groups.tolist() == first.tolist()
    assert kmeans(rows, 10, n_starts=1, seed=2).groups.tolist() != first.tolist()


def test_groups_do_not_depend_on_the_size_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = clouds(6, 30, spread=0.2)
    whole = kmeans(rows, 6).groups
    monkeypatch.setattr("gemel.tasks.kmeans._BLOCK_ROWS", 7)
    assert kmeans(rows, 6).groups.tolist() == whole.tolist()


def test_fewer_distinct_rows_than_groups_are_no_trouble() -> None:
    found = kmeans(np.ones((5, 3)), 3)
    assert found.inertia == pytest.approx(0, abs=1e-6)
    assert len(found.groups) == 5


def test_as_many_groups_as_rows_leave_each_row_alone() -> None:
    rows, _ = clouds(7, 1, spread=0)
    assert sorted(kmeans(rows, 7).groups.tolist()) == list(range(7))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_groups": 0}, "0 groups were asked of 4 rows"),
        ({"n_groups": 5}, "5 groups were asked of 4 rows; expected 1 to as many"),
        ({"n_groups": 2, "measure": "dot"}, "measure is 'dot'; expected one of cosine, euclidean"),
        ({"n_groups": 2, "n_starts": 0}, "n_starts is 0"),
    ],
)
def test_what_cannot_be_grouped_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        kmeans(np.eye(4), **arguments)


def test_rows_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="NaN"):
        kmeans([[np.nan, 1.0], [1.0, 1.0]], 2, measure="euclidean")

"""Principal axes, beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from gemel.tasks import projection
from gemel.tasks.projection import principal_axes


@pytest.mark.parametrize("n_rows", [5, 200])
def test_axes_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch, n_rows: int) -> None:
    monkeypatch.setattr(projection, "_BLOCK_ROWS", 17)
    random = np.random.default_rng(0)
    rows = (random.standard_normal((n_rows, 6)) * [5, 3, 2, 1, 0.5, 0.1] + 4).astype(np.float32)
    axes = principal_axes(rows, 3)
    theirs = PCA(3).fit(rows)
    np.testing.assert_allclose(np.abs(axes.directions), np.abs(theirs.components_), atol=1e-4)
    np.testing.assert_allclose(axes.shares, theirs.explained_variance_ratio_, atol=1e-5)
    np.testing.assert_allclose(np.abs(axes.project(rows)), np.abs(theirs.transform(rows)), atol=1e-3)
    assert (axes.directions[np.arange(3), np.abs(axes.directions).argmax(axis=1)] > 0).all()


def test_rows_without_variance_lie_in_one_place() -> None:
    axes = principal_axes(np.ones((5, 4), np.float32), 2)
    np.testing.assert_allclose(axes.project(np.ones((5, 4), np.float32)), 0, atol=1e-6)
    assert axes.shares.tolist() == [0, 0]


def test_there_are_no_more_axes_than_dimensions() -> None:
    assert principal_axes(np.eye(3, dtype=np.float32), 50).directions.shape == (3, 3)
    assert principal_axes(np.ones((2, 9), np.float32), 50).directions.shape == (2, 9)

"""The rows of a static table beside hand-worked values and plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from gemel.train.token_rows import (
    Projection,
    TokenSums,
    fit_rows,
    mean_cosine,
    rarity_weights,
    zipf_shares,
)

# Two sentences, "0 1 1" and "2", and an empty one; token 3 is never seen.
FLAT, STARTS, N_TOKENS = np.array([0, 1, 1, 2], np.int32), np.array([0, 3, 4, 4]), 4
COUNTS = np.array([[1, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], np.float64)


def units(n: int, dim: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_projection_of_points_on_a_line_is_their_place_on_it() -> None:
    points = np.array([[1, 1], [2, 2], [6, 6]], np.float32)  # mean (3, 3), along (1, 1) / sqrt 2
    projection = Projection.fit(points, 1)
    np.testing.assert_allclose(projection.axes[:, 0], [0.5**0.5, 0.5**0.5])
    np.testing.assert_allclose(projection.of(points)[:, 0], np.array([-2, -1, 3]) * 2**0.5, rtol=1e-6)


def test_projection_is_that_of_scikit_learn_but_for_signs() -> None:
    vectors = units(200, 12, seed=1) * np.linspace(1, 4, 12, dtype=np.float32)
    ours, theirs = Projection.fit(vectors, 5).of(vectors), PCA(5).fit_transform(vectors)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-4)


def test_weights_of_frequent_tokens_are_small() -> None:
    np.testing.assert_allclose(rarity_weights(np.array([0, 0.001, 0.009]), 0.001), [1, 0.5, 0.1])


def test_shares_by_rank_follow_zipf() -> None:
    shares = zipf_shares(3)  # 1 / 2.7, 1 / 3.7, 1 / 4.7
    np.testing.assert_allclose(shares[0] / shares[1], 3.7 / 2.7)
    np.testing.assert_allclose(shares.sum(), 1)


def test_sums_go_both_ways() -> None:
    import torch

    sums, rows, vectors = TokenSums(FLAT, STARTS, N_TOKENS), units(4, 3, seed=2), units(3, 3, seed=3)
    np.testing.assert_allclose(sums.of_sentences(torch.from_numpy(rows)), COUNTS @ rows, atol=1e-6)
    np.testing.assert_allclose(sums.of_tokens(torch.from_numpy(vectors)), COUNTS.T @ vectors, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.1, 1, 10])
def test_fitted_rows_are_those_of_the_normal_equations(ridge: float) -> None:
    start, targets = units(4, 5, seed=4), units(3, 5, seed=5)
    found = fit_rows(TokenSums(FLAT, STARTS, N_TOKENS), start, targets, ridge=ridge, n_steps=12)
    lengths = np.linalg.norm(COUNTS @ start, axis=1, keepdims=True)
    scaled = np.divide(COUNTS, lengths, out=np.zeros_like(COUNTS), where=lengths > 0)
    expected = np.linalg.solve(
        scaled.T @ scaled + ridge * np.eye(N_TOKENS), scaled.T @ targets + ridge * start
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_array_equal(found[3], start[3])  # what is never seen stays


def test_fitting_brings_sentences_nearer_to_their_targets() -> None:
    rng = np.random.default_rng(6)
    flat, starts = rng.integers(0, 30, 1_200).astype(np.int32), np.arange(0, 1_201, 6)
    true, start = units(30, 8, seed=7), units(30, 8, seed=8)
    targets = true[flat].reshape(200, 6, 8).sum(axis=1)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    sums = TokenSums(flat, starts, 30)
    before = mean_cosine(sums, start, targets)
    after = [mean_cosine(sums, fit_rows(sums, start, targets, ridge=1, n_steps=n), targets) for n in (1, 8)]
    assert before < 0.2 < after[0] < after[1]
    assert after[1] > 0.95

"""The measures and searches against plain numpy, and the promise that blocks do not show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gemel import similarity
from gemel.errors import InvalidInput
from gemel.similarity import (
    MEASURES,
    checks,
    neighbours,
    normalise,
    pairs_above,
    pairwise,
    top_k,
    top_pairs,
)

Array = npt.NDArray[Any]
measures = pytest.mark.parametrize("measure", MEASURES)
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


@contextmanager
def block_rows(n: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "BLOCK_ROWS", n)
        yield


def naive(a: Array, b: Array, measure: str) -> Array:
    a, b = a.astype(np.float64), b.astype(np.float64)
    if measure == "dot":
        return a @ b.T
    if measure == "cosine":
        lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
        return a @ b.T / np.where(lengths == 0, 1, lengths)
    return -np.linalg.norm(a[:, None] - b, ord=1 if measure == "manhattan" else 2, axis=2)


def exact(a: Array, b: Array, measure: str) -> Array:
    """All scores (n, m) as `pairwise` gives them: what a search must find the best of."""
    return pairwise(a.repeat(len(b), axis=0), np.tile(b, (len(a), 1)), measure).reshape(len(a), len(b))


def rows_of(dim: int, max_rows: int = 20) -> st.SearchStrategy[Array]:
    # Few distinct values make ties; any float makes hard sums; a factor makes them huge, tiny or subnormal.
    elements = st.one_of(
        st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0]), st.floats(-10, 10, width=32, allow_subnormal=True)
    )
    shapes = st.integers(0, max_rows).map(lambda n: (n, dim))
    rows = shapes.flatmap(lambda shape: arrays(np.float32, shape, elements=elements))
    factors = st.sampled_from([1, 1, 1, 1e-3, 1e15, 1e-30, 1e-42])
    return st.tuples(rows, factors).map(lambda both: (both[0] * both[1]).astype(np.float32))


one_set = st.integers(1, 9).flatmap(rows_of)
two_sets = st.integers(1, 9).flatmap(lambda dim: st.tuples(rows_of(dim), rows_of(dim)))
measure_names = st.sampled_from(sorted(MEASURES))
few = settings(max_examples=150, deadline=None)


@pytest.fixture
def vectors() -> Array:
    return np.random.default_rng(7).standard_normal((60, 16)).astype(np.float32)


# Measures --------------------------------------------------------------------------------------------


def test_normalised_rows_have_unit_length(vectors: Array) -> None:
    np.testing.assert_allclose(np.linalg.norm(normalise(vectors), axis=1), 1, rtol=1e-6)


def test_a_row_of_zeros_stays_zero() -> None:
    np.testing.assert_array_equal(normalise([[0, 0], [3, 4]]), np.float32([[0, 0], [0.6, 0.8]]))


@pytest.mark.parametrize("size", [1e-44, 1e-30, 1e17])
def test_tiny_and_huge_rows_are_normalised_too(size: float) -> None:
    np.testing.assert_allclose(normalise(np.float32([[size, size]])), [[0.5**0.5] * 2], rtol=1e-6)


def test_measures_of_a_hand_worked_example() -> None:
    a, b = [[3, 4], [0, 0]], [[3, 4], [-4, 3], [6, 8]]
    np.testing.assert_allclose(similarity.cosine(a, b), [[1, 0, 1], [0, 0, 0]], atol=1e-7)
    np.testing.assert_allclose(similarity.dot(a, b), [[25, 0, 50], [0, 0, 0]])
    np.testing.assert_allclose(similarity.euclidean(a, b), [[0, -(50**0.5), -5], [-5, -5, -10]])
    np.testing.assert_allclose(similarity.manhattan(a, b), [[0, -8, -7], [-7, -7, -14]])


@measures
def test_measures_agree_with_numpy_whatever_the_block(vectors: Array, measure: str) -> None:
    expected = naive(vectors[:20], vectors[20:], measure)
    for n in (1, 7, 1024):
        with block_rows(n):
            scores = MEASURES[measure](vectors[:20], vectors[20:])
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, expected, **TOLERANCE)


@measures
def test_pairwise_is_the_diagonal_of_the_matrix(vectors: Array, measure: str) -> None:
    expected = np.diag(naive(vectors[:30], vectors[30:], measure))
    np.testing.assert_allclose(pairwise(vectors[:30], vectors[30:], measure), expected, **TOLERANCE)


@given(two_sets, measure_names)
@few
def test_scores_are_finite_and_near_the_truth(sets: tuple[Array, Array], measure: str) -> None:
    a, b = sets
    scores, scale = MEASURES[measure](a, b), max(np.abs(naive(a, b, measure)).max(initial=0), 1e-30)
    np.testing.assert_allclose(scores / scale, naive(a, b, measure) / scale, **TOLERANCE)


def test_euclidean_is_exact_for_equal_and_near_rows() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 384)).astype(np.float32) * 100
    np.testing.assert_array_equal(np.diag(similarity.euclidean(rows, rows)), 0)
    near = rows.copy()
    near[:, 0] += np.float32(2**-10)
    apart = (near[:, 0].astype(np.float64) - rows[:, 0]).astype(np.float32)
    np.testing.assert_allclose(np.diag(similarity.euclidean(rows, near)), -apart, rtol=1e-6)


@measures
def test_equal_rows_are_exactly_alike(vectors: Array, measure: str) -> None:
    if measure != "dot":
        np.testing.assert_array_equal(pairwise(vectors, vectors, measure), float(measure == "cosine"))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_other_number_types_are_taken_as_float32(dtype: type) -> None:
    rows = np.arange(12).reshape(4, 3).astype(dtype)
    assert normalise(rows).dtype == np.float32
    np.testing.assert_array_equal(similarity.dot(rows, rows), similarity.dot(rows.astype(np.float32), rows))


def test_input_is_left_as_it_was(vectors: Array) -> None:
    before = vectors.copy()
    for measure in MEASURES:
        top_k(vectors, vectors, 3, measure)
        top_pairs(vectors, 3, measure=measure)
    np.testing.assert_array_equal(vectors, before)


def test_the_layout_in_memory_does_not_matter(vectors: Array) -> None:
    for other in (np.asfortranarray(vectors), np.repeat(vectors, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(top_k(other, other, 5).scores, top_k(vectors, vectors, 5).scores)
        np.testing.assert_array_equal(pairwise(other, other[::-1]), pairwise(vectors, vectors[::-1]))


# top_k -----------------------------------------------------------------------------------------------


def test_top_k_of_a_hand_worked_example() -> None:
    hits = top_k([[1, 0]], [[0, 1], [5, 0], [1, 1]], 2)
    assert hits.ids.tolist() == [[1, 2]]
    np.testing.assert_array_equal(hits.scores, np.float32([[1, 0.5**0.5]]))


def test_ties_are_ordered_by_index() -> None:
    assert top_k([[1, 0]], [[0, 1], [1, 0], [2, 0], [1, 0]], 3).ids.tolist() == [[1, 2, 3]]


def test_missing_hits_are_padded() -> None:
    hits = top_k([[1, 0]], [[1, 0]], 3)
    assert hits.ids.tolist() == [[0, -1, -1]]
    assert hits.scores.tolist() == [[1, -np.inf, -np.inf]]


def test_an_empty_corpus_gives_padding_and_no_queries_give_no_rows() -> None:
    assert top_k(np.ones((2, 3)), np.ones((0, 3)), 2).ids.tolist() == [[-1, -1], [-1, -1]]
    assert top_k(np.ones((0, 3)), np.ones((2, 3)), 2).ids.shape == (0, 2)


@given(two_sets, st.integers(1, 25), measure_names, st.sampled_from([1, 2, 3, 5, 1024]))
@few
def test_top_k_is_the_sorted_truth_whatever_the_block(
    sets: tuple[Array, Array], k: int, measure: str, n_rows: int
) -> None:
    queries, corpus = sets
    with block_rows(n_rows):
        hits = top_k(queries, corpus, k, measure)
    truth = exact(queries, corpus, measure)
    order = np.argsort(-truth, axis=1, kind="stable")[:, :k]
    found = order.shape[1]
    np.testing.assert_array_equal(hits.ids[:, :found], order)
    np.testing.assert_array_equal(hits.scores[:, :found], np.take_along_axis(truth, order, axis=1))
    assert (hits.ids[:, found:] == -1).all()
    assert (hits.scores[:, found:] == -np.inf).all()


@measures
def test_top_k_does_not_depend_on_blocks_when_scores_crowd(measure: str) -> None:
    # 2,000 near copies of one row: hundreds of scores lie within float32 rounding of the k-th.
    rng = np.random.default_rng(3)
    corpus = rng.standard_normal(48) + 1e-6 * rng.standard_normal((2000, 48))
    whole = top_k(corpus[:5], corpus, 20, measure)
    with block_rows(17):
        parts = top_k(corpus[:5], corpus, 20, measure)
    np.testing.assert_array_equal(whole.ids, parts.ids)
    np.testing.assert_array_equal(whole.scores, parts.scores)


# top_pairs -------------------------------------------------------------------------------------------


def test_top_pairs_of_a_hand_worked_example() -> None:
    pairs = top_pairs([[0, 0], [3, 4], [0, 1], [3, 4]], 3, measure="euclidean")
    assert list(zip(pairs.first, pairs.second, pairs.scores, strict=True)) == [
        (1, 3, 0),
        (0, 2, -1),
        (1, 2, -np.float32(18**0.5)),
    ]
    assert len(pairs) == 3


def test_equal_pairs_are_ordered_by_first_and_second() -> None:
    pairs = top_pairs(np.ones((4, 2)), 5)
    assert list(zip(pairs.first, pairs.second, strict=True)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


def test_pairs_below_the_bound_are_left_out() -> None:
    rows = [[1, 0], [1, 1], [0, 1]]
    assert top_pairs(rows, 9, at_least=0.7).first.tolist() == [0, 1]
    assert len(top_pairs(rows, 9, at_least=0.71)) == 0


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_rows_have_no_pairs(n: int) -> None:
    pairs = top_pairs(np.ones((n, 3)), 5)
    assert (pairs.first.dtype, pairs.scores.dtype, len(pairs)) == (np.int64, np.float32, 0)


def true_pairs(vectors: Array, n_pairs: int, measure: str, at_least: float) -> tuple[Array, Array, Array]:
    first, second = np.triu_indices(len(vectors), 1)
    scores = pairwise(vectors[first], vectors[second], measure)
    order = np.argsort(-scores, kind="stable")[:n_pairs]
    order = order[scores[order] >= np.float32(at_least)]
    return first[order], second[order], scores[order]


@given(
    one_set,
    st.integers(1, 60),
    measure_names,
    st.sampled_from([1, 2, 3, 5, 1024]),
    st.sampled_from([-1e38, -1, 0, 0.5, 1]),
)
@few
def test_top_pairs_is_the_sorted_truth_whatever_the_block(
    vectors: Array, n_pairs: int, measure: str, n_rows: int, at_least: float
) -> None:
    with block_rows(n_rows):
        pairs = top_pairs(vectors, n_pairs, measure=measure, at_least=at_least)
    expected = true_pairs(vectors, n_pairs, measure, at_least)
    for found, wanted in zip((pairs.first, pairs.second, pairs.scores), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@measures
@pytest.mark.parametrize("spread", [0, 1e-6, 1])
@pytest.mark.parametrize("n_rows", [8, 64])
def test_top_pairs_is_exact_when_there_are_more_than_fit(measure: str, spread: float, n_rows: int) -> None:
    # Equal and crowded rows fill the pool with what rough scores cannot tell apart.
    rng = np.random.default_rng(4)
    vectors = (rng.standard_normal(24) + spread * rng.standard_normal((150, 24))).astype(np.float32)
    with block_rows(n_rows):
        pairs = top_pairs(vectors, 30, measure=measure)
    for found, wanted in zip(
        (pairs.first, pairs.second, pairs.scores), true_pairs(vectors, 30, measure, -1e38), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@measures
@pytest.mark.parametrize("n_rows", [4, 1024])
def test_two_sets_are_two_even_where_they_are_one_array(measure: str, n_rows: int, vectors: Array) -> None:
    rows = vectors[:6]
    first, second = np.divmod(np.arange(36), 6)
    with block_rows(n_rows):
        found = [*pairs_above(rows, -1e6, others=rows, measure=measure)]
        best = top_pairs(rows, 36, others=rows, measure=measure)
        copied = top_pairs(rows, 36, others=rows.copy(), measure=measure)
        within = [*pairs_above(rows, -1e6, measure=measure)]
    np.testing.assert_array_equal(np.concatenate([pairs.first for pairs in found]), first)
    np.testing.assert_array_equal(np.concatenate([pairs.second for pairs in found]), second)
    for name in ("first", "second", "scores"):
        np.testing.assert_array_equal(getattr(best, name), getattr(copied, name))
    assert len(best) == 36
    assert sum(map(len, within)) == 15


@measures
def test_a_set_without_rows_has_no_pairs_with_another(measure: str, vectors: Array) -> None:
    for left, right in ((vectors, vectors[:0]), (vectors[:0], vectors), (vectors[:0], vectors[:0])):
        assert sum(map(len, pairs_above(left, -1, others=right, measure=measure))) == 0
        assert len(top_pairs(left, 3, others=right, measure=measure)) == 0


# neighbours ------------------------------------------------------------------------------------------


def test_neighbours_of_a_hand_worked_example() -> None:
    near = neighbours([[1, 0], [1, 1], [0, 1], [0, 0]], 0.7)
    assert len(near) == 4
    assert [near.of(row).tolist() for row in range(4)] == [[0, 1], [0, 1, 2], [1, 2], []]


@given(one_set, measure_names, st.sampled_from([1, 3, 1024]), st.sampled_from([-2, 0, 0.5, 0.9, 1]))
@few
def test_neighbours_are_those_that_score_enough(
    vectors: Array, measure: str, n_rows: int, at_least: float
) -> None:
    with block_rows(n_rows):
        near = neighbours(vectors, at_least, measure=measure)
    truth = exact(vectors, vectors, measure) >= np.float32(at_least)
    assert len(near) == len(vectors)
    for row, expected in enumerate(truth):
        np.testing.assert_array_equal(near.of(row), np.flatnonzero(expected))


# Bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (np.ones(3), "shape"),
        (np.ones((2, 0)), "shape"),
        (np.ones((2, 3, 1)), "shape"),
        (np.array([["a", "b", "c"]]), "real numbers"),
        (np.ones((2, 3), dtype=complex), "real numbers"),
        (np.array([[1, 2, np.nan]]), "NaN"),
        (np.array([[1, 2, 3], [1, -np.inf, 2]]), "row 1"),
        (np.full((1, 3), 1e300), "length"),
    ],
)
def test_what_is_not_rows_of_finite_numbers_is_refused(bad: Array, reason: str) -> None:
    for call in (
        lambda: normalise(bad),
        lambda: similarity.cosine(np.ones((2, 3)), bad),
        lambda: pairwise(bad, bad),
        lambda: top_k(bad, np.ones((2, 3)), 1),
        lambda: top_pairs(bad, 1),
        lambda: neighbours(bad, 0.5),
    ):
        with pytest.raises(InvalidInput, match=reason):
            call()


def test_sets_of_different_dimensions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="queries and corpus have 2 and 3 dimensions"):
        top_k(np.ones((1, 2)), np.ones((1, 3)), 1)


def test_pairwise_wants_as_many_rows_on_both_sides() -> None:
    with pytest.raises(InvalidInput, match=r"2 and 3 rows.*similarity\.dot"):
        pairwise(np.ones((2, 2)), np.ones((3, 2)), "dot")


def test_an_unknown_measure_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"'cos'.*cosine, dot, euclidean, manhattan"):
        top_k(np.ones((1, 2)), np.ones((1, 2)), 1, "cos")


@pytest.mark.parametrize("k", [0, -1, 1.5, "3"])
def test_counts_below_one_are_refused(k: Any) -> None:
    with pytest.raises(InvalidInput, match="k is"):
        top_k(np.ones((1, 2)), np.ones((1, 2)), k)
    with pytest.raises(InvalidInput, match="n_pairs is"):
        top_pairs(np.ones((1, 2)), k)


@pytest.mark.parametrize("bound", [np.nan, np.inf])
def test_a_bound_that_is_not_finite_is_refused(bound: float) -> None:
    with pytest.raises(InvalidInput, match="at_least"):
        top_pairs(np.ones((2, 2)), 1, at_least=bound)

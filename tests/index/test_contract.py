"""What every index does, whatever is behind it: another kind joins by a line in INDEXES or REMOTE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_places import Place

from gemel.contracts import Index
from gemel.errors import InvalidInput
from gemel.index import ExactIndex, HnswIndex, HnswParameters
from gemel.index.opening import open_index
from gemel.index.remote_index import RemoteIndex
from gemel.similarity import MEASURES, top_k

DIM = 24


@dataclass(frozen=True)
class Kind:
    """A kind of index: how one is made, what it can measure, and how far it may be from exact."""

    make: Callable[[str], Index]
    measures: tuple[str, ...] = ("cosine", "dot", "euclidean")
    recall: float = 1.0  # of the ten best of 500, on average
    tolerance: float = 1e-6  # of a score, next to the largest


def hnsw(dtype: str) -> Callable[[str], Index]:
    return lambda measure: HnswIndex(HnswParameters(DIM, measure, dtype))  # type: ignore[arg-type]


def remote(kind: str, dtype: Any = "float32") -> Callable[[str], Index]:
    def make(measure: str) -> Index:
        return open_index(Place(kind, Path()).address(), DIM, measure=measure, dtype=dtype)

    return make


INDEXES = {
    "exact": Kind(lambda measure: ExactIndex(DIM, measure=measure), measures=tuple(MEASURES)),
    "hnsw float32": Kind(hnsw("float32"), recall=0.95, tolerance=1e-3),
    "hnsw float16": Kind(hnsw("float16"), recall=0.95, tolerance=2e-2),
    "hnsw int8": Kind(hnsw("int8"), measures=("cosine",), recall=0.9, tolerance=2e-2),
}
REMOTE = {
    "milvus": Kind(remote("milvus"), recall=0.98),
    "pgvector": Kind(remote("postgresql"), measures=tuple(MEASURES)),
    "pgvector float16": Kind(
        remote("postgresql", "float16"), measures=tuple(MEASURES), recall=0.95, tolerance=2e-2
    ),
}
CASES = [(name, measure) for name, kind in INDEXES.items() for measure in kind.measures] + [
    pytest.param((name, measure), marks=pytest.mark.extras, id=f"{name} {measure}")
    for name, kind in REMOTE.items()
    for measure in kind.measures
]


@pytest.fixture(params=CASES, ids=lambda case: " ".join(case))
def case(request: pytest.FixtureRequest) -> Iterator[tuple[Kind, str, Index]]:
    name, measure = request.param
    kind = {**INDEXES, **REMOTE}[name]
    index = kind.make(measure)
    yield kind, measure, index
    if isinstance(index, RemoteIndex):
        index.close()


def rows_for(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


def ids_for(n: int) -> np.ndarray:
    """Ids that are neither dense nor in order, large ones among them."""
    return np.random.default_rng(1).permutation(n) * 7 + np.where(np.arange(n) % 3, 0, 1 << 40)


def overlap(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, expected, strict=True)]))


def test_it_keeps_the_contract(case: tuple[Kind, str, Index]) -> None:
    assert isinstance(case[2], Index)


def test_the_best_are_found_with_their_scores(case: tuple[Kind, str, Index]) -> None:
    kind, measure, index = case
    ids, rows, queries = ids_for(500), rows_for(500), rows_for(20, seed=2)
    index.add(ids[:200], rows[:200])
    index.add(ids[200:], rows[200:])
    index.flush()
    assert len(index) == 500
    expected = top_k(queries, rows, 10, measure)
    hits = index.search(queries, 10)
    assert overlap(hits.ids, ids[expected.ids]) >= kind.recall
    scores = MEASURES[measure](queries, rows)
    of_hits = np.take_along_axis(scores, np.argsort(ids)[np.searchsorted(np.sort(ids), hits.ids)], axis=1)
    np.testing.assert_allclose(hits.scores, of_hits, atol=kind.tolerance * np.abs(of_hits).max())
    assert (np.diff(hits.scores, axis=1) <= 0).all()


def test_an_id_that_is_added_again_gets_the_new_vector(case: tuple[Kind, str, Index]) -> None:
    _, _, index = case
    rows = rows_for(50)
    rows[7] *= 3  # so that it is its own best match by every measure, inner product included
    index.add(np.arange(50), rows)
    index.add([7], rows[7:8] * -1)
    assert len(index) == 50
    assert index.search(rows[7:8] * -1, 1).ids.tolist() == [[7]]
    assert 7 not in index.search(rows[7:8], 5).ids


def test_a_removed_id_is_never_returned(case: tuple[Kind, str, Index]) -> None:
    _, _, index = case
    rows = rows_for(60)
    index.add(np.arange(60), rows)
    assert index.remove(np.arange(0, 60, 2)) == 30
    assert index.remove([0, 1, 1, 999]) == 1
    assert len(index) == 29
    hits = index.search(rows, 29)
    assert set(hits.ids[hits.ids >= 0].tolist()) <= set(range(3, 60, 2))
    index.add([0], rows[:1])
    assert 0 in index.search(rows[:1], 29).ids


@pytest.mark.parametrize("n_allowed", [0, 1, 9, 100, 450, 500])
def test_only_allowed_ids_are_returned_and_none_is_missed(
    case: tuple[Kind, str, Index], n_allowed: int
) -> None:
    kind, measure, index = case
    ids, rows, queries = ids_for(500), rows_for(500), rows_for(10, seed=3)
    index.add(ids, rows)
    chosen = np.sort(np.random.default_rng(4).permutation(500)[:n_allowed])
    hits = index.search(queries, 10, allowed=[*ids[chosen], 5, 6])
    assert set(hits.ids[hits.ids >= 0].tolist()) <= set(ids[chosen].tolist())
    n_hits = min(n_allowed, 10)
    assert (np.count_nonzero(hits.ids >= 0, axis=1) == n_hits).all()
    if n_hits:
        expected = top_k(queries, rows[chosen], n_hits, measure)
        assert overlap(hits.ids[:, :n_hits], ids[chosen][expected.ids]) >= kind.recall


def test_short_answers_are_padded(case: tuple[Kind, str, Index]) -> None:
    _, _, index = case
    empty = index.search(rows_for(2), 3)
    assert empty.ids.tolist() == [[-1] * 3] * 2
    assert np.isneginf(empty.scores).all()
    index.add([4, 9], rows_for(2))
    hits = index.search(rows_for(1), 5)
    assert hits.ids.shape == (1, 5)
    assert set(hits.ids[0].tolist()) == {4, 9, -1}
    assert np.isneginf(hits.scores[0, 2:]).all()
    assert index.search(np.zeros((0, DIM)), 5).ids.shape == (0, 5)


def test_nothing_can_be_added_and_removed(case: tuple[Kind, str, Index]) -> None:
    _, _, index = case
    index.add([], np.zeros((0, DIM)))
    assert index.remove([]) == 0
    assert len(index) == 0


NAN = np.full((1, DIM), np.nan)
BAD_ENTRIES = {
    "more ids than vectors": ([1, 2], rows_for(1), "2 ids and 1 vectors"),
    "an id twice": ([3, 3], rows_for(2), "id 3 is given twice"),
    "a negative id": ([-1], rows_for(1), "ids have -1"),
    "ids that are no integers": ([1.5], rows_for(1), "expected integers"),
    "ids that are texts": (["a"], rows_for(1), "expected integers"),
    "another dimension": ([1], rows_for(1)[:, 1:], r"expected numbers of shape \(n, 24\)"),
    "a lone vector": ([1], rows_for(1)[0], r"expected numbers of shape \(n, 24\)"),
    "vectors of different lengths": ([1, 2], [[0.0] * DIM, [0.0]], "vectors are not one array"),
    "ids of different lengths": ([[1], [2, 3]], rows_for(2), "ids are not one array"),
    "NaN": ([1], NAN, "row 0"),
}


@pytest.mark.parametrize("flaw", BAD_ENTRIES)
def test_bad_entries_are_refused_and_change_nothing(case: tuple[Kind, str, Index], flaw: str) -> None:
    _, _, index = case
    index.add([5], rows_for(1))
    ids, vectors, message = BAD_ENTRIES[flaw]
    with pytest.raises(InvalidInput, match=message):
        index.add(ids, vectors)
    assert len(index) == 1


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_a_bad_k_is_refused(case: tuple[Kind, str, Index], k: int) -> None:
    with pytest.raises(InvalidInput, match="k is"):
        case[2].search(rows_for(1), k)


def test_a_bad_query_is_refused(case: tuple[Kind, str, Index]) -> None:
    for queries in (NAN, rows_for(1)[:, 1:], rows_for(1)[0]):
        with pytest.raises(InvalidInput, match="queries"):
            case[2].search(queries, 1)


def test_a_file_gives_back_the_same_index(tmp_path: Path) -> None:
    index = HnswIndex(HnswParameters(DIM, dtype="int8", expansion_search=200), tmp_path / "graph")
    index.add(np.arange(300), rows_for(300))
    index.remove([3])
    index.flush()
    expected = index.search(rows_for(20, seed=5), 10)
    for mapped in (False, True):
        opened = HnswIndex.open(tmp_path / "graph", mapped=mapped)
        assert opened.parameters == index.parameters
        assert len(opened) == 299
        hits = opened.search(rows_for(20, seed=5), 10)
        np.testing.assert_array_equal(hits.ids, expected.ids)
        np.testing.assert_array_equal(hits.scores, expected.scores)

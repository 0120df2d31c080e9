"""One of each group of duplicates stays, and no row is ever lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gemel.errors import InvalidInput
from gemel.similarity import cosine, pairwise
from gemel.tasks import dedupe as dedupe_module
from gemel.tasks.components import Components
from gemel.tasks.corpus import Corpus
from gemel.tasks.dedupe import Duplicates, dedupe

KEEPS = ["first", "longest", "best-connected"]
GROUPINGS = ["star", "connected"]


def angles(*degrees: float, texts: Sequence[str] | None = None) -> Corpus:
    """A corpus of unit vectors in the plane, whose cosines are those of the angles between them."""
    radians = np.radians(degrees)
    vectors = np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)
    texts = [f"text {row}" for row in range(len(degrees))] if texts is None else list(texts)
    return Corpus(list(texts), list(range(len(degrees))), vectors)


def within(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """Texts that repeat and vectors that are often alike; the same text has the same vector."""
    texts = draw(
        st.lists(st.sampled_from(["a", "A ", "bb", " bb", "ccc", "d", "ee", "f f", "F  F"]), max_size=14)
    )
    degrees = {text: draw(st.integers(0, 18)) * 10 for text in dict.fromkeys(texts)}
    return angles(*(degrees[text] for text in texts), texts=texts)


@given(corpora(), st.sampled_from(KEEPS), st.sampled_from(GROUPINGS), st.booleans())
def test_kept_and_dropped_are_the_input(corpus: Corpus, keep: Any, grouping: Any, normalise: bool) -> None:
    found = dedupe(corpus, threshold=within(25), keep=keep, grouping=grouping, normalise=normalise)
    assert sorted([*found.kept, *found.dropped]) == list(range(len(corpus)))
    assert found.is_kept[found.keepers].all()
    assert not found.is_repeat[found.kept].any()
    assert (found.scores[found.kept] == 1).all()


@given(corpora(), st.sampled_from(KEEPS))
def test_every_dropped_row_is_within_the_threshold_of_its_keeper_and_no_two_kept_are(
    corpus: Corpus, keep: Any
) -> None:
    found = dedupe(corpus, threshold=within(25), keep=keep)
    for row in found.dropped:
        keeper = found.keepers[row]
        score = pairwise(corpus.vectors[[row]], corpus.vectors[[keeper]])[0]
        assert score >= np.float32(within(25))
        assert found.scores[row] == score
    between_kept = cosine(corpus.vectors[found.kept], corpus.vectors[found.kept])
    assert (between_kept[~np.eye(len(found.kept), dtype=np.bool_)] < within(25) + 1e-6).all()


@given(corpora(), st.sampled_from(KEEPS))
def test_connected_groups_are_those_of_scipy(corpus: Corpus, keep: Any) -> None:
    found = dedupe(corpus, threshold=within(25), keep=keep, grouping="connected")
    rows = np.arange(len(corpus))
    left, right = np.repeat(rows, len(rows)), np.tile(rows, len(rows))
    alike = pairwise(corpus.vectors[left], corpus.vectors[right]) >= np.float32(within(25))
    alike |= np.array(
        [corpus.texts[i] == corpus.texts[j] for i, j in zip(left, right, strict=True)], np.bool_
    )
    if not len(corpus):
        return
    graph = coo_array((np.ones(alike.sum()), (left[alike], right[alike])), shape=(len(rows), len(rows)))
    n_groups, labels = connected_components(graph, directed=False)
    assert len(found.kept) == n_groups
    np.testing.assert_array_equal(labels[found.keepers], labels)


@given(corpora(), st.sampled_from(KEEPS), st.sampled_from(GROUPINGS))
@settings(max_examples=40)
def test_the_size_of_a_block_leaves_no_trace(corpus: Corpus, keep: Any, grouping: Any) -> None:
    whole = dedupe(corpus, threshold=within(35), keep=keep, grouping=grouping)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedupe_module, "OUTER_ROWS", 4)
        patch.setattr(dedupe_module, "INNER_ROWS", 2)
        parts = dedupe(corpus, threshold=within(35), keep=keep, grouping=grouping)
    np.testing.assert_array_equal(parts.keepers, whole.keepers)


# A chain 0 - 10 - 20 of degrees, and 90 far from it; neighbours are within 12 degrees.
CHAIN = angles(0, 10, 20, 90, texts=["short", "middle", "the longest", "alone"])


@pytest.mark.parametrize(
    ("keep", "grouping", "keepers"),
    [
        ("first", "star", [0, 0, 2, 3]),  # 20 is too far from 0
        ("longest", "star", [0, 2, 2, 3]),  # 0 is too far from 20
        ("best-connected", "star", [1, 1, 1, 3]),  # 10 has two duplicates
        ("first", "connected", [0, 0, 0, 3]),
        ("longest", "connected", [2, 2, 2, 3]),
        ("best-connected", "connected", [1, 1, 1, 3]),
    ],
)
def test_who_is_kept_of_a_chain(keep: Any, grouping: Any, keepers: list[int]) -> None:
    found = dedupe(CHAIN, threshold=within(12), keep=keep, grouping=grouping)
    assert found.keepers.tolist() == keepers
    assert not found.is_repeat.any()


def test_the_score_is_that_of_the_row_and_its_keeper() -> None:
    found = dedupe(CHAIN, threshold=within(12), grouping="connected")
    assert found.scores == pytest.approx([1, within(10), within(20), 1], abs=1e-6)


def test_a_repeated_text_is_dropped_as_such_whatever_the_threshold() -> None:
    corpus = angles(0, 90, 0, 0, texts=["a", "b", "a", "A"])
    found = dedupe(corpus, threshold=1)
    assert found.keepers.tolist() == [0, 1, 0, 0]
    assert found.is_repeat.tolist() == [False, False, True, False]  # "A" only has the same vector


def test_case_and_white_space_make_no_difference_if_asked() -> None:
    corpus = angles(0, 50, 90, 130, texts=["a  b", "A B", "ab", " a\tb "])
    assert dedupe(corpus, threshold=1).keepers.tolist() == [0, 1, 2, 3]
    found = dedupe(corpus, threshold=1, normalise=True)
    assert found.keepers.tolist() == [0, 0, 2, 0]
    assert found.is_repeat.tolist() == [False, True, False, True]
    assert dedupe(corpus, threshold=1, normalise=True, keep="longest").keepers.tolist() == [3, 3, 2, 3]


def test_copies_make_a_row_well_connected() -> None:
    corpus = angles(0, 10, 10, texts=["one", "two", "two"])
    assert dedupe(corpus, threshold=within(12), keep="first").keepers.tolist() == [0, 0, 0]
    corpus = angles(0, 10, 20, 20, texts=["one", "two", "three", "three"])
    found = dedupe(corpus, threshold=within(12), keep="best-connected")
    assert found.keepers.tolist() == [1, 1, 1, 1]
    assert not found.is_repeat.any()  # the copy's own original is dropped, too


class NeverWithLongest:
    """Confirms every pair but those of the longest text."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array(["the longest" not in pair for pair in pairs], np.float32)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_cross_encoder_has_the_last_word(grouping: Any) -> None:
    found = dedupe(CHAIN, threshold=within(25), grouping=grouping, reranker=NeverWithLongest())
    assert found.keepers.tolist() == [0, 0, 2, 3]
    found = dedupe(CHAIN, threshold=within(25), reranker=NeverWithLongest(), rerank_at_least=0)
    assert found.keepers.tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize(("keep", "total"), [("first", 4), ("longest", 4), ("best-connected", 8)])
def test_progress_ends_where_it_should(keep: Any, total: int) -> None:
    seen: list[tuple[int, int]] = []
    dedupe(CHAIN, threshold=0.9, keep=keep, on_progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"threshold": 1.01}, "the threshold is 1.01; expected a cosine: give a number from -1 to 1"),
        ({"keep": "last"}, "keep is 'last'; expected one of first, longest, best-connected"),
        ({"grouping": "clique"}, "grouping is 'clique'; expected one of star, connected"),
    ],
)
def test_a_wrong_choice_is_told_in_one_sentence(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        dedupe(CHAIN, **choices)


def test_one_text_is_kept() -> None:
    found = dedupe(angles(0))
    assert isinstance(found, Duplicates)
    assert found.kept.tolist() == [0]


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=40))
def test_components_are_those_of_scipy_however_the_edges_come(edges: list[tuple[int, int]]) -> None:
    components = Components(20)
    for start in range(0, len(edges), 7):
        first, second = np.array(edges[start : start + 7], np.int64).T
        components.join(first, second)
    first, second = np.array(edges, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges)), (first, second)), shape=(20, 20))
    _, labels = connected_components(graph, directed=False)
    lowest = {label: int(np.flatnonzero(labels == label)[0]) for label in set(labels.tolist())}
    assert components.labels().tolist() == [lowest[label] for label in labels]


@pytest.mark.usefixtures("default_weights")
def test_planted_paraphrases_are_dropped_and_other_sentences_are_not(real_data: Path) -> None:
    from gemel import load_encoder
    from gemel.tasks.corpus import make_corpus

    lines = (real_data / "stsb/test.tsv").read_text(encoding="utf-8").splitlines()[1:301]
    texts = list(dict.fromkeys(line.split("\t")[0] for line in lines))
    planted = [text.replace(".", " .") + " " for text in texts[:20]]
    corpus = make_corpus([*texts, *planted], load_encoder())
    found = dedupe(corpus, threshold=0.97)
    assert set(range(len(texts), len(corpus))) <= set(found.dropped.tolist())

"""Mined pairs are those that comparing everything with everything finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import ToyEncoder

from gemel.data.texts import TextSource
from gemel.errors import InvalidInput
from gemel.similarity import MEASURES, Pairs, pairwise
from gemel.tasks import mine as mine_module
from gemel.tasks.corpus import Corpus, make_corpus, read_corpus
from gemel.tasks.mine import confirm, mine

Triples = list[tuple[int, int, float]]

TEXTS = ["a red house", "a red house", "the old dog", "a red garden", "the old cat", "three"]
OTHERS = ["the old dog", "a blue house", "the old dog", "nothing"]
small_texts = st.lists(st.sampled_from(["a b", "a c", "a", "b", "c d", "a b c"]), min_size=2, max_size=12)


def corpus_of(texts: Sequence[str]) -> Corpus:
    return make_corpus(texts, ToyEncoder())


def triples(blocks: Any) -> Triples:
    return [
        (int(i), int(j), float(score))
        for block in blocks
        for i, j, score in zip(block.first, block.second, block.scores, strict=True)
    ]


def every_pair(left: Corpus, right: Corpus | None = None, measure: str = "cosine") -> Triples:
    """All pairs by brute force, the most similar first, ties by row."""
    others = right or left
    found = []
    for i in range(len(left)):
        for j in range(i + 1 if right is None else 0, len(others)):
            score = pairwise(left.vectors[i : i + 1], others.vectors[j : j + 1], measure)
            found.append((i, j, float(score[0])))
    return sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1]))


@pytest.mark.parametrize("measure", list(MEASURES))
@pytest.mark.parametrize("others", [None, OTHERS])
def test_the_best_pairs_overall_are_the_first_of_all_pairs(measure: str, others: list[str] | None) -> None:
    left, right = corpus_of(TEXTS), corpus_of(others) if others else None
    found = triples(mine(left, right, n_pairs=5, measure=measure))
    assert found == every_pair(left, right, measure)[:5]


@pytest.mark.parametrize("measure", list(MEASURES))
def test_a_corpus_that_is_also_the_other_is_compared_as_another(measure: str) -> None:
    corpus = corpus_of(TEXTS)
    expected = every_pair(corpus, corpus, measure)
    assert triples(mine(corpus, corpus, n_pairs=36, measure=measure)) == expected
    lowest = 0.0 if measure in ("cosine", "dot") else -100.0
    found = triples(mine(corpus, corpus, at_least=lowest, measure=measure))
    assert found == sorted(pair for pair in expected if pair[2] >= lowest)


@given(small_texts, st.floats(-1, 1, width=32))
def test_all_pairs_above_a_threshold_come_once(texts: list[str], at_least: float) -> None:
    corpus = corpus_of(texts)
    found = triples(mine(corpus, at_least=at_least))
    assert sorted(found) == sorted(pair for pair in every_pair(corpus) if pair[2] >= at_least)


@given(small_texts, st.data())
def test_each_row_gets_its_k_most_similar_others(texts: list[str], data: st.DataObject) -> None:
    corpus = corpus_of(texts)
    k = data.draw(st.integers(1, len(texts) - 1))
    found = triples(mine(corpus, k=k))
    both_ways = every_pair(corpus) + [(j, i, score) for i, j, score in every_pair(corpus)]
    for row in range(len(texts)):
        expected = sorted((-score, j) for i, j, score in both_ways if i == row)[:k]
        assert [(-score, j) for i, j, score in found if i == row] == expected


def test_rows_are_searched_in_blocks_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, seen = corpus_of(TEXTS), []
    whole = triples(mine(corpus, k=2))
    monkeypatch.setattr(mine_module, "QUERIES_AT_ONCE", 4)
    parts = triples(mine(corpus, k=2, on_progress=lambda done, total: seen.append((done, total))))
    assert parts == whole
    assert seen == [(4, 6), (6, 6)]


def test_a_threshold_also_bounds_the_other_two_choices() -> None:
    corpus = corpus_of(TEXTS)
    enough = {(i, j) for i, j, score in every_pair(corpus) if score >= 0.3}
    assert {(i, j) for i, j, _ in triples(mine(corpus, n_pairs=100, at_least=0.3))} == enough
    per_row = triples(mine(corpus, k=5, at_least=0.3))
    assert {tuple(sorted(pair[:2])) for pair in per_row} == enough


def test_the_first_of_identical_texts_stands_for_all() -> None:
    corpus = corpus_of(TEXTS)
    distinct = [pair for pair in every_pair(corpus) if 1 not in pair[:2]]
    assert triples(mine(corpus, n_pairs=3, skip_identical=True)) == distinct[:3]
    assert sorted(triples(mine(corpus, at_least=-1, skip_identical=True))) == sorted(distinct)
    assert all(1 not in pair[:2] for pair in triples(mine(corpus, k=4, skip_identical=True)))


def test_a_text_that_both_corpora_have_is_no_pair_with_itself() -> None:
    left, right = corpus_of(TEXTS), corpus_of(OTHERS)
    expected = [
        pair for pair in every_pair(left, right) if pair[0] != 1 and pair[1] != 2 and pair[:2] != (2, 0)
    ]
    assert triples(mine(left, right, n_pairs=4, skip_identical=True)) == expected[:4]
    assert sorted(triples(mine(left, right, at_least=-1, skip_identical=True))) == sorted(expected)
    best = {i: j for i, j, _ in triples(mine(left, right, k=1, skip_identical=True))}
    assert best == {i: next(j for a, j, _ in expected if a == i) for i in (0, 2, 3, 4, 5)}


def test_vectors_without_texts_are_mined_as_well() -> None:
    corpus = corpus_of(TEXTS)
    assert triples(mine(corpus.vectors, n_pairs=3)) == triples(mine(corpus, n_pairs=3))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({}, "one choice of pairs: give n_pairs, or k, or at_least"),
        ({"n_pairs": 3, "k": 2}, "one choice of pairs"),
        ({"at_least": 1.5}, "the threshold is 1.5; expected a cosine: give a number from -1 to 1"),
        ({"at_least": float("nan")}, "the threshold is nan"),
        ({"at_least": 0.5, "measure": "euclidean"}, "a negated distance: give a number that is 0 or less"),
        ({"at_least": 0.5, "measure": "jaccard"}, "measure is 'jaccard'"),
        ({"k": 6}, "k is 6, and each row can be compared with 5 others; expected 1 to 5"),
        ({"k": 0}, "k is 0"),
        ({"n_pairs": 0}, "n_pairs is 0"),
    ],
)
def test_a_wrong_choice_is_told_in_one_sentence(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mine(corpus_of(TEXTS), **choices)


@pytest.mark.parametrize(("texts", "message"), [([], "is empty"), (["one"], "has only one text")])
def test_a_corpus_without_pairs_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mine(corpus_of(texts), n_pairs=1)


def test_one_text_can_be_compared_with_another_corpus() -> None:
    assert len(triples(mine(corpus_of(["a red house"]), corpus_of(OTHERS), k=2))) == 2


def test_identical_texts_cannot_be_told_from_vectors() -> None:
    with pytest.raises(InvalidInput, match="compares texts and was given vectors alone"):
        mine(np.eye(3), n_pairs=1, skip_identical=True)


class SameLength:
    """Scores 1 where both texts are as long, else 0."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([len(a) == len(b) for a, b in pairs], np.float32)


def test_a_cross_encoder_confirms_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mine_module, "PAIRS_AT_ONCE", 4)
    left, right = corpus_of(TEXTS), corpus_of(OTHERS)
    confirmed = list(confirm(mine(left, right, at_least=-1), left, right, SameLength()))
    found = {(i, j) for i, j, _ in triples(pairs for pairs, _ in confirmed)}
    expected = {(i, j) for i, a in enumerate(TEXTS) for j, b in enumerate(OTHERS) if len(a) == len(b)}
    assert found == expected
    assert all((scores == 1).all() for _, scores in confirmed)


def test_a_cross_encoder_with_several_labels_confirms_nothing() -> None:
    class Labels:
        def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            return np.zeros((len(pairs), 3), np.float32)

    corpus = corpus_of(TEXTS)
    with pytest.raises(InvalidInput, match="gives 3 scores a pair; expected one"):
        list(confirm([Pairs(np.array([0]), np.array([1]), np.ones(1, np.float32))], corpus, None, Labels()))


@pytest.mark.usefixtures("default_weights")
def test_duplicate_questions_are_found_among_real_ones(real_data: Path, tmp_path: Path) -> None:
    from gemel import load_encoder

    pairs = [
        line.split("\t") for line in (real_data / "quora_pairs_sample/sample.tsv").read_text().splitlines()
    ]
    header, rows = pairs[0], pairs[1:201]
    first, second, label = (header.index(name) for name in ("question1", "question2", "is_duplicate"))
    texts = [row[side] for row in rows for side in (first, second)]
    (tmp_path / "questions.txt").write_text("\n".join(texts) + "\n")
    corpus = read_corpus(TextSource(tmp_path / "questions.txt"), load_encoder())
    found = triples(mine(corpus, n_pairs=30, skip_identical=True))
    right = [row for row in range(200) if rows[row][label] == "1"]
    hits = [i // 2 for i, j, _ in found if j == i + 1 and i % 2 == 0 and i // 2 in right]
    assert len(hits) >= 20

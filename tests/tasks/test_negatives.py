"""Hard negatives: what each rule drops, worked out by hand, and the whole against brute force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from by_heart import TableEncoder
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import ToyEncoder, sentences

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.similarity import pairwise
from gemel.tasks import negatives as module
from gemel.tasks.negatives import HardNegatives, MinedPair, NegativeRows, NegativeRules


def at(cosine: float) -> list[float]:
    """A unit vector that has this cosine with the anchor's (1, 0)."""
    return [cosine, math.sqrt(1 - cosine**2)]


# How similar each text is to the anchor.
CLOSENESS = {"twin": 0.99, "positive": 0.9, "near": 0.88, "nearish": 0.8, "middle": 0.5, "far": 0.1}
ENCODER = TableEncoder({"anchor": [1.0, 0.0], **{text: at(score) for text, score in CLOSENESS.items()}})
CORPUS = ["anchor", "twin", "near", "nearish", "middle", "far"]


def pairs_of(*pairs: tuple[str, str]) -> Examples:
    first, second = zip(*pairs, strict=True)
    return Examples("pairs", {"anchor": list(first), "positive": list(second)})


ONE_PAIR = pairs_of(("anchor", "positive"))


def negatives(**rules: Any) -> tuple[list[str], HardNegatives]:
    found = HardNegatives(ONE_PAIR, ENCODER, NegativeRules(**rules), corpus=CORPUS)
    (pair,) = found
    return pair.negatives, found


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"relative_margin": None}, ["twin", "near", "nearish"]),
        ({}, ["nearish", "middle", "far"]),  # at most 0.9 x 0.95 = 0.855
        ({"relative_margin": 0.0}, ["near", "nearish", "middle"]),
        ({"relative_margin": None, "margin": 0.05}, ["nearish", "middle", "far"]),  # at most 0.85
        ({"relative_margin": None, "margin": 0.2}, ["middle", "far"]),
        ({"relative_margin": None, "max_score": 0.85, "min_score": 0.2}, ["nearish", "middle"]),
        ({"relative_margin": None, "skip_first": 2}, ["nearish", "middle", "far"]),
        ({"relative_margin": None, "skip_first": 1, "n_candidates": 3}, ["near", "nearish", "middle"]),
        ({"skip_first": 3}, ["middle", "far"]),
    ],
)
def test_each_rule_drops_what_it_says(rules: dict[str, Any], expected: list[str]) -> None:
    assert negatives(n_negatives=3, **rules)[0] == expected


def test_the_report_counts_each_candidate_under_the_first_rule_that_drops_it() -> None:
    _, found = negatives(n_negatives=3, skip_first=1, min_score=0.2)
    assert found.report.to_dict() == {
        "pairs": 1,
        "negatives": 2,
        "pairs_with_fewer": 1,
        "pairs_with_none": 0,
        "blank_texts": 0,
        "dropped": {
            "the anchor or a known positive": 2,
            "among the 1 nearest": 1,
            "less similar than 0.2": 1,
            "within 0.05 of the positive's score": 1,
        },
    }
    list(found)  # a second pass counts anew
    assert found.report.pairs == 1


def test_a_blank_text_is_no_negative_and_is_counted(toy_encoder: ToyEncoder) -> None:
    rules = NegativeRules(n_negatives=5, relative_margin=None)
    found = HardNegatives(
        pairs_of(("a house", "the house")), toy_encoder, rules, corpus=["", "a dog", " \t", "\u3000"]
    )
    assert [pair.negatives for pair in found] == [["a dog"]]
    assert found.report.to_dict()["blank_texts"] == 3


def test_copies_and_known_partners_are_never_negatives(toy_encoder: ToyEncoder) -> None:
    pairs = pairs_of(("a red house", "a house"), ("a red house", "the red house"), ("A  Red house", "red"))
    corpus = ["a red  HOUSE", "A house", "the red house", "a blue house"]
    found = HardNegatives(
        pairs, toy_encoder, NegativeRules(n_negatives=5, relative_margin=None), corpus=corpus
    )
    assert [pair.negatives for pair in found] == [["a blue house"]] * 3


def test_a_partner_the_other_way_round_is_no_negative(toy_encoder: ToyEncoder) -> None:
    pairs = pairs_of(("old dog", "old cat"), ("old cat", "old dog"), ("x", "old horse"), ("y", "x"))
    found = HardNegatives(pairs, toy_encoder, NegativeRules(n_negatives=5, relative_margin=None))
    mined = {pair.anchor: set(pair.negatives) for pair in found}
    assert mined["old dog"] == mined["old cat"] == {"old horse", "x"}
    assert mined["x"] == {"old cat", "old dog"}  # y is paired with x


def test_partners_of_partners_are_left_out_where_that_is_asked_for(toy_encoder: ToyEncoder) -> None:
    pairs = pairs_of(("a", "b"), ("c", "B"), ("c", "d"), ("x", "y"))

    def mined(is_transitive: bool) -> list[set[str]]:
        rules = NegativeRules(5, relative_margin=None, is_transitive=is_transitive)
        return [set(pair.negatives) for pair in HardNegatives(pairs, toy_encoder, rules)]

    assert mined(False) == [{"d", "y"}, {"y"}, {"y"}, {"b", "d"}]
    assert mined(True) == [{"y"}, {"y"}, {"y"}, {"b", "d"}]


def test_an_anchor_with_many_positives_takes_a_block_of_its_own(
    monkeypatch: pytest.MonkeyPatch, toy_encoder: ToyEncoder
) -> None:
    texts = list(dict.fromkeys(sentences(80, seed=8, max_words=5)))
    pairs = pairs_of(*(("hub", text) for text in texts[:40]), *zip(texts[40:55], texts[55:70], strict=False))
    rules = NegativeRules(2, n_candidates=5, relative_margin=None)
    whole = [pair.negatives for pair in HardNegatives(pairs, toy_encoder, rules)]
    assert all(not set(negatives) & set(texts[:40]) for negatives in whole[:40])
    monkeypatch.setattr(module, "BLOCK_CANDIDATES", 60)
    found = HardNegatives(pairs, toy_encoder, rules)
    assert [pair.negatives for pair in found] == whole
    assert max(map(len, found._blocks())) == 10  # 5 candidates and one known each
    assert min(map(len, found._blocks())) == 1


words = st.lists(st.sampled_from(["a b", "a c", "a", "b", "c d", "a b c", "d"]), min_size=4, max_size=10)


@given(words, words, st.integers(1, 3), st.integers(0, 2), st.sampled_from([None, 0.0, 0.2]))
def test_negatives_are_those_of_brute_force(
    texts: list[str], corpus: list[str], n_negatives: int, skip_first: int, margin: float | None
) -> None:
    pairs = list(zip(texts[::2], texts[1::2], strict=False))
    rules = NegativeRules(n_negatives, skip_first, n_candidates=5, relative_margin=None, margin=margin)
    found = HardNegatives(pairs_of(*pairs), ToyEncoder(), rules, corpus=corpus)
    for pair in found:
        assert pair.negatives == by_brute_force(pair, pairs, corpus, rules)


def by_brute_force(
    pair: MinedPair, pairs: Sequence[tuple[str, str]], corpus: Sequence[str], rules: NegativeRules
) -> list[str]:
    pool = list(dict.fromkeys([*(positive for _, positive in pairs), *corpus]))
    partners = {text for both in pairs if pair.anchor in both for text in both} | {pair.anchor}

    def score(text: str) -> float:
        first, second = ToyEncoder().encode([pair.anchor]), ToyEncoder().encode([text])
        return float(pairwise(first, second)[0])

    ranked = sorted((text for text in pool if text not in partners), key=lambda text: -score(text))
    window = ranked[rules.skip_first : rules.skip_first + rules.n_candidates]
    limit = math.inf if rules.margin is None else np.float32(score(pair.positive)) - np.float32(rules.margin)
    return [text for text in window if score(text) <= limit][: rules.n_negatives]


def test_no_pairs_have_no_negatives(toy_encoder: ToyEncoder) -> None:
    for corpus in ([], ["a text"]):
        found = HardNegatives(ONE_PAIR[:0], toy_encoder, corpus=corpus)
        assert list(found) == []
        assert (found.report.pairs, found.report.negatives) == (0, 0)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch, toy_encoder: ToyEncoder) -> None:
    texts = sentences(120, seed=3, max_words=6)
    pairs = pairs_of(*zip(texts[::2], texts[1::2], strict=True))
    rules = NegativeRules(n_negatives=2, n_candidates=9)
    whole = [pair.negatives for pair in HardNegatives(pairs, toy_encoder, rules)]
    monkeypatch.setattr(module, "BLOCK_PAIRS", 7)
    assert [pair.negatives for pair in HardNegatives(pairs, toy_encoder, rules)] == whole
    assert any(whole)


def test_random_sampling_follows_from_the_seed_and_keeps_the_rules(toy_encoder: ToyEncoder) -> None:
    texts = sentences(200, seed=4, max_words=5)
    pairs = pairs_of(*zip(texts[::2], texts[1::2], strict=True))

    def mined(seed: int) -> list[list[str]]:
        rules = NegativeRules(2, n_candidates=20, relative_margin=None, sampling="random", seed=seed)
        return [pair.negatives for pair in HardNegatives(pairs, toy_encoder, rules)]

    assert mined(1) == mined(1) != mined(2)
    best = NegativeRules(20, n_candidates=20, relative_margin=None)
    allowed = [set(pair.negatives) for pair in HardNegatives(pairs, toy_encoder, best)]
    assert all(set(some) <= all_ for some, all_ in zip(mined(1), allowed, strict=True))


class Judge:
    """A cross-encoder that knows which texts are right, and counts what it reads."""

    def __init__(self, right: dict[str, float]) -> None:
        self.right, self.n_read = right, 0

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.n_read += len(pairs)
        return np.array([self.right.get(text, 0.0) for _, text in pairs], np.float32)


def test_a_cross_encoder_drops_what_it_scores_near_the_positive() -> None:
    judge = Judge({"positive": 0.9, "near": 0.85, "nearish": 0.79, "twin": 0.95})
    rules = NegativeRules(n_negatives=2, relative_margin=None, rerank_margin=0.1)
    found = HardNegatives(ONE_PAIR, ENCODER, rules, corpus=CORPUS, reranker=judge)
    (pair,) = found
    assert pair.negatives == ["nearish", "middle"]
    assert pair.negative_scores == pytest.approx([0.8, 0.5], abs=1e-6)
    assert found.report.dropped[module.TOO_NEAR_FOR_THE_RERANKER] == 2
    assert judge.n_read == 5  # the positive, and no candidate after the second that is good


def test_layouts_hold_the_same_negatives() -> None:
    pair = MinedPair(0, "a", "p", 0.9, ["m", "n"], [0.5, 0.25])
    assert list(NegativeRows("triplets", 2).of(pair)) == [["a", "p", "m"], ["a", "p", "n"]]
    assert list(NegativeRows("tuples", 2).of(pair)) == [["a", "p", "m", "n"]]
    assert list(NegativeRows("tuples", 3).of(pair)) == []  # a gap
    assert list(NegativeRows("labelled", 2).of(pair)) == [["a", "p", 1], ["a", "m", 0], ["a", "n", 0]]
    rows = NegativeRows("tuples", 2, has_scores=True)
    assert list(rows.of(pair)) == [["a", "p", "m", "n", 0.9, 0.5, 0.25]]
    assert list(rows.columns)[4:] == ["positive_similarity", "negative_1_similarity", "negative_2_similarity"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"n_negatives": 0}, "n_negatives is 0; expected at least 1"),
        ({"skip_first": -1}, "skip_first is -1"),
        ({"n_negatives": 5, "n_candidates": 4}, "as many candidates as negatives"),
        ({"margin": -0.1}, "margin is -0.1; expected 0 or more"),
        ({"seed": -1, "sampling": "random"}, "seed is -1; expected at least 0"),
        ({"sampling": "worst"}, "sampling is 'worst'; expected top or random"),
    ],
)
def test_rules_that_cannot_be_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        NegativeRules(**rules)

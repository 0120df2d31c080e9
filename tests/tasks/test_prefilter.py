"""Prefiltered pairs: nothing that is not the slow encoder's, and as much of it as was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences

from gemel.errors import InvalidInput
from gemel.similarity import pairs_above
from gemel.tasks.prefilter import Prefilter, PrefilteredPairs, measure_prefilter

TEXTS = list(dict.fromkeys(sentences(500, seed=1, max_words=7)))[:400]


class Blurred(ToyEncoder):
    """A toy encoder of other opinion: half of its numbers are lost."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = super().encode(texts)
        vectors[:, 8:] = 0
        return vectors


def found(blocks: object) -> dict[tuple[int, int], float]:
    return {
        (int(i), int(j)): float(score)
        for block in blocks  # type: ignore[attr-defined]
        for i, j, score in zip(block.first, block.second, block.scores, strict=True)
    }


def test_the_measured_share_of_pairs_is_found_with_their_own_scores(toy_encoder: ToyEncoder) -> None:
    wanted = found(pairs_above(toy_encoder.encode(TEXTS), 0.8))
    prefilter = measure_prefilter(Blurred(), toy_encoder, TEXTS, 0.8, recall=0.9)
    assert prefilter.n_measured == len(wanted) > 100
    search = PrefilteredPairs(Blurred(), toy_encoder, prefilter, TEXTS)
    kept = found(search)
    assert kept.items() <= wanted.items()
    assert list(kept) == sorted(kept)
    assert len(kept) / len(wanted) == pytest.approx(prefilter.recall)
    assert 0.9 <= prefilter.recall < 0.92
    assert (search.n_confirmed, search.n_texts) == (len(kept), 400)
    assert search.n_candidates > len(kept)


def test_a_recall_of_one_loses_nothing(toy_encoder: ToyEncoder) -> None:
    prefilter = measure_prefilter(Blurred(), toy_encoder, TEXTS, 0.8, recall=1)
    assert prefilter.recall == 1
    kept = found(PrefilteredPairs(Blurred(), toy_encoder, prefilter, TEXTS))
    assert kept == found(pairs_above(toy_encoder.encode(TEXTS), 0.8))


def test_only_texts_that_take_part_are_encoded_and_each_once() -> None:
    slow, texts = ToyEncoder(), ["red dog", "red dog", "piano", "cold street", "red dog house"]
    search = PrefilteredPairs(ToyEncoder(), slow, Prefilter(0.99, 0.7, 1.0, 0), texts)
    assert list(found(search)) == [(0, 1)]
    assert search.n_encoded == slow.n_encoded == 3  # the dogs and the dog house
    assert search.n_candidates == 3


def test_two_corpora_are_compared_with_each_other_only(toy_encoder: ToyEncoder) -> None:
    first, second = TEXTS[:150], TEXTS[150:]
    prefilter = measure_prefilter(Blurred(), toy_encoder, TEXTS, 0.8, recall=1)
    search = PrefilteredPairs(Blurred(), toy_encoder, prefilter, first, others=second)
    wanted = found(pairs_above(toy_encoder.encode(first), 0.8, others=toy_encoder.encode(second)))
    assert found(search) == wanted
    assert wanted
    assert search.n_texts == 400


def test_repeats_of_a_text_are_not_what_the_recall_is_measured_on(toy_encoder: ToyEncoder) -> None:
    # 200 copies are 19,900 pairs that every encoder finds, beside which all others hardly count.
    wanted = found(pairs_above(toy_encoder.encode(TEXTS), 0.8))
    repeated = [*TEXTS, *TEXTS[:1] * 200]
    prefilter = measure_prefilter(Blurred(), toy_encoder, repeated, 0.8, recall=0.9)
    assert prefilter == measure_prefilter(Blurred(), toy_encoder, TEXTS, 0.8, recall=0.9)
    kept = found(PrefilteredPairs(Blurred(), toy_encoder, prefilter, repeated))
    assert len(kept.keys() & wanted.keys()) >= 0.9 * len(wanted) > 90


def test_two_corpora_are_measured_by_the_pairs_across_them(toy_encoder: ToyEncoder) -> None:
    first, second = TEXTS[:150], TEXTS[100:]  # 50 texts are in both
    wanted = found(pairs_above(toy_encoder.encode(first), 0.8, others=toy_encoder.encode(second)))
    near = {pair for pair in wanted if first[pair[0]] != second[pair[1]]}
    assert len(near) == len(wanted) - 50 > 50
    prefilter = measure_prefilter(Blurred(), toy_encoder, [*first, *first], 0.8, others=second, recall=0.9)
    assert prefilter.n_measured == len(near)
    kept = found(PrefilteredPairs(Blurred(), toy_encoder, prefilter, first, others=second))
    assert len(kept.keys() & near) / len(near) == pytest.approx(prefilter.recall)


@pytest.mark.parametrize("n_first", [10, 300, 390])
def test_a_sample_of_two_corpora_is_as_large_as_that_of_one(n_first: int) -> None:
    slow, texts = ToyEncoder(), [f"red dog {row}" for row in range(400)]
    measure_prefilter(Blurred(), slow, texts[:n_first], -1, others=texts[n_first:], n_sample=100)
    assert slow.n_encoded == 100


def test_a_sample_is_measured_where_texts_are_many(toy_encoder: ToyEncoder) -> None:
    prefilter = measure_prefilter(Blurred(), toy_encoder, TEXTS, 0.6, n_sample=200)
    assert toy_encoder.n_encoded == 200
    whole = measure_prefilter(Blurred(), toy_encoder, TEXTS, 0.6)
    assert prefilter.n_measured < whole.n_measured / 2
    assert "kept" in whole.describe()


@pytest.mark.parametrize(
    ("texts", "at_least", "recall", "said"),
    [
        (TEXTS[:20], 0.99, 0.9, "20 different texts have .* expected 50 or more to measure on"),
        ([], 0.5, 0.9, "0 different texts have 0 pairs"),
        (TEXTS, 0.5, 0.0, r"recall is 0\.0; expected a share"),
        (TEXTS, float("nan"), 0.9, "at_least is nan"),
    ],
)
def test_what_cannot_be_measured_is_told(
    texts: list[str], at_least: float, recall: float, said: str, toy_encoder: ToyEncoder
) -> None:
    with pytest.raises(InvalidInput, match=said):
        measure_prefilter(Blurred(), toy_encoder, texts, at_least, recall=recall)

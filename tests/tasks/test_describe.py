"""What clusters are about: key words worked by hand, typical texts, words of many scripts."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from gemel.errors import InvalidInput
from gemel.tasks.clustering import Clustering, clustering_of
from gemel.tasks.describe import describe, key_words
from gemel.tasks.words import are_forms_of_one, split_words, without_particles


def clustered(groups: list[int], angles: list[float]) -> Clustering:
    turned = np.radians(angles)
    rows = np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)
    return clustering_of(rows, np.array(groups))


def test_key_words_are_frequent_in_their_class_and_rare_elsewhere() -> None:
    counts = [Counter(bank=4, river=3, the=6), Counter(bank=4, money=3, the=8)]
    # A = 28 / 2 = 14 words a class. First class: river 3 log(1 + 14/3) = 5.2, bank 4 log(1 + 14/8) = 4.0,
    # the 6 log(1 + 14/14) = 4.2; in the second, the 8 log 2 = 5.5.
    assert 3 * math.log(1 + 14 / 3) > 6 * math.log(2) > 4 * math.log(1 + 14 / 8)
    # The first class has 13 of 28 words, and less than that share of "the"; the second less of "bank".
    assert key_words(counts, n_words=3) == [("river", "bank"), ("the", "money")]
    assert key_words(counts, n_words=1) == [("river",), ("the",)]
    assert key_words(counts, n_words=3, stop_words={"the"}) == [("river", "bank"), ("money",)]


def test_words_of_one_score_come_by_the_alphabet() -> None:
    assert key_words([Counter(zebra=2, apple=2, mango=2)], n_words=2) == [("apple", "mango")]


def test_of_several_forms_of_a_word_the_best_is_named() -> None:
    counts = [Counter(refund=5, refunded=4, money=3), Counter(card=12)]
    assert key_words(counts, n_words=2)[0] == ("refund", "money")
    assert are_forms_of_one("currency", "currencies")
    assert not are_forms_of_one("company", "computer")
    assert not are_forms_of_one("at", "atm")


def test_clusters_are_described_by_words_and_by_the_texts_nearest_to_their_centre() -> None:
    texts = ["a dog barks", "the dog sleeps", "a dog barks ", "my cat sleeps", "one cat", "rain"]
    found = describe(clustered([0, 0, 0, 1, 1, -1], [1, 10, 0, 90, 95, 200]), texts, n_typical=2)
    assert [(each.cluster, each.size) for each in found] == [(0, 3), (1, 2)]
    assert found[0].key_words == ("dog", "barks")
    assert found[1].key_words[0] == "cat"
    assert found[0].typical == (0, 1)  # row 2 says what row 0 says
    assert sorted(found[1].typical) == [3, 4]


def test_no_clusters_need_no_words() -> None:
    assert describe(clustered([-1, -1], [0, 90]), ["a", "b"]) == []


def test_texts_of_another_number_are_refused() -> None:
    with pytest.raises(InvalidInput, match="1 texts were given for 2 clustered rows"):
        describe(clustered([0, 0], [0, 1]), ["a"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The card's 2nd PIN, 4 digits_long!", ["the", "card", "2nd", "pin", "digits", "long"]),
        ("Straße naïve Ünïcode", ["straße", "naïve", "ünïcode"]),
        ("한 소녀가 머리를 빗고 있다.", ["소녀가", "머리를", "빗고", "있다"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("我喜欢茶, OK", ["我喜", "喜欢", "欢茶", "ok"]),
        ("カード123番", ["カー", "ード"]),
        ("cafe\u0301", ["cafe\u0301"]),
        ("", []),
    ],
)
def test_words_are_found_in_every_script(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_korean_nouns_lose_their_particles_where_that_is_sure() -> None:
    counts = [
        Counter({"소녀가": 2, "소녀는": 1, "고양이": 3}),
        Counter({"소녀": 1, "고양이가": 1, "빗고": 1}),
    ]
    assert without_particles(counts) == [
        Counter({"소녀": 3, "고양이": 3}),
        Counter({"소녀": 1, "고양이": 1, "빗고": 1}),
    ]


def test_korean_texts_have_korean_key_words() -> None:
    texts = ["고양이가 소파에서 잔다", "고양이는 잔다", "비행기가 이륙한다", "비행기를 본다"]
    found = describe(clustered([0, 0, 1, 1], [0, 5, 90, 95]), texts)
    assert [each.key_words[0] for each in found] == ["고양이", "비행기"]

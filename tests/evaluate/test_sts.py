"""The paper's protocol on sets made by hand: one list a set, every sentence encoded once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences

from gemel.data.examples import Examples, read_examples
from gemel.errors import InvalidInput
from gemel.evaluate.scores import average_of
from gemel.evaluate.sts import (
    STS_SETS,
    StsData,
    StsSet,
    evaluate_sts,
    read_sts,
    validate_on_sts,
)

MEASURES = ("cosine", "dot", "euclidean", "manhattan")


class TableEncoder:
    """Knows a few sentences by heart."""

    fingerprint = "by-heart"
    engine = "memory"

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors, self.seen = vectors, list[str]()
        self.dim = len(next(iter(vectors.values())))

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        return np.array([self.vectors[text] for text in texts], np.float32)


def pairs_of(rows: list[tuple[str, str, float]]) -> Examples:
    first, second, scores = zip(*rows, strict=True)
    return Examples(
        "scored pairs", {"first": list(first), "second": list(second)}, np.array(scores, np.float32)
    )


# Cosines with x: 1, 0.6, 0, -1; Manhattan distances 0, 1.2, 1.9 and 2; but the vector of `far` is long.
BY_HEART = {"x": [1, 0], "near": [0.6, 0.8], "right": [0, 0.9], "against": [-1, 0], "far": [30, 40]}
PAIRS = pairs_of([("x", "x", 1.0), ("x", "near", 0.7), ("x", "right", 0.4), ("x", "against", 0.0)])


@pytest.mark.parametrize("measure", MEASURES)
def test_a_set_in_the_order_of_its_similarities_scores_1(measure: str) -> None:
    (scores,) = evaluate_sts(TableEncoder(BY_HEART), [StsData("hand", PAIRS)])
    assert scores.metrics[f"spearman_{measure}"] == pytest.approx(1)
    assert 0.9 < scores.metrics[f"pearson_{measure}"] <= 1


def test_each_measure_is_taken_and_a_distance_counts_as_its_negative() -> None:
    pairs = pairs_of([("x", "x", 1.0), ("x", "far", 0.7), ("x", "against", 0.0)])
    (scores,) = evaluate_sts(TableEncoder(BY_HEART), [StsData("hand", pairs)])
    ranks = {measure: round(scores.metrics[f"spearman_{measure}"], 6) for measure in MEASURES}
    # dot: far (30) before x (1) before against (-1); distances: far is farther off than against.
    assert ranks == {"cosine": 1, "dot": 0.5, "euclidean": 0.5, "manhattan": 0.5}


def test_the_scores_say_all_that_a_comparison_needs() -> None:
    (scores,) = evaluate_sts(TableEncoder(BY_HEART), [StsData("hand", PAIRS, "in words", "abc")])
    assert scores.score == scores.metrics["spearman_cosine"]
    assert scores.to_dict() == {
        "name": "hand",
        "metrics": dict(scores.metrics),
        "primary": "spearman_cosine",
        "protocol": "in words",
        "n_examples": 4,
        "data_hash": "abc",
        "fingerprint": "by-heart",
        "engine": "memory",
        "interval": None,
    }


def test_every_sentence_is_encoded_once_however_many_sets_repeat_it() -> None:
    encoder = TableEncoder(BY_HEART)
    other = pairs_of([("near", "x", 0.9), ("near", "right", 0.8), ("x", "against", 0.1)])
    evaluate_sts(encoder, [StsData("one", PAIRS), StsData("two", other)])
    assert sorted(encoder.seen) == ["against", "near", "right", "x"]


def test_a_random_encoder_scores_near_zero() -> None:
    texts = sentences(4_000, max_words=30)
    random = np.random.default_rng(0)
    vectors = dict(zip(texts, random.standard_normal((4_000, 8)).tolist(), strict=True))
    gold = random.random(2_000)
    pairs = pairs_of(list(zip(texts[::2], texts[1::2], gold.tolist(), strict=True)))
    (scores,) = evaluate_sts(TableEncoder(vectors), [StsData("noise", pairs)])
    assert all(abs(value) < 0.06 for value in scores.metrics.values())


def test_an_encoder_that_tells_nothing_apart_is_refused_in_words() -> None:
    with pytest.raises(
        InvalidInput, match=r"hand: every pair has the same cosine similarity, 1; the encoder"
    ):
        evaluate_sts(TableEncoder({text: [1.0, 0.0] for text in BY_HEART}), [StsData("hand", PAIRS)])


def test_pairs_without_scores_are_no_set() -> None:
    with pytest.raises(InvalidInput, match="hand holds pairs; expected scored pairs"):
        StsData("hand", Examples("pairs", {"first": ["a"], "second": ["b"]}))


def test_validation_gives_the_spearman_of_cosines(toy_encoder: ToyEncoder) -> None:
    pairs = pairs_of(
        [("a dog runs", "a dog runs", 1.0), ("a dog runs", "a dog sleeps", 0.6), ("a", "b", 0.0)]
    )
    validate = validate_on_sts(pairs)
    (scores,) = evaluate_sts(toy_encoder, [StsData("hand", pairs)])
    assert validate(toy_encoder) == scores.score
    assert toy_encoder.n_encoded == 2 * 4


def test_an_average_counts_every_set_the_same() -> None:
    reverse = pairs_of([("x", "x", 0.0), ("x", "against", 1.0)])
    scores = evaluate_sts(TableEncoder(BY_HEART), [StsData("up", PAIRS), StsData("down", reverse)])
    average = average_of(scores)
    assert (average.name, average.n_examples) == ("average", 6)
    assert average.score == pytest.approx(0)
    assert average.protocol == "mean of up, down, each counting the same"
    with pytest.raises(InvalidInput, match="of several encoders"):
        average_of([scores[0], replace(scores[1], fingerprint="other")])


# Files -----------------------------------------------------------------------------------------------


def write_set(folder: Path, each: StsSet, rows: list[str]) -> Path:
    path = folder / each.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("sentence1\tsentence2\tscore\tfile\n" + "".join(f"{row}\n" for row in rows), "utf-8")
    return path


SMALL = StsSet("STS99", "sts99/test.tsv", 4, "all")
ROWS = ["x\tx\t5\tnews", "x\tnear\t4\tnews", "x\tright\t1\tforum", "x\tagainst\t0\tforum"]


def test_the_parts_of_a_year_are_one_list_and_not_a_mean(tmp_path: Path) -> None:
    # Within each part the order is right; between them it is not.
    rows = ["x\tx\t2\tnews", "x\tnear\t1\tnews", "x\tright\t5\tforum", "x\tagainst\t4\tforum"]
    write_set(tmp_path, SMALL, rows)
    (scores,) = evaluate_sts(TableEncoder(BY_HEART), read_sts(tmp_path, [SMALL]))
    assert scores.score == pytest.approx(-0.6)


def test_a_set_is_read_with_its_hash_and_scores_from_0_to_1(tmp_path: Path) -> None:
    path = write_set(tmp_path, SMALL, ROWS)
    (data,) = read_sts(tmp_path, [SMALL])
    assert (data.name, data.protocol) == ("STS99", "all")
    assert data.data_hash == hashlib.sha256(path.read_bytes()).hexdigest()
    assert data.pairs.labels is not None
    assert data.pairs.labels.tolist() == pytest.approx([1, 0.8, 0.2, 0])


def test_a_set_that_is_not_there_is_named_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"STS12 was looked for at .*sts12/test\.tsv and is not there; give"
    ):
        read_sts(tmp_path)


def test_a_set_of_another_size_is_refused(tmp_path: Path) -> None:
    write_set(tmp_path, SMALL, ROWS[:3])
    with pytest.raises(InvalidInput, match=r"test\.tsv holds 3 pairs; expected the 4 of STS99"):
        read_sts(tmp_path, [SMALL])


def test_the_seven_real_sets_are_whole(real_data: Path) -> None:
    sets = read_sts(real_data)
    assert [each.name for each in sets] == [each.name for each in STS_SETS]
    assert sum(len(each.pairs) for each in sets) == 18_850
    assert all(each.pairs.labels.min() == 0 and each.pairs.labels.max() == 1 for each in sets)


def test_the_toy_encoder_sees_that_shared_words_are_similar(real_data: Path, toy_encoder: ToyEncoder) -> None:
    validate = validate_on_sts(read_examples(real_data / "stsb" / "dev.tsv"))
    assert 0.3 < validate(toy_encoder) < 0.5

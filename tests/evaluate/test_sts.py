"""The paper's protocol on sets made by hand: one list a set, every sentence encoded once."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from by_heart import TableEncoder
from stand_ins import ToyEncoder, sentences

from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.scores import average_of
from gemel.evaluate.sts import (
    STS_GROUPS,
    STS_SETS,
    StsData,
    StsSet,
    evaluate_sts,
    read_sts,
    validate_on_sts,
)

MEASURES = ("cosine", "dot", "euclidean", "manhattan")


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
        "protocol": 'Spearman of cosines with gold scores, over all pairs as one list ("all"); in words',
        "n_examples": 4,
        "data_hash": "abc",
        "fingerprint": "by-heart",
        "engine": "memory",
        "interval": (1.0, 1.0),
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


def test_a_training_run_goes_on_when_its_encoder_has_collapsed() -> None:
    validate = validate_on_sts(PAIRS)
    assert validate(TableEncoder({text: [1.0, 0.0] for text in BY_HEART})) == 0.0
    assert validate(TableEncoder({text: [0.0, 0.0] for text in BY_HEART})) == 0.0
    with pytest.raises(InvalidInput, match="NaN"):  # weights that are lost do not come back
        validate(TableEncoder({text: [np.nan, 0.0] for text in BY_HEART}))


def test_validation_on_pairs_that_all_score_the_same_is_refused_before_training() -> None:
    with pytest.raises(InvalidInput, match="validation was given 2 pairs with one score"):
        validate_on_sts(pairs_of([("x", "near", 0.5), ("x", "right", 0.5)]))


def test_pairs_without_scores_are_no_set() -> None:
    with pytest.raises(InvalidInput, match="hand holds pairs; expected scored pairs"):
        StsData("hand", Examples("pairs", {"first": ["a"], "second": ["b"]}))
    with pytest.raises(InvalidInput, match="hand holds no pairs; expected two or more"):
        StsData("hand", PAIRS[:0])
    with pytest.raises(InvalidInput, match="hand names the sub-file of 1 of 4 pairs; expected one a pair"):
        StsData("hand", PAIRS, parts=["news"])


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


def test_sub_files_count_the_same_or_by_their_pairs(tmp_path: Path) -> None:
    # forum: x, near, right in order: 1. news: near before x, -1.
    rows = [
        *("x\tx\t5\tforum", "x\tnear\t4\tforum", "x\tright\t1\tforum"),
        *("x\tx\t2\tnews", "x\tnear\t3\tnews"),
    ]
    each = replace(SMALL, n_pairs=5, has_parts=True)
    write_set(tmp_path, each, rows)
    data, encoder = read_sts(tmp_path, [each]), TableEncoder(BY_HEART)
    found = {name: evaluate_sts(encoder, data, aggregation=name)[0] for name in ("all", "mean", "wmean")}
    assert found["mean"].score == pytest.approx(0)
    assert found["wmean"].score == pytest.approx((3 * 1 + 2 * -1) / 5)
    # gold 5 4 1 2 3 against cosines 1 .6 0 1 .6: ranks 5 4 1 2 3 and 4.5 2.5 1 4.5 2.5
    assert found["all"].score == pytest.approx(5 / 90**0.5)
    for name, scores in found.items():
        assert f'("{name}")' in scores.protocol
    assert "2 sub-files, and their mean weighted by pairs" in found["wmean"].protocol


def test_sets_without_sub_files_are_one_list_by_every_aggregation() -> None:
    for name in ("all", "mean", "wmean"):
        (scores,) = evaluate_sts(TableEncoder(BY_HEART), [StsData("hand", PAIRS)], aggregation=name)
        assert '("all")' in scores.protocol
        assert scores.score == pytest.approx(1)


def test_sub_files_that_the_file_does_not_tell_apart_have_no_mean(tmp_path: Path) -> None:
    each = replace(SMALL, has_parts=True)
    path = write_set(tmp_path, each, ROWS)
    path.write_text(path.read_text("utf-8").replace("score\tfile", "score\tgenre"), "utf-8")
    data, encoder = read_sts(tmp_path, [each]), TableEncoder(BY_HEART)
    assert evaluate_sts(encoder, data)[0].score == pytest.approx(1)
    with pytest.raises(InvalidInput, match="STS99 does not tell its sub-files apart; expected a column"):
        evaluate_sts(encoder, data, aggregation="mean")
    with pytest.raises(InvalidInput, match="aggregation is 'median'; choose from all, mean, wmean"):
        evaluate_sts(encoder, data, aggregation="median")


def test_a_set_may_be_several_files_or_some_rows_of_one(tmp_path: Path) -> None:
    write_set(tmp_path, SMALL, ROWS[:2])
    (tmp_path / "sts99" / "dev.tsv").write_text(
        "score\tsentence1\tsentence2\n1\tx\tright\n0\tx\tagainst\n", "utf-8"
    )
    both = replace(SMALL, more_files=("sts99/dev.tsv",))
    (data,) = read_sts(tmp_path, [both])
    assert data.pairs.columns["second"] == ["x", "near", "right", "against"]
    (alone,) = read_sts(tmp_path, [replace(SMALL, n_pairs=2)])
    assert data.data_hash != alone.data_hash
    write_set(tmp_path, SMALL, ROWS)
    (news,) = read_sts(tmp_path, [replace(SMALL, n_pairs=2, where={"file": "news"})])
    assert news.pairs.columns["second"] == ["x", "near"]


def test_groups_have_names_and_do_without_what_is_optional(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'glue' is unknown; choose from sts, sts-mteb, sts-korean"):
        read_sts(tmp_path, "glue")
    with pytest.raises(InvalidInput, match="KorSTS was looked for"):
        read_sts(tmp_path, "sts-korean")
    assert read_sts(tmp_path, [replace(SMALL, is_optional=True)]) == []
    write_set(tmp_path, SMALL, ROWS)
    assert len(read_sts(tmp_path, [replace(SMALL, is_optional=True)])) == 1


def test_an_optional_set_is_found_packed_too(tmp_path: Path) -> None:
    path = write_set(tmp_path, SMALL, ROWS)
    path.with_name("test.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    (data,) = read_sts(tmp_path, [replace(SMALL, is_optional=True)])
    assert len(data.pairs) == 4


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


def test_the_real_sets_tell_their_sub_files(real_data: Path) -> None:
    sets = read_sts(real_data, STS_GROUPS["sts"][:5])
    assert [len(set(each.parts or ())) for each in sets] == [5, 3, 6, 5, 5]


def test_the_other_groups_are_whole(real_data: Path) -> None:
    (korean, *_), translated = read_sts(real_data, "sts-korean"), read_sts(real_data, "sts-multilingual")
    assert (korean.name, len(korean.pairs)) == ("KorSTS", 1_379)
    assert [each.name for each in translated] == [
        *(f"STSb-{code}" for code in ("de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh")),
        "KorSTS",
    ]
    (sick,) = read_sts(real_data, STS_GROUPS["sts-mteb"][-1:])
    assert (sick.name, len(sick.pairs)) == ("SICK-R (all)", 9_927)


def test_random_vectors_are_at_chance_on_every_real_set(real_data: Path) -> None:
    sets = read_sts(real_data)
    texts = {text for each in sets for column in each.pairs.columns.values() for text in column}
    random = np.random.default_rng(0)
    encoder = TableEncoder({text: random.standard_normal(16).tolist() for text in sorted(texts)})
    for scores in evaluate_sts(encoder, sets, n_resamples=0):
        assert abs(scores.score) < 0.12, scores.name  # pairs of equal sentences are few, but there
        assert scores.interval is None

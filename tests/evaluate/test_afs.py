"""Arguments on a few topics: folds, topics, and who is trained on what."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from by_heart import TableEncoder
from scipy.stats import pearsonr, spearmanr
from stand_ins import ToyEncoder, sentences

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.afs import AfsData, cross_validate_afs, evaluate_afs, read_afs
from gemel.similarity import pairwise

# Cosines with x: 1, 0.6, 0, -1.
PLACES = {"x": [1, 0], "near": [0.6, 0.8], "right": [0, 0.9], "against": [-1, 0.0]}
SECONDS = ["x", "near", "right", "against"]


def arguments(scores: list[float], topics: list[str]) -> AfsData:
    columns = {"first": ["x"] * len(scores), "second": (SECONDS * len(scores))[: len(scores)]}
    return AfsData(Examples("scored pairs", columns, np.array(scores, np.float32)), topics)


TWO_TOPICS = arguments([1, 0.7, 0.4, 0, 0, 0.4, 0.7, 1], ["guns"] * 4 + ["tax"] * 4)


def test_topics_are_measured_one_by_one_and_averaged() -> None:
    encoder = TableEncoder(PLACES)
    scores = evaluate_afs(encoder, TWO_TOPICS)
    assert scores.metrics["spearman_cosine_guns"] == pytest.approx(1)
    assert scores.metrics["spearman_cosine_tax"] == pytest.approx(-1)
    assert scores.score == pytest.approx(0)
    cosines, gold = [1, 0.6, 0, -1], [1, 0.7, 0.4, 0]
    assert scores.metrics["pearson_cosine_guns"] == pytest.approx(pearsonr(cosines, gold).statistic, abs=1e-6)
    assert "each topic by itself" in scores.protocol
    assert sorted(encoder.seen) == sorted(PLACES)


def random_arguments(n: int = 60) -> AfsData:
    texts = sentences(2 * n)
    random = np.random.default_rng(0)
    columns = {"first": texts[:n], "second": texts[n:]}
    topics = random.choice(["death", "guns", "marriage"], n).tolist()
    return AfsData(Examples("scored pairs", columns, random.random(n).astype(np.float32)), topics)


def test_ten_folds_hold_every_pair_once_and_never_train_on_what_they_measure(
    toy_encoder: ToyEncoder,
) -> None:
    data, trained = random_arguments(), list[Examples]()

    def fit(training: Examples) -> ToyEncoder:
        trained.append(training)
        return toy_encoder

    scores = cross_validate_afs(fit, data)
    assert [len(each) for each in trained] == [54] * 10
    everything = set(data.pairs.columns["first"])
    left_out = [everything - set(each.columns["first"]) for each in trained]
    assert sum(map(len, left_out)) == 60
    assert set().union(*left_out) == everything
    folds = [value for name, value in scores.metrics.items() if name.startswith("spearman_cosine_fold")]
    assert len(folds) == 10
    assert scores.score == pytest.approx(np.mean(folds))


def test_cross_topic_trains_on_all_topics_but_one(toy_encoder: ToyEncoder) -> None:
    data, trained = random_arguments(), list[Examples]()
    topic_of = dict(zip(data.pairs.columns["first"], data.topics, strict=True))

    def fit(training: Examples) -> ToyEncoder:
        trained.append(training)
        return toy_encoder

    scores = cross_validate_afs(fit, data, protocol="cross-topic")
    seen = [{topic_of[text] for text in each.columns["first"]} for each in trained]
    assert seen == [{"guns", "marriage"}, {"death", "marriage"}, {"death", "guns"}]
    assert scores.metrics == pytest.approx(dict(evaluate_afs(toy_encoder, data).metrics))
    assert "trained on the other parts" in scores.protocol


def test_folds_are_those_of_their_seed(toy_encoder: ToyEncoder) -> None:
    data = random_arguments()
    first = evaluate_afs(toy_encoder, data, protocol="ten folds", seed=1)
    assert evaluate_afs(toy_encoder, data, protocol="ten folds", seed=1).metrics == first.metrics
    assert evaluate_afs(toy_encoder, data, protocol="ten folds", seed=2).metrics != first.metrics


def test_one_trained_encoder_is_in_memory_at_a_time() -> None:
    alive: list[weakref.ref[TableEncoder]] = []

    def fit(training: Examples) -> TableEncoder:
        gc.collect()
        assert not [each for each in alive if each() is not None]
        encoder = TableEncoder(PLACES)
        alive.append(weakref.ref(encoder))
        return encoder

    cross_validate_afs(fit, TWO_TOPICS, protocol="cross-topic")
    assert len(alive) == 2


def test_encoders_of_several_parts_have_a_fingerprint_together() -> None:
    def fit(training: Examples) -> TableEncoder:
        encoder = TableEncoder(PLACES)
        encoder.fingerprint = f"trained on {len(training)}"
        return encoder

    scores = cross_validate_afs(fit, TWO_TOPICS, protocol="cross-topic")
    assert len(scores.fingerprint) == 64


def test_a_file_is_read_with_its_topics(tmp_path: Path) -> None:
    path = tmp_path / "afs.tsv"
    path.write_text("sentence1\tsentence2\tscore\ttopic\nx\tnear\t4.5\tguns\nx\tright\t0\ttax\n", "utf-8")
    data = read_afs(path)
    assert (data.topics, data.pairs.labels.tolist()) == (["guns", "tax"], pytest.approx([0.9, 0]))
    assert len(data.data_hash) == 64
    with pytest.raises(InvalidInput, match="has no column 'theme'; name the column of the topics"):
        read_afs(path, topic="theme")


@pytest.mark.parametrize(
    ("data", "protocol", "message"),
    [
        (TWO_TOPICS, "ten folds", "8 pairs were given; expected at least 2 for each of 10 folds"),
        (TWO_TOPICS, "leave one out", "protocol is 'leave one out'; expected one of ten folds, cross-topic"),
        (arguments([0, 1], ["tax", "tax"]), "cross-topic", "have the topic tax; expected two topics or more"),
    ],
)
def test_what_cannot_be_split_is_refused(data: AfsData, protocol: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        evaluate_afs(TableEncoder(PLACES), data, protocol=protocol)


def test_other_examples_and_missing_topics_are_refused() -> None:
    with pytest.raises(InvalidInput, match="given as pairs; expected scored pairs"):
        AfsData(Examples("pairs", {"first": ["x"], "second": ["near"]}), ["tax"])
    with pytest.raises(InvalidInput, match="2 pairs were given 1 topics; expected one a pair"):
        arguments([0, 1], ["tax"])


def test_real_arguments_that_share_words_are_more_similar(real_data: Path, toy_encoder: ToyEncoder) -> None:
    # The scores of 0 to 5 are not to be had here; similar or not stands in for them.
    path = real_data / "afs_binary" / "all.tsv"
    whole = read_afs(path, columns={"score": "similar"}, score_range=(0, 1))
    assert len(whole.pairs) == 6_002
    data = AfsData(whole.pairs[::8], whole.topics[::8])
    scores = evaluate_afs(toy_encoder, data)
    assert 0.1 < scores.score < 0.5
    rows = [row for row, topic in enumerate(data.topics) if topic == "gun_control"]
    part = data.pairs.take(rows)
    cosines = pairwise(*(toy_encoder.encode(column) for column in part.columns.values()))
    expected = spearmanr(cosines, part.labels).statistic
    assert scores.metrics["spearman_cosine_gun_control"] == pytest.approx(expected, abs=1e-9)

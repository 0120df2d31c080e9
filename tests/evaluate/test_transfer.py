"""SentEval's protocols beside the referee that scikit-learn makes of them, and what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_scripts import load_benchmark
from stand_ins import ToyEncoder

from gemel.data.examples import Examples
from gemel.data.labelled import LabelledTexts
from gemel.errors import InvalidInput
from gemel.evaluate.scores import average_of
from gemel.evaluate.transfer import (
    SST5,
    TRANSFER_TASKS,
    TransferData,
    TransferTask,
    count_fits,
    evaluate_transfer,
    read_transfer,
)

# Its referee knows SentEval's procedure and scikit-learn, and nothing of our solver.
AGREEMENT = load_benchmark("probe_agreement")
DIM = 10
SIZES = {
    "rings": {"all": 150},
    "folds": {"train": 150, "test": 120},
    "dev": {"train": 150, "dev": 80, "test": 120},
}


class RandomEncoder:
    """A vector for each text, drawn by a seed that is its hash."""

    dim = DIM
    fingerprint = "random"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts]
        return np.array([np.random.default_rng(seed).standard_normal(DIM) for seed in seeds], np.float32)


def made_labels(features: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes that a linear classifier finds, mostly."""
    generator = np.random.default_rng(3)
    logits = 1.5 * features @ generator.standard_normal((features.shape[1], n_classes))
    return (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)


def made_task(sizes: Mapping[str, int], n_classes: int = 2) -> TransferData:
    names = tuple(f"class {number}" for number in range(n_classes))
    splits = {}
    for split, size in sizes.items():
        texts = [f"{'very ' * (row * 7 % 5)}{split} {row}" for row in range(size)]
        splits[split] = LabelledTexts(texts, made_labels(RandomEncoder().encode(texts), n_classes), names)
    return TransferData("made", splits)


def made_pairs(sizes: Mapping[str, int]) -> TransferData:
    splits = {}
    for split, size in sizes.items():
        first = [f"{'very ' * (row * 7 % 3)}{split} {row}" for row in range(size)]
        second = [f"{'very ' * (row * 5 % 4)}{split} other {row}" for row in range(size)]
        u, v = RandomEncoder().encode(first), RandomEncoder().encode(second)
        labels = made_labels(np.hstack([np.abs(u - v), u * v]), 2)
        splits[split] = Examples("classified pairs", {"first": first, "second": second}, labels, ("0", "1"))
    return TransferData("made pairs", splits)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("protocol", SIZES)
def test_figures_are_those_of_scikit_learn_on_the_same_folds(protocol: str, n_classes: int) -> None:
    data = made_task(SIZES[protocol], n_classes)
    (scores,) = evaluate_transfer(RandomEncoder(), [data], n_folds=3)
    theirs = AGREEMENT.referee(data, RandomEncoder(), 3, AGREEMENT.converged)
    assert {name: scores.metrics[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)
    assert theirs["accuracy"] > 0.65
    assert scores.score == scores.metrics["accuracy"]


def test_pairs_have_the_differences_and_the_products_as_features_and_an_f1() -> None:
    data = made_pairs(SIZES["folds"])
    (scores,) = evaluate_transfer(RandomEncoder(), [data], n_folds=3)
    theirs = AGREEMENT.referee(data, RandomEncoder(), 3, AGREEMENT.converged)
    assert set(theirs) == {"accuracy", "dev_accuracy", "f1"}
    assert {name: scores.metrics[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)


def test_every_distinct_text_is_encoded_once() -> None:
    first, second = made_task(SIZES["dev"]), replace(made_task(SIZES["folds"]), name="again")
    encoder = RandomEncoder()
    evaluate_transfer(encoder, [first, second], n_folds=3)
    assert len(encoder.seen) == len(set(encoder.seen)) == 150 + 80 + 120


def test_the_order_of_classes_and_rows_of_one_length_is_all_that_folds_depend_on() -> None:
    data = made_task({"all": 150})
    part = data.splits["all"]
    by_length = sorted(range(150), key=lambda row: len(part.texts[row].split()))
    (scores,) = evaluate_transfer(RandomEncoder(), [data], n_folds=3)
    (again,) = evaluate_transfer(
        RandomEncoder(), [replace(data, splits={"all": part.take(by_length)})], n_folds=3
    )
    assert again.metrics == scores.metrics


@pytest.mark.parametrize("protocol", SIZES)
def test_shuffled_labels_score_at_chance(protocol: str) -> None:
    data = made_task({split: 4 * size for split, size in SIZES[protocol].items()})
    (given,) = evaluate_transfer(RandomEncoder(), [data], n_folds=3)
    (control,) = evaluate_transfer(RandomEncoder(), [data], n_folds=3, labels="shuffled")
    deviation = 0.5 / np.sqrt(control.n_examples)
    assert given.score > control.metrics["majority"] + 6 * deviation
    assert abs(control.score - 0.5) < 4 * deviation
    assert control.name == "made, shuffled labels"
    assert control.protocol.startswith("a control, labels shuffled")


def test_scores_say_how_they_came_about() -> None:
    data = TransferData("made", made_task(SIZES["rings"]).splits, note="a note", data_hash="abc")
    (scores,) = evaluate_transfer(RandomEncoder(), [data], n_folds=3)
    assert (scores.name, scores.primary, scores.n_examples) == ("made", "accuracy", 150)
    assert (scores.data_hash, scores.fingerprint, scores.engine) == ("abc", "random", "RandomEncoder")
    assert scores.protocol.startswith("3 outer folds")
    assert scores.protocol.endswith("; a note")
    assert "not its default of Adam" in scores.protocol
    assert set(scores.metrics) == {
        *("accuracy", "accuracy_std", "dev_accuracy", "majority", "log2_cost", "log2_cost_std")
    }
    assert -2 <= scores.metrics["log2_cost"] <= 3
    assert scores.interval is not None
    assert scores.interval[0] < scores.score < scores.interval[1]


def test_the_interval_of_100_coin_tosses_is_a_tenth_to_both_sides() -> None:
    labels = np.arange(400) % 2
    texts = [f"text {row}" for row in range(400)]
    names = ("heads", "tails")
    parts = {
        "train": LabelledTexts(texts[:300], labels[:300], names),
        "test": LabelledTexts(texts[300:], labels[300:], names),
    }
    (scores,) = evaluate_transfer(RandomEncoder(), [TransferData("coins", parts)], n_folds=3)
    assert scores.interval is not None
    half = 1.96 * np.sqrt(scores.score * (1 - scores.score) / 100)
    assert scores.interval == pytest.approx((scores.score - half, scores.score + half), abs=0.015)


def test_the_average_has_the_metrics_that_all_tasks_have() -> None:
    sets = [made_task(SIZES["rings"]), made_pairs(SIZES["folds"])]
    scores = evaluate_transfer(RandomEncoder(), sets, n_folds=3)
    average = average_of(scores)
    assert set(average.metrics) == {"accuracy", "dev_accuracy", "majority", "log2_cost"}
    assert average.score == pytest.approx((scores[0].score + scores[1].score) / 2)


def test_a_bar_is_told_of_every_fit() -> None:
    sets = [made_task(SIZES[protocol]) for protocol in SIZES]
    told: list[int] = []
    evaluate_transfer(RandomEncoder(), sets, n_folds=3, on_fits=told.append)
    # 3 outer folds of 6 costs with 3 inner folds each; 7 costs in 3 folds and on all; 6 costs.
    assert sum(told) == count_fits(sets, n_folds=3) == 18 * (1 + 3) + 7 * (3 + 1) + 6


def test_a_class_that_only_the_test_part_has_is_never_right() -> None:
    data = made_task(SIZES["folds"], n_classes=3)
    train = data.splits["train"].take(np.flatnonzero(data.splits["train"].labels != 1))
    splits = {"train": train, "test": data.splits["test"]}
    (scores,) = evaluate_transfer(RandomEncoder(), [replace(data, splits=splits)], n_folds=3)
    assert 0 < scores.score <= (data.splits["test"].labels != 1).mean()


# What is refused ------------------------------------------------------------------------------------


def part_of(*counts: int) -> LabelledTexts:
    labels = np.repeat(np.arange(len(counts)), counts)
    texts = [f"text {row}" for row in range(len(labels))]
    return LabelledTexts(texts, labels, tuple(f"class {number}" for number in range(len(counts))))


@pytest.mark.parametrize(
    ("splits", "sentence"),
    [
        ({"all": part_of(20, 0)}, "made has one class to learn from, 'class 0'; expected two or more"),
        ({"train": part_of(20, 0), "test": part_of(5, 5)}, "made has one class to learn from"),
        ({"all": part_of(20, 11)}, "made has 11 examples of the class 'class 1'; expected 12 or more for 10"),
        (
            {"train": part_of(9, 20), "test": part_of(5, 5)},
            "9 examples of the class 'class 0'; expected 10 or",
        ),
        ({"train": part_of(20, 20), "test": part_of(0, 0)}, "the test split of made is empty; expected some"),
        ({"train": part_of(20, 20)}, "made has the splits train; expected all alone, train and test"),
        ({"train": part_of(20, 20), "test": part_of(5, 5, 5)}, "different kinds or have other classes"),
        (
            {"all": Examples("pairs", {"first": ["a"], "second": ["b"]})},
            "made holds pairs; expected classified pairs or labelled texts",
        ),
    ],
)
def test_bad_splits_are_named_in_a_sentence(splits: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        evaluate_transfer(RandomEncoder(), [TransferData("made", splits)])


def test_the_smallest_class_that_is_let_in_is_enough() -> None:
    (scores,) = evaluate_transfer(RandomEncoder(), [TransferData("made", {"all": part_of(20, 12)})])
    assert scores.n_examples == 32


def test_unknown_labels_are_refused() -> None:
    with pytest.raises(InvalidInput, match="labels='random' is unknown; choose from given, shuffled"):
        evaluate_transfer(RandomEncoder(), [], labels="random")  # type: ignore[arg-type]


def test_every_task_says_how_it_is_evaluated() -> None:
    assert all(task.protocol.endswith(task.note) for task in TRANSFER_TASKS)
    kinds = [task.protocol.split(";")[0] for task in TRANSFER_TASKS]
    assert len(set(kinds)) == 3
    assert kinds[4] == "C (2^-2 to 2^3) chosen by the dev part"


# Reading --------------------------------------------------------------------------------------------

SMALL = TransferTask("SMALL", {"all": ("small/all.tsv", 2)}, ("1", "0"))


def test_a_task_is_read_with_its_hash_and_its_order_of_classes(tmp_path: Path) -> None:
    file = tmp_path / "small" / "all.tsv"
    file.parent.mkdir()
    file.write_text("text\tlabel\ngood\t1\nbad\t0\n", encoding="utf-8")
    (data,) = read_transfer(tmp_path, [SMALL])
    assert data.splits["all"].labels.tolist() == [0, 1]
    assert data.data_hash == hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_text("text\tlabel\ngood\t1\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"all\.tsv holds 1 rows; expected the 2 of SMALL"):
        read_transfer(tmp_path, [SMALL])


def test_the_real_tasks_are_whole(real_data: Path) -> None:
    sets = read_transfer(real_data, (*TRANSFER_TASKS, SST5))
    assert [each.name for each in sets] == ["MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC", "SST5"]
    assert count_fits(sets[:7]) == 4 * 660 + 6 + 2 * 77


def test_the_toy_encoder_tells_questions_apart(real_data: Path, toy_encoder: ToyEncoder) -> None:
    (scores,) = evaluate_transfer(
        toy_encoder,
        read_transfer(real_data, [task for task in TRANSFER_TASKS if task.name == "TREC"]),
        n_folds=3,
    )
    assert 0.4 < scores.score < 0.8

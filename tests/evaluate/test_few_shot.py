"""A few examples of each class: what is drawn, what is learnt, what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from gemel.data.labelled import LabelledTexts
from gemel.errors import InvalidInput
from gemel.evaluate.few_shot import few_shot

NAMES = ("bank", "film", "trip")


class ClassEncoder:
    """Texts are `class-number`; a class has a direction, a text some noise of its own."""

    dim = 6
    fingerprint = "classes"

    def __init__(self, noise: float) -> None:
        self.noise, self.seen = noise, list[str]()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        vectors = np.zeros((len(texts), self.dim))
        for row, text in enumerate(texts):
            name, number = text.split("-")
            noise = np.random.default_rng([NAMES.index(name), int(number)]).standard_normal(self.dim)
            vectors[row] = self.noise * noise
            vectors[row, NAMES.index(name)] += 1
        return vectors.astype(np.float32)


def texts_of(n_each: int | Sequence[int], first: int = 0) -> LabelledTexts:
    counts = [n_each] * 3 if isinstance(n_each, int) else n_each
    labels = np.repeat(np.arange(3), counts)
    return LabelledTexts([f"{NAMES[label]}-{first + row}" for row, label in enumerate(labels)], labels, NAMES)


TRAIN, TEST = texts_of(100), texts_of(50, first=1_000)


def test_clear_classes_are_learnt_from_one_example() -> None:
    scores = few_shot(ClassEncoder(noise=0.01), TRAIN, TEST, shots=[1], seeds=[0, 1])
    assert scores.metrics == {"accuracy_1": 1.0, "accuracy_1_std": 0.0}


def test_more_examples_help() -> None:
    scores = few_shot(ClassEncoder(noise=1.0), TRAIN, TEST, shots=[2, 64], seeds=range(5))
    assert scores.metrics["accuracy_64"] > scores.metrics["accuracy_2"] + 0.05
    assert scores.metrics["accuracy_2_std"] > 0
    assert (scores.primary, scores.n_examples, scores.fingerprint) == ("accuracy_2", 150, "classes")
    assert "2, 64 examples of each of 3 classes" in scores.protocol


def test_all_examples_of_all_classes_score_what_scikit_learn_scores() -> None:
    encoder = ClassEncoder(noise=1.0)
    scores = few_shot(encoder, TRAIN, TEST, shots=[100], seeds=[0, 1])
    referee = LogisticRegression(tol=1e-8).fit(encoder.encode(TRAIN.texts), TRAIN.labels)
    expected = referee.score(encoder.encode(TEST.texts), TEST.labels)
    assert scores.metrics == pytest.approx({"accuracy_100": expected, "accuracy_100_std": 0}, abs=1e-12)


def test_only_what_is_drawn_is_encoded_and_a_class_gives_as_many_as_are_asked_for() -> None:
    encoder = ClassEncoder(noise=0.1)
    few_shot(encoder, TRAIN, TEST, shots=[2, 4], seeds=[7])
    drawn = [text for text in encoder.seen if text in TRAIN.texts]
    assert sorted(text.split("-")[0] for text in drawn) == sorted(NAMES * 4)
    assert len(encoder.seen) == 3 * 4 + 150


def test_the_same_seed_draws_the_same() -> None:
    first, second, other = (ClassEncoder(noise=1.0) for _ in range(3))
    scores = [
        few_shot(encoder, TRAIN, TEST, shots=[4], seeds=[seed])
        for encoder, seed in ((first, 3), (second, 3), (other, 4))
    ]
    assert first.seen == second.seen != other.seen
    assert scores[0].metrics == scores[1].metrics


def test_a_small_class_gives_all_it_has_and_the_protocol_says_so() -> None:
    scores = few_shot(ClassEncoder(noise=0.1), texts_of([20, 20, 5]), TEST, shots=[8], seeds=[0])
    assert scores.protocol.endswith("1 classes have fewer than 8 and gave all")
    assert scores.score > 0.9


def test_a_class_without_examples_is_never_predicted() -> None:
    scores = few_shot(ClassEncoder(noise=0.01), texts_of([20, 0, 20]), TEST, shots=[8], seeds=[0])
    assert scores.score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("train", "test", "shots", "seeds", "sentence"),
    [
        (texts_of(0), TEST, [8], [0], "the training part is empty; expected some labelled texts"),
        (TRAIN, texts_of(0), [8], [0], "the test part is empty; expected some labelled texts"),
        (
            texts_of([9, 0, 0]),
            TEST,
            [8],
            [0],
            "the training part has one class, 'bank'; expected two or more",
        ),
        (
            TRAIN,
            LabelledTexts(["a"], np.array([0]), ("x", "y")),
            [8],
            [0],
            "other classes; read the test part",
        ),
        (TRAIN, TEST, [], [0], r"shots is \[\]; expected numbers of examples a class"),
        (TRAIN, TEST, [0], [0], r"shots is \[0\]; expected numbers of examples a class"),
        (TRAIN, TEST, [8], [], "seeds is empty; expected one or more"),
        (TRAIN, TEST, [8], [1, 2, 1], r"seeds is \[1, 2, 1\]; expected each once"),
    ],
)
def test_bad_input_is_named_in_a_sentence(
    train: LabelledTexts, test: LabelledTexts, shots: list[int], seeds: list[int], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        few_shot(ClassEncoder(noise=0.1), train, test, shots, seeds)

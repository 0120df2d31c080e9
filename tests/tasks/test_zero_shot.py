"""Classes by their names alone: worked out by hand, and on real texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_ins import ToyEncoder

from gemel import ZeroShotClassifier, load_encoder
from gemel.data.labelled import read_labelled
from gemel.errors import InvalidInput


class PlaneEncoder:
    """Texts are `x y`: their own vectors, of any length."""

    dim = 2
    fingerprint = "plane"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = [[float(number) for number in text.split()] for text in texts]
        return np.array(vectors, np.float32).reshape(len(texts), 2)


def test_probabilities_are_a_softmax_over_cosines() -> None:
    classifier = ZeroShotClassifier(PlaneEncoder(), ["2 0", "0 5"], temperature=0.5)
    # 3 4 is at cosines 0.6 and 0.8: logits 1.2 and 1.6, so that the second has 1 / (1 + exp(-0.4)).
    np.testing.assert_allclose(classifier.similarities(["3 4"]), [[0.6, 0.8]], rtol=1e-6)
    expected = 1 / (1 + np.exp(-0.4))
    np.testing.assert_allclose(classifier.probabilities(["3 4"]), [[1 - expected, expected]], rtol=1e-6)
    assert classifier.predict(["3 4", "4 3"]) == ["0 5", "2 0"]


def test_a_class_is_the_mean_direction_of_its_texts() -> None:
    # The mean of directions 1 0 and 0 1 points to 1 1, however long the texts' vectors are.
    classifier = ZeroShotClassifier(PlaneEncoder(), {"both": ["9 0", "0 1"], "left": "-1 0"})
    np.testing.assert_allclose(classifier.similarities(["1 1"]), [[1, -np.sqrt(0.5)]], rtol=1e-6)
    assert classifier.labels == ("both", "left")
    assert classifier.predict(["1 0", "-1 0.1"]) == ["both", "left"]


def test_every_text_of_a_class_is_put_into_every_template(toy_encoder: ToyEncoder) -> None:
    ZeroShotClassifier(
        toy_encoder, {"a": ["one", "two"], "b": ["{x}"]}, template=["{}", "about {}", "it is {}."]
    )
    assert toy_encoder.n_encoded == 9


def test_a_lower_temperature_is_surer_and_predicts_the_same(toy_encoder: ToyEncoder) -> None:
    texts = ["dog", "a piano", "food food dog"]
    sure, unsure = (
        ZeroShotClassifier(toy_encoder, ["dog", "piano", "food"], temperature=temperature)
        for temperature in (0.01, 1.0)
    )
    assert sure.predict(texts) == unsure.predict(texts) == ["dog", "piano", "food"]
    assert (sure.probabilities(texts).max(axis=1) > unsure.probabilities(texts).max(axis=1)).all()
    np.testing.assert_allclose(sure.probabilities(texts).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("temperature", [1e-40, 1e-300])
def test_however_low_the_temperature_probabilities_are_numbers(temperature: float) -> None:
    classifier = ZeroShotClassifier(PlaneEncoder(), ["2 0", "0 5"], temperature=temperature)
    found = classifier.probabilities(["3 4", "4 3", "-1 0"])
    assert found.dtype == np.float32
    assert found.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_no_texts_have_no_probabilities(toy_encoder: ToyEncoder) -> None:
    classifier = ZeroShotClassifier(toy_encoder, ["dog", "piano"])
    assert classifier.probabilities([]).shape == (0, 2)
    assert classifier.predict([]) == []


@pytest.mark.parametrize(
    ("labels", "settings", "sentence"),
    [
        (["dog"], {}, "one label, 'dog', was given; expected two or more"),
        ([], {}, "no label was given; expected two or more"),
        (["dog", "cat", "dog"], {}, "the label 'dog' is given twice; expected each class once"),
        (["dog", " "], {}, "label 1 is ' '; expected the name of a class"),
        ("dog,cat", {}, "one str was given; give two labels or more in a list"),
        ({"dog": [], "cat": "cat"}, {}, "the label 'dog' has no text, or an empty one"),
        (["dog", "cat"], {"template": "about"}, "the template is 'about'; expected one {} for the label"),
        (["dog", "cat"], {"template": []}, "no template was given; expected one {}"),
        (["dog", "cat"], {"temperature": 0}, "temperature is 0; expected a number above 0"),
        (
            ["dog", "cat"],
            {"temperature": 1e-310},
            "temperature is 1e-310; expected a number above 0 that cosines",
        ),
        (["dog", "cat"], {"temperature": float("nan")}, "temperature is nan; expected a number"),
        (["dog", "cat"], {"temperature": float("inf")}, "temperature is inf; expected a number"),
    ],
)
def test_bad_labels_are_named_in_a_sentence(
    toy_encoder: ToyEncoder, labels: Any, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        ZeroShotClassifier(toy_encoder, labels, **settings)


def test_one_text_is_not_taken_for_a_sequence_of_letters(toy_encoder: ToyEncoder) -> None:
    with pytest.raises(InvalidInput, match="one str was given; put it into a list"):
        ZeroShotClassifier(toy_encoder, ["dog", "cat"]).predict("a dog")


@pytest.mark.usefixtures("default_weights")
def test_intents_of_bank_customers_are_told_by_their_names(real_data: Path) -> None:
    train = read_labelled(real_data / "banking77" / "train.tsv")
    some = train.take(np.random.default_rng(0).permutation(len(train))[:500])
    names = [name.replace("_", " ") for name in train.label_names]
    predicted = ZeroShotClassifier(load_encoder(), names).predict(some.texts)
    right = np.mean([names[label] == name for label, name in zip(some.labels, predicted, strict=True)])
    assert right > 0.55  # 0.61 of all of them; 77 classes, so that guessing gives 0.01

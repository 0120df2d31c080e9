"""A classifier from a few examples: scikit-learn's own beside it, saved and opened, cloned and searched."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted
from stand_ins import ToyEncoder, sentences

from gemel import FewShotClassifier, load_classifier, load_encoder
from gemel.contracts import Encoder
from gemel.errors import InvalidInput, InvalidModel, ModelMismatch, ModelNotFound
from gemel.similarity import normalise

WORDS = {"animals": "dog cat horse", "music": "guitar piano plays", "home": "house garden street"}
NONSENSE = sentences(60, seed=1, max_words=5)
TEXTS = [f"{word} {text}" for text in NONSENSE for words in WORDS.values() for word in words.split()]
LABELS = [label for _ in NONSENSE for label, words in WORDS.items() for _ in words.split()]
UNSEEN = sentences(50, seed=2)


@pytest.fixture
def fitted(toy_encoder: ToyEncoder) -> FewShotClassifier:
    return FewShotClassifier(toy_encoder).fit(TEXTS, LABELS)


def referee(vectors: np.ndarray, labels: Any, cost: float) -> LogisticRegression:
    classifier = LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-10)
    return classifier.fit(normalise(vectors).astype(np.float64), labels)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cost", [1.0, 16.0])
def test_classes_and_probabilities_are_those_of_scikit_learn(
    toy_encoder: ToyEncoder, n_classes: int, cost: float
) -> None:
    names = list(WORDS)[:n_classes]
    texts, labels = zip(
        *((text, label) for text, label in zip(TEXTS, LABELS, strict=True) if label in names), strict=True
    )
    ours = FewShotClassifier(toy_encoder, cost=cost).fit(texts, labels)
    theirs = referee(toy_encoder.encode(texts), labels, cost)
    vectors = normalise(toy_encoder.encode(UNSEEN))
    assert ours.classes_.tolist() == theirs.classes_.tolist() == sorted(names)
    np.testing.assert_allclose(ours.predict_proba(UNSEEN), theirs.predict_proba(vectors), atol=1e-5)
    assert (ours.predict(UNSEEN) == theirs.predict(vectors)).all()
    assert ours.score(texts, labels) == theirs.score(normalise(toy_encoder.encode(texts)), labels)


def test_a_class_of_one_example_is_learnt(toy_encoder: ToyEncoder) -> None:
    classifier = FewShotClassifier(toy_encoder).fit(["dog", "piano", "garden"], [7, 3, 5])
    assert classifier.classes_.tolist() == [3, 5, 7]
    assert classifier.predict(["garden", "dog", "piano"]).tolist() == [5, 7, 3]


def test_a_tuned_encoder_takes_the_place_of_the_given_one(toy_encoder: ToyEncoder) -> None:
    given: list[tuple[Encoder, int, list[int]]] = []
    other = ToyEncoder()

    def tune(encoder: Encoder, texts: list[str], classes: np.ndarray) -> Encoder:
        given.append((encoder, len(texts), classes.tolist()))
        return other

    classifier = FewShotClassifier(toy_encoder, tune=tune).fit(["dog", "piano", "cat"], ["b", "a", "b"])
    assert given == [(toy_encoder, 3, [1, 0, 1])]
    assert classifier.encoder_ is other
    classifier.predict(["dog"])
    assert (toy_encoder.n_encoded, other.n_encoded) == (0, 4)


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        (["a", "b"], ["x", "x"], "one class, 'x' was given to learn from; expected examples of two"),
        ([], [], "no example was given to learn from"),
        (["a", "b"], ["x"], r"2 texts were given labels of shape \(1,\); expected one a text: \(2,\)"),
        (["a", "b"], [1, "1"], "the labels are of the types int, str; expected one type"),
        (["a", "b"], [0.5, 1.5], "the labels are of type float64; expected texts or whole numbers"),
        (["a", "b", "c"], np.array(["x", 1, None], object), "of the types NoneType, int, str; expected one"),
        ("ab", ["x", "y"], "one str was given; put the examples into a list"),
        (["a", 3], ["x", "y"], "text 1 is the int 3, and a str was expected"),
    ],
)
def test_bad_examples_are_named_in_a_sentence(
    toy_encoder: ToyEncoder, texts: Any, labels: Any, sentence: str
) -> None:
    if len(labels) == 0:
        labels = np.array([], str)
    with pytest.raises(InvalidInput, match=sentence):
        FewShotClassifier(toy_encoder).fit(texts, labels)


def test_what_has_learnt_nothing_says_so(toy_encoder: ToyEncoder, tmp_path: Path) -> None:
    classifier = FewShotClassifier(toy_encoder)
    for use in (classifier.predict, classifier.predict_proba, lambda _: classifier.save(tmp_path / "c")):
        with pytest.raises(InvalidInput, match=r"knows no classes yet; call fit\(texts, labels\) first"):
            use(["a dog"])


# As scikit-learn knows estimators --------------------------------------------------------------------


def test_a_clone_has_the_settings_shares_the_encoder_and_has_learnt_nothing(
    fitted: FewShotClassifier,
) -> None:
    copied = clone(fitted.set_params(cost=3.0))
    assert copied.get_params() == {"encoder": fitted.encoder, "cost": 3.0, "tune": None}
    assert copied.encoder is fitted.encoder
    check_is_fitted(fitted)
    with pytest.raises(InvalidInput, match="knows no classes yet"):
        copied.predict(["a dog"])
    with pytest.raises(InvalidInput, match="the setting 'C' is unknown; the known ones are encoder, cost"):
        copied.set_params(C=3.0)


def test_a_pickle_predicts_the_same_bits(fitted: FewShotClassifier) -> None:
    copied = pickle.loads(pickle.dumps(fitted))
    assert (copied.predict_proba(UNSEEN) == fitted.predict_proba(UNSEEN)).all()


def test_a_search_over_costs_finds_what_a_loop_finds(toy_encoder: ToyEncoder) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("classify", FewShotClassifier(toy_encoder))])
    search = GridSearchCV(pipeline, {"classify__cost": [1e-3, 1.0, 16.0]}, cv=3)
    search.fit([text.upper() for text in TEXTS], LABELS)
    by_hand = [
        cross_val_score(FewShotClassifier(toy_encoder, cost=cost), TEXTS, LABELS, cv=3).mean()
        for cost in (1e-3, 1.0, 16.0)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand)
    assert search.best_score_ == max(by_hand) > 0.6  # a third by chance
    assert search.predict(["DOG", "piano"]).tolist() == ["animals", "music"]
    assert is_classifier(pipeline.named_steps["classify"])


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_set_params",
    ],
)
def test_what_scikit_learn_checks_without_arrays_holds(toy_encoder: ToyEncoder, check: str) -> None:
    # All its other checks fit tables of numbers, which is not what a classifier of texts eats.
    getattr(estimator_checks, check)("FewShotClassifier", FewShotClassifier(toy_encoder))


# The folder ------------------------------------------------------------------------------------------


def test_a_saved_classifier_brings_its_encoder_and_gives_the_same_bits(
    tiny_bert: Path, tmp_path: Path
) -> None:
    encoder = load_encoder(tiny_bert, on_truncate="chunk")
    classifier = FewShotClassifier(encoder, cost=4.0).fit(TEXTS, LABELS)
    classifier.save(tmp_path / "c")
    opened = load_classifier(tmp_path / "c")
    assert (opened.predict_proba(UNSEEN) == classifier.predict_proba(UNSEEN)).all()
    assert (opened.predict(UNSEEN) == classifier.predict(UNSEEN)).all()
    assert (opened.cost, opened.classes_.tolist()) == (4.0, sorted(WORDS))
    assert opened.encoder_.fingerprint == encoder.fingerprint
    assert getattr(opened.encoder_, "on_truncate", None) == "chunk"
    assert {file.name for file in (tmp_path / "c").iterdir()} == {
        "classifier.json",
        "head.safetensors",
        "encoder",
    }


def test_a_named_encoder_is_not_copied(tiny_bert: Path, tmp_path: Path) -> None:
    classifier = FewShotClassifier(load_encoder(tiny_bert)).fit(["a dog", "a cat"], [1, 0])
    classifier.save(tmp_path / "c", encoder_name=str(tiny_bert))
    assert not (tmp_path / "c" / "encoder").exists()
    opened = load_classifier(tmp_path / "c")
    assert opened.predict(["a dog", "a cat"]).tolist() == [1, 0]
    assert opened.classes_.dtype.kind == "i"


def test_another_encoder_is_refused_by_its_fingerprint(fitted: FewShotClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "c")  # the toy cannot be saved
    with pytest.raises(InvalidModel, match="by the fingerprint toy-16 alone; give it as encoder="):
        load_classifier(tmp_path / "c")
    other = ToyEncoder()
    assert (load_classifier(tmp_path / "c", encoder=other).predict(TEXTS) == fitted.predict(TEXTS)).all()
    other.fingerprint = "toy-17"
    with pytest.raises(ModelMismatch, match="fitted on the encoder toy-16 with vectors of 16, and toy-17"):
        load_classifier(tmp_path / "c", encoder=other)


def test_an_encoder_that_was_exchanged_in_the_folder_is_refused(
    tiny_bert: Path, tmp_path: Path, tiny_model: Any
) -> None:
    FewShotClassifier(load_encoder(tiny_bert)).fit(["a dog", "a cat"], [1, 0]).save(tmp_path / "c")
    load_encoder(tiny_model("electra")).save(tmp_path / "c" / "encoder", overwrite=True)
    with pytest.raises(ModelMismatch, match="give the same encoder, or fit the classifier again"):
        load_classifier(tmp_path / "c")


def test_a_folder_is_replaced_only_when_asked(fitted: FewShotClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "c")
    with pytest.raises(InvalidInput, match="exists already"):
        fitted.save(tmp_path / "c")
    fitted.set_params(cost=1.0).fit(TEXTS, LABELS).save(tmp_path / "c", overwrite=True)
    assert load_classifier(tmp_path / "c", encoder=ToyEncoder()).cost == 1.0


def test_folders_that_are_none_are_named(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"no classifier folder '.*nowhere'; make one with gemel"):
        load_classifier(tmp_path / "nowhere")
    with pytest.raises(InvalidModel, match=r"has no classifier\.json, so it is no text classifier"):
        load_classifier(tiny_bert)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "regression"}, "sets kind to 'regression', and 'few-shot' was expected"),
        ({"classes": ["animals"]}, "and a list of two or more different classes was expected"),
        ({"classes": ["a", 1, "c"]}, "and a list of texts or of whole numbers was expected"),
        ({"classes": ["a", "b", "c", "d"]}, r"'weights' has shape \(3, 16\), expected \(4, 16\)"),
        ({"cost": True}, "sets cost to True, and a number above 0 was expected"),
        ({"encoder": {"dim": 16}}, "lacks the encoder's fingerprint"),
        ({"encoder": {"fingerprint": "x", "dim": 16, "pikle": 1}}, "has the unknown key 'pikle' in encoder"),
    ],
)
def test_a_damaged_description_is_named(
    fitted: FewShotClassifier, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    fitted.save(tmp_path / "c")
    file = tmp_path / "c" / "classifier.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(InvalidModel, match=sentence):
        load_classifier(tmp_path / "c", encoder=ToyEncoder())


def test_a_missing_head_is_named(fitted: FewShotClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "c")
    (tmp_path / "c" / "head.safetensors").unlink()
    with pytest.raises(InvalidModel, match=r"has no head\.safetensors: save the classifier again"):
        load_classifier(tmp_path / "c", encoder=ToyEncoder())


def test_classes_that_json_would_change_are_not_saved(toy_encoder: ToyEncoder, tmp_path: Path) -> None:
    classifier = FewShotClassifier(toy_encoder).fit(["dog", "cat"], [True, False])
    assert classifier.predict(["dog"]).tolist() == [True]
    with pytest.raises(InvalidInput, match="neither texts nor whole numbers, and only these can be saved"):
        classifier.save(tmp_path / "c")
    assert not (tmp_path / "c").exists()

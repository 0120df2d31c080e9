"""SentenceVectorizer among scikit-learn's own tools."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from adapters.packages import imported
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from stand_ins import ToyEncoder

from gemel.adapters.sklearn import SentenceVectorizer
from gemel.errors import InvalidInput

ANIMALS = [
    "the dog runs",
    "a dog sleeps",
    "the cat sleeps",
    "a cat runs",
    "the horse runs",
    "a dog and a cat",
]
MUSIC = [
    "the piano plays",
    "a guitar plays",
    "piano and guitar",
    "the old piano",
    "a new guitar",
    "two guitar",
]
TEXTS, LABELS = ANIMALS + MUSIC, [0] * 6 + [1] * 6

# Of the checks that scikit-learn has, those that give no numbers to an estimator that wants texts.
CHECKS = (
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_get_feature_names_out_error",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_n_features_in_after_fitting",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_output_transform",
    "check_set_params",
    "check_transformer_get_feature_names_out",
    "check_transformer_preserve_dtypes",
    "check_transformers_unfitted",
    "check_valid_tag_types",
)


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_own_checks_pass_that_apply_to_texts(tiny_bert: Path, name: str) -> None:
    check = getattr(estimator_checks, name)
    assert check("SentenceVectorizer", SentenceVectorizer(str(tiny_bert))) is None


def test_check_estimator_finds_no_fault(tiny_bert: Path) -> None:
    with pytest.warns(SkipTestWarning, match="Can't test estimator SentenceVectorizer which requires input"):
        found = estimator_checks.check_estimator(SentenceVectorizer(str(tiny_bert)))
    assert {each["status"] for each in found} == {"passed"}


def test_rows_are_the_encoders_own_from_any_kind_of_column(toy_encoder: ToyEncoder) -> None:
    expected = ToyEncoder().encode(TEXTS)
    vectorizer = SentenceVectorizer(toy_encoder)
    for given in (TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), np.array(TEXTS)[:, None]):
        assert np.array_equal(vectorizer.fit(given).transform(given), expected)


def test_a_pipeline_learns_and_its_settings_are_searched(toy_encoder: ToyEncoder) -> None:
    pipeline = make_pipeline(SentenceVectorizer(toy_encoder), LogisticRegression(C=100))
    assert pipeline.fit(TEXTS, LABELS).score(TEXTS, LABELS) == 1
    search = GridSearchCV(pipeline, {"sentencevectorizer__normalise": [False, True]}, cv=2)
    assert set(search.fit(TEXTS, LABELS).best_params_) == {"sentencevectorizer__normalise"}


def test_a_clone_shares_the_encoder_and_has_not_opened_it(toy_encoder: ToyEncoder) -> None:
    vectorizer = SentenceVectorizer(toy_encoder, normalise=True).fit(TEXTS)
    twin = clone(vectorizer)
    assert twin.get_params() == vectorizer.get_params()
    assert twin.model is toy_encoder
    assert not hasattr(twin, "encoder_")


def test_a_model_is_opened_by_name_and_pickled(tiny_bert: Path) -> None:
    vectorizer = SentenceVectorizer(str(tiny_bert), dim=7, precision="float32").fit(TEXTS)
    assert vectorizer.get_feature_names_out().tolist() == [f"sentencevectorizer{n}" for n in range(7)]
    again = pickle.loads(pickle.dumps(vectorizer))
    assert np.array_equal(again.transform(TEXTS), vectorizer.transform(TEXTS))
    assert vectorizer.set_params(dim=3).transform(TEXTS).shape == (12, 3)


def test_a_column_of_a_table_is_vectorized(toy_encoder: ToyEncoder) -> None:
    table = np.array(list(zip(TEXTS, map(str, LABELS), strict=True)), object)
    chosen = ColumnTransformer([("text", SentenceVectorizer(toy_encoder), 0)])
    assert np.array_equal(chosen.fit_transform(table), ToyEncoder().encode(TEXTS))


@pytest.mark.extras
def test_frames_go_in_and_come_out(toy_encoder: ToyEncoder) -> None:
    pandas = imported("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "label": LABELS}, index=range(5, 17))
    vectorizer = SentenceVectorizer(toy_encoder).set_output(transform="pandas")
    for column in ("text", ["text"]):
        made = vectorizer.fit_transform(frame[column])
        assert made.columns.tolist() == [f"sentencevectorizer{n}" for n in range(16)]
        assert np.array_equal(made.to_numpy(), ToyEncoder().encode(TEXTS))
    assert made.index.tolist() == frame.index.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a dog", "put it into a list"),
        (["a", None], "text 1 is None"),
        ([1, 2], "text 0 is the int 1"),
        (np.array([["a", "b"]]), "2 columns were given; expected one"),
    ],
)
def test_what_is_no_column_of_texts_is_refused(toy_encoder: ToyEncoder, given: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SentenceVectorizer(toy_encoder).fit(given)

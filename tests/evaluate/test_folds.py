"""Folds: the same as scikit-learn's, which SentEval's figures depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from gemel.errors import InvalidInput
from gemel.evaluate.folds import stratified_folds


@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=5),
    st.integers(2, 5),
    st.integers(0, 2**32 - 1),
    st.randoms(use_true_random=False),
)
def test_folds_are_those_of_scikit_learn(counts: list[int], n_folds: int, seed: int, random: object) -> None:
    counts = [max(count, n_folds) for count in counts]
    labels = np.repeat(np.arange(len(counts)), counts)
    random.shuffle(labels)  # type: ignore[attr-defined]
    folds = stratified_folds(labels, n_folds, seed)
    referee = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(labels, labels)
    for fold, (_, test) in enumerate(referee):
        assert np.flatnonzero(folds == fold).tolist() == test.tolist()


def test_every_fold_has_its_share_of_every_class() -> None:
    labels = np.array([0] * 30 + [1] * 12)
    folds = stratified_folds(labels, 3, seed=0)
    for fold in range(3):
        assert np.bincount(labels[folds == fold]).tolist() == [10, 4]


def test_a_class_smaller_than_the_folds_is_named() -> None:
    with pytest.raises(InvalidInput, match="class 5 has 2 examples; expected at least 3, one for each fold"):
        stratified_folds(np.array([0, 0, 0, 5, 5, 1, 1, 1, 1]), 3, seed=0)


def test_one_fold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1 folds were asked for; expected 2 or more"):
        stratified_folds(np.array([0, 1]), 1, seed=0)

"""Resampled figures are those that the drawn examples themselves would give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap, spearmanr

from gemel.errors import InvalidInput
from gemel.evaluate.bootstrap import SpearmanOf, interval_of, mean_of, resample


def drawn_rows(n: int, n_resamples: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n, (n_resamples, n))


def test_the_spearman_of_a_resample_is_that_of_its_examples_ties_included() -> None:
    random = np.random.default_rng(1)
    first = random.integers(0, 9, 40).astype(float)
    second = first + random.integers(0, 9, 40)
    found = resample(SpearmanOf(first, second), 40, 200, seed=3)
    expected = [spearmanr(first[rows], second[rows]).statistic for rows in drawn_rows(40, 200, 3)]
    assert found == pytest.approx(expected, abs=1e-12)


def test_resamples_do_not_depend_on_the_size_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random(50)
    whole = resample(mean_of(values), 50, 100)
    monkeypatch.setattr("gemel.evaluate.bootstrap._BLOCK_CELLS", 120)
    assert resample(mean_of(values), 50, 100).tolist() == whole.tolist()
    assert whole == pytest.approx(values[drawn_rows(50, 100, 0)].mean(axis=1))


def test_an_interval_is_the_one_that_scipy_finds() -> None:
    values = np.random.default_rng(0).exponential(size=400)
    low, high = interval_of(resample(mean_of(values), 400, 4_000))
    reference = bootstrap((values,), np.mean, n_resamples=4_000, method="percentile", rng=1)
    assert (low, high) == pytest.approx(tuple(reference.confidence_interval), abs=0.01)


def test_resamples_without_a_correlation_are_left_out() -> None:
    found = resample(SpearmanOf([0.0, 1.0], [0.0, 1.0]), 2, 100)
    assert set(found[np.isfinite(found)]) == {1.0}
    assert np.isnan(found).any()
    assert interval_of(found) == (1.0, 1.0)
    assert interval_of(np.array([np.nan])) is None


def test_no_examples_are_refused() -> None:
    with pytest.raises(InvalidInput, match="1000 resamples of 0 examples"):
        resample(mean_of([1.0]), 0)

"""How far a figure would move with other examples: percentile intervals of the bootstrap.

A resample of n examples is n counts, how often each was drawn; a statistic takes many such rows at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

N_RESAMPLES = 1_000
_COVERAGE = (2.5, 97.5)  # percentiles that hold 95% between them
_BLOCK_CELLS = 1 << 17  # a block of counts is then 1 MB, and the few arrays beside it stay in the cache

Doubles = npt.NDArray[np.float64]
Statistic = Callable[[Doubles], Doubles]  # counts (resamples, n) -> one value a resample; NaN if it has none


def resample(statistic: Statistic, n: int, n_resamples: int = N_RESAMPLES, seed: int = 0) -> Doubles:
    """The statistic of as many resamples of n examples, drawn with replacement."""
    if n < 1 or n_resamples < 1:
        raise InvalidInput(
            f"{n_resamples} resamples of {n} examples were asked for; expected at least 1 of 1"
        )
    generator = np.random.default_rng(seed)
    n_rows = max(1, _BLOCK_CELLS // n)
    blocks = []
    for start in range(0, n_resamples, n_rows):
        size = min(n_rows, n_resamples - start)
        drawn = generator.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        blocks.append(statistic(counts.astype(np.float64)))
    return np.concatenate(blocks)


def interval_of(values: Doubles) -> tuple[float, float] | None:
    """The middle 95% of the values, or None where no resample had one."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    low, high = np.percentile(finite, _COVERAGE)
    return float(low), float(high)


def mean_of(values: npt.ArrayLike) -> Statistic:
    """The mean of the examples drawn."""
    array = np.asarray(values, np.float64)
    # Not a product of matrices: those round differently in blocks of another size.
    return lambda counts: np.einsum("ij,j->i", counts, array) / len(array)


class SpearmanOf:
    """Spearman's correlation of the examples drawn, equal values sharing a rank."""

    def __init__(self, first: npt.ArrayLike, second: npt.ArrayLike) -> None:
        self._first, self._second = _Ranking(np.asarray(first)), _Ranking(np.asarray(second))

    def __call__(self, counts: Doubles) -> Doubles:
        a, b = self._first.ranks(counts), self._second.ranks(counts)
        weighted = counts * a
        shared = np.einsum("ij,ij->i", weighted, b)
        spread = np.einsum("ij,ij->i", weighted, a) * np.einsum("ij,ij,ij->i", counts, b, b)
        # All examples of a resample may be alike: that has no correlation.
        unknown = np.full(len(counts), np.nan)
        correlations: Doubles = np.divide(shared, np.sqrt(spread), out=unknown, where=spread > 0)
        return correlations


class _Ranking:
    """One order of n values, sorted once and then used for every resample."""

    def __init__(self, values: npt.NDArray[np.floating]) -> None:
        _, self._groups, sizes = np.unique(values, return_inverse=True, return_counts=True)
        self._order = np.argsort(self._groups, kind="stable")
        self._starts = np.cumsum(sizes) - sizes

    def ranks(self, counts: Doubles) -> Doubles:
        """The rank of each example in its resample, less the mean rank (resamples, n)."""
        drawn = np.add.reduceat(counts[:, self._order], self._starts, axis=1)  # of each group of equals
        ranks: Doubles = np.cumsum(drawn, axis=1) - drawn / 2 - counts.shape[1] / 2
        return ranks[:, self._groups]

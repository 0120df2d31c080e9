"""Figures of ranked lists, as trec_eval defines them; one value a query.

`ranked` (queries, depth) has the grade of the document at each rank, 0 where it was not judged or there is
none. `judged` (queries, most) has all grades of each query, best first, and zeros behind them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def ndcg(ranked: Doubles, judged: Doubles, k: int) -> Doubles:
    """The discounted gain of the first k, as a share of the best possible; the gain is the grade itself."""
    shares: Doubles = _discounted(ranked[:, :k]) / _discounted(judged[:, :k])
    return shares


def reciprocal_rank(ranked: Doubles, k: int) -> Doubles:
    """One over the rank of the first relevant document, 0 if the first k have none."""
    relevant = ranked[:, :k] > 0
    found: Doubles = np.where(relevant.any(axis=1), 1 / (1 + relevant.argmax(axis=1)), 0.0)
    return found


def average_precision(ranked: Doubles, judged: Doubles) -> Doubles:
    """The mean over all relevant documents of the precision at their ranks, 0 for those not found."""
    relevant = ranked > 0
    precisions = np.cumsum(relevant, axis=1) / np.arange(1, ranked.shape[1] + 1)
    average: Doubles = (precisions * relevant).sum(axis=1) / (judged > 0).sum(axis=1)
    return average


def recall(ranked: Doubles, judged: Doubles, k: int) -> Doubles:
    """The share of the relevant documents that is among the first k."""
    share: Doubles = (ranked[:, :k] > 0).sum(axis=1) / (judged > 0).sum(axis=1)
    return share


def precision(ranked: Doubles, k: int) -> Doubles:
    """The share of the first k that is relevant; a list that is shorter than k is filled up with misses."""
    share: Doubles = (ranked[:, :k] > 0).sum(axis=1) / k
    return share


def _discounted(grades: Doubles) -> Doubles:
    gains: Doubles = (np.maximum(grades, 0) / np.log2(np.arange(2, grades.shape[1] + 2))).sum(axis=1)
    return gains

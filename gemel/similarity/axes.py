"""The directions along which rows have most in common, as many as rule out most pairs.

What two rows are along a few principal axes, and the lengths of what they have beside them, bound their
product. Of sentence vectors a third of the dimensions is enough: of pairs that are not alike hardly any
could still be, and the rest of their numbers is never looked at. How many axes pay is tried on a sample.
"""

from __future__ import annotations

import numpy as np

from gemel import _native
from gemel.contracts import Vectors

# Of numbers, and for each of those that finding axes takes: for fewer, they cost more than they save.
LEAST_PRODUCTS, LEAST_SHARE = 6e11, 1_000
_FITTED_ROWS, _TRIED_ROWS = 8_192, 1_024
_STEP = 32  # axes
_TILE_PAIRS = 6 * 64  # are ruled out together, or not at all
_ROUNDING = 0.02  # what bytes leave out, as a share of the lengths
# As shares of what comparing whole rows costs: looking along axes at all, and what is worth doing. Rows that
# are alike stand together, so that twice as many tiles pass in places as a sample says.
_LOOKING, _WORTHWHILE, _TOGETHER = 0.1, 0.85, 2


def telling_axes(
    rows: Vectors, others: Vectors, floor: float, *, n_wanted: int | None = None, is_cosine: bool
) -> _native.Axes | None:
    """Axes that rule out most pairs below the floor, or None where there are none worth their cost.

    Where only so many of the best pairs are wanted, it may be lower than theirs, which is guessed.
    """
    dim, n_pairs = rows.shape[1], len(rows) * len(others)
    if dim < 3 * _STEP or n_pairs * dim < max(LEAST_PRODUCTS, LEAST_SHARE * dim**3):
        return None
    directions = principal_axes(_sample(others, _FITTED_ROWS, is_cosine=is_cosine))
    left = _sample(rows, _TRIED_ROWS, is_cosine=is_cosine) @ directions.T
    right = _sample(others, _TRIED_ROWS, offset=1, is_cosine=is_cosine) @ directions.T
    if not left.size or not right.size:
        return None
    if n_wanted is not None:  # within one set each pair is met twice
        floor = max(floor, _likely_floor(left @ right.T, 2 * n_wanted / n_pairs))
    n_axes = cheapest(left, right, floor)
    return None if n_axes is None else _native.Axes(np.ascontiguousarray(directions[:n_axes]))


def principal_axes(rows: Vectors) -> Vectors:
    """All principal axes of the rows (dim, dim), that of the most first; the rows are taken as they are."""
    moments = (rows.T @ rows).astype(np.float64)
    return np.linalg.eigh(moments)[1].T[::-1].astype(np.float32)


def cheapest(rows: Vectors, others: Vectors, floor: float) -> int | None:
    """How many of their first numbers rows (n, dim) are best compared by; None: by all at once."""
    dim = rows.shape[1]
    products = np.zeros((len(rows), len(others)), np.float32)
    slack = _ROUNDING * np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(others, axis=1)
    costs = {dim: _WORTHWHILE}
    for end in range(_STEP, dim, _STEP):
        products += rows[:, end - _STEP : end] @ others[:, end - _STEP : end].T
        beside = np.linalg.norm(rows[:, end:], axis=1)[:, None] * np.linalg.norm(others[:, end:], axis=1)
        share = float(np.mean(products + beside + slack >= floor))
        costs[end] = _LOOKING + end / dim + _TOGETHER * (1 - (1 - share) ** _TILE_PAIRS)
    best = min(costs, key=lambda n_axes: costs[n_axes])
    return None if best == dim else best


def _likely_floor(products: Vectors, share: float) -> float:
    """What the best pairs, such a share of all, score at least."""
    n_better = min(int(share * products.size), products.size - 1)
    return float(np.partition(products.ravel(), -1 - n_better)[-1 - n_better])


def _sample(rows: Vectors, n: int, *, offset: int = 0, is_cosine: bool) -> Vectors:
    """Rows from all over, for the cosine at unit length; those that float32 cannot square are left out."""
    sampled = np.asarray(rows[offset :: max(1, len(rows) // n)], dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", sampled, sampled, dtype=np.float64))
    is_usual = (lengths > 1e-12) & (lengths < 1e12)
    kept: Vectors = sampled[is_usual]
    return (kept / lengths[is_usual, None]).astype(np.float32) if is_cosine else kept

"""A given number of groups of alike vectors: k-means, seeded, in blocks of rows.

Greedy k-means++ chooses the first centres, Lloyd's steps move them until nothing changes, and the best of
several beginnings is kept. By cosine, rows and centres have unit length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import normalise
from gemel.similarity.packed import OnProgress

MEASURES = ("cosine", "euclidean")
_BLOCK_ROWS = 4_096
_ROUNDED_SHARE = 1e-7  # of all squares of all numbers

_Doubles = npt.NDArray[np.float64]
_Tell = Callable[[float], None]  # takes the share that is done


class RowBlocks(Protocol):
    """Rows of which some are looked at a time: an array, or what makes them when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, which: slice | npt.NDArray[np.int64], /) -> Vectors: ...


@dataclass(frozen=True)
class Partition:
    """The group of each row, the centres of the groups, and the sum of squared distances to them."""

    groups: npt.NDArray[np.int64]  # (n,), from 0 to n_groups - 1
    centres: Vectors  # (n_groups, dim)
    inertia: float
    n_steps: int


def kmeans(
    vectors: npt.ArrayLike,
    n_groups: int,
    *,
    measure: str = "cosine",
    n_starts: int = 5,
    n_steps: int = 100,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Partition:
    """The best of several partitions of the rows into groups; the same seed gives the same one."""
    if measure not in MEASURES:
        raise InvalidInput(f"measure is {measure!r}; expected one of {', '.join(MEASURES)}")
    if n_starts < 1 or n_steps < 1:
        raise InvalidInput(f"n_starts is {n_starts} and n_steps {n_steps}; expected at least 1 of each")
    rows, origin = _prepared(vectors, measure)
    if not 1 <= n_groups <= len(rows):
        raise InvalidInput(
            f"{n_groups} groups were asked of {len(rows):,} rows; expected 1 to as many groups as rows"
        )
    generator = np.random.default_rng(seed)

    def tell(part: int, share: float) -> None:  # each start is two parts: to draw centres, and to move them
        if on_progress is not None:
            on_progress(int((part + share) / (2 * n_starts) * len(rows)), len(rows))

    begun = [_first_centres(rows, n_groups, generator, partial(tell, start)) for start in range(n_starts)]
    found = [
        _settle(rows, centres, measure, n_steps, partial(tell, n_starts + start))
        for start, centres in enumerate(begun)
    ]
    tell(2 * n_starts, 0.0)
    # Of beginnings that end alike the first: what float32 rounds away must not choose between them.
    nearly_least = min(each.inertia for each in found) + _ROUNDED_SHARE * float(np.vdot(rows, rows))
    best = next(each for each in found if each.inertia <= nearly_least)
    return replace(best, centres=best.centres + origin)


def _prepared(vectors: npt.ArrayLike, measure: str) -> tuple[Vectors, Vectors]:
    """The rows as they are compared, and the point that was taken from each."""
    units = normalise(vectors)  # refuses what is no (n, dim) of finite numbers
    if measure == "cosine" or not len(units):
        return units, np.zeros(units.shape[1], np.float32)
    rows = np.asarray(vectors, np.float32)
    # Around their mean the rows are short, and float32 keeps what lies between them.
    origin = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return rows - origin, origin


def _first_centres(rows: Vectors, n_groups: int, generator: np.random.Generator, tell: _Tell) -> Vectors:
    """Greedy k-means++: a few rows are drawn by their squared distance to the centres so far, the best stays.

    The best is the one that leaves the least distance to all rows.
    """
    n_drawn = 2 + int(np.log(n_groups))
    chosen = [int(generator.integers(len(rows)))]
    nearest = _squares(rows, rows[chosen])[:, 0]
    while len(chosen) < n_groups:
        tell(len(chosen) / n_groups)
        drawn = _drawn(nearest, n_drawn, generator)
        left = np.minimum(nearest[:, None], _squares(rows, rows[drawn]))
        best = int(left.sum(axis=0).argmin())
        chosen.append(int(drawn[best]))
        nearest = left[:, best]
    return rows[chosen].copy()


def _drawn(weights: _Doubles, n: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Rows, each as likely as its weight is of all; any rows where no weight is left."""
    total = weights.sum()
    if total <= 0:  # fewer distinct rows than groups
        return generator.integers(len(weights), size=n)
    places = np.searchsorted(np.cumsum(weights), generator.random(n) * total, side="right")
    drawn: npt.NDArray[np.int64] = np.minimum(places, len(weights) - 1)
    return drawn


def _settle(rows: Vectors, centres: Vectors, measure: str, n_steps: int, tell: _Tell) -> Partition:
    """Lloyd's steps: rows go to the nearest centre, centres to the mean of their rows."""
    groups, distances = assigned(rows, centres)
    step = 1
    while step < n_steps:
        tell(step / n_steps)
        centres = moved_centres(rows, groups, distances, centres, measure)
        moved, distances = assigned(rows, centres)
        step += 1
        if np.array_equal(moved, groups):
            break
        groups = moved
    return Partition(groups, centres, float(distances.sum()), step)


def assigned(rows: RowBlocks, centres: Vectors) -> tuple[npt.NDArray[np.int64], _Doubles]:
    """The nearest centre of each row, the first of equals, and its squared distance."""
    groups, distances = np.empty(len(rows), np.int64), np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        squares = _squares(rows[part], centres)
        groups[part] = squares.argmin(axis=1)
        distances[part] = squares.min(axis=1)
    return groups, distances


def moved_centres(
    rows: RowBlocks, groups: npt.NDArray[np.int64], distances: _Doubles, centres: Vectors, measure: str
) -> Vectors:
    """The means of the groups; a group that is empty begins anew at the row that is farthest off."""
    sizes = np.bincount(groups, minlength=len(centres))
    sums = np.zeros_like(centres)
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        members = (groups[part] == np.arange(len(centres))[:, None]).astype(np.float32)
        sums += _products(members, rows[part].T)
    moved = np.divide(sums, np.maximum(sizes, 1)[:, None], out=sums, casting="same_kind")
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        moved[empty] = rows[np.argsort(-distances, kind="stable")[: len(empty)]]
    return normalise(moved) if measure == "cosine" else moved


def _squares(rows: Vectors, centres: Vectors) -> _Doubles:
    """Squared Euclidean distances (n, n_groups); of unit vectors they are 2 - 2 cosine."""
    lengths = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", centres, centres)
    squares: _Doubles = np.maximum(lengths - 2 * _products(rows, centres), 0).astype(np.float64)
    return squares


def _products(a: Vectors, b: Vectors) -> Vectors:
    with np.errstate(all="ignore"):  # BLAS may flag what it computes in the unused lanes of a register
        products: Vectors = a @ b.T
    return products

"""Which vectors are copies of each other: a line that a corpus repeats a thousand times is compared once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors

Rows = npt.NDArray[np.int64]

_BLOCK_ROWS = 4_096


@dataclass(frozen=True, eq=False)
class Distinct:
    """The kinds of rows there are: copies, to the last bit, are of one kind."""

    firsts: Rows  # (kinds,) the first row of each kind, in ascending order
    kinds: Rows  # (n,) the kind of each row
    counts: Rows  # (kinds,) how many rows each kind has

    def of(self, vectors: Vectors) -> Vectors:
        """One vector a kind; the vectors themselves where each is of its own."""
        return vectors if len(self.firsts) == len(vectors) else vectors[self.firsts]

    def rows_of(self, kinds: Rows) -> Rows:
        """All rows of these kinds, in ascending order."""
        is_wanted = np.zeros(len(self.firsts), np.bool_)
        is_wanted[kinds] = True
        return np.flatnonzero(is_wanted[self.kinds])


def distinct(vectors: Vectors) -> Distinct:
    """The kinds of the rows, or each row for itself where too few are copies to be worth it."""
    rows = np.arange(len(vectors))
    unique, kinds, counts = np.unique(originals(vectors), return_inverse=True, return_counts=True)
    n_pairs_of_copies = int((counts * (counts - 1) // 2).sum())
    if n_pairs_of_copies <= len(rows):
        return Distinct(rows, rows, np.ones(len(rows), np.int64))
    return Distinct(unique, kinds, counts)


def originals(vectors: Vectors) -> Rows:
    """For each row the first one that it is a copy of (n,): itself, if none before it is the same."""
    hashes = _hashes(vectors)
    _, places, kinds = np.unique(hashes, return_index=True, return_inverse=True)
    firsts: Rows = places[kinds]
    rows = np.arange(len(vectors))
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        is_copy = firsts[part] != rows[part]
        suspects = rows[part][is_copy]
        # Rows of one hash that differ after all are of their own kind each, which is right and seldom.
        differ = (vectors[suspects] != vectors[firsts[suspects]]).any(axis=1)
        firsts[suspects[differ]] = suspects[differ]
    return firsts


def _hashes(vectors: Vectors) -> npt.NDArray[np.uint64]:
    """A number a row; equal rows have equal ones."""
    weights = np.random.default_rng(0).integers(2**64, size=vectors.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(len(vectors), np.uint64)
    for start in range(0, len(vectors), _BLOCK_ROWS):
        block = np.ascontiguousarray(vectors[start : start + _BLOCK_ROWS], np.float32)
        bits = block.view(np.uint32).astype(np.uint64)
        # The upper bits of small whole numbers differ only: they are brought down before they are weighed.
        hashes[start : start + len(block)] = ((bits ^ (bits >> np.uint64(16))) * weights).sum(axis=1)
    return hashes


def has_length(rows: Vectors) -> npt.NDArray[np.bool_]:
    """Which rows are not all zeros (n,)."""
    found = np.empty(len(rows), np.bool_)
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        found[part] = (rows[part] != 0).any(axis=1)
    return found

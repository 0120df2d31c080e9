"""What every index asks of its callers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.index.filters import Filter
from gemel.index.segment import RowLayout, as_array

Integers = npt.NDArray[np.int64]

MAX_K = 100_000  # hits of one query


def checked_numbers(name: str, ids: npt.ArrayLike) -> Integers:
    """Integer ids (n,) of at most 64 bits, none of them negative: -1 means no hit."""
    array = as_array(ids, name)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} are {array.dtype} {array.shape}; expected integers of shape (n,)")
    numbers = array.astype(np.int64)
    if numbers.min() < 0:
        raise InvalidInput(f"{name} have {array[numbers.argmin()]}; expected 0 or more, within 63 bits")
    return numbers


def checked_vectors(name: str, vectors: npt.ArrayLike, dim: int) -> Vectors:
    """Finite float32 rows (n, dim)."""
    rows: Vectors = np.asarray(RowLayout(dim, "float32").stored(vectors, name), np.float32)
    return rows


def checked_entries(ids: npt.ArrayLike, vectors: npt.ArrayLike, dim: int) -> tuple[Integers, Vectors]:
    """One vector for each id, each id once."""
    numbers, rows = checked_numbers("ids", ids), checked_vectors("vectors", vectors, dim)
    if len(numbers) != len(rows):
        raise InvalidInput(f"{len(numbers)} ids and {len(rows)} vectors were given; give one for each")
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) < len(numbers):
        raise InvalidInput(f"id {distinct[counts.argmax()]} is given twice; give every id once")
    return numbers, rows


def checked_count(name: str, n: object, at_least: int = 1) -> int:
    """A whole number that is not too small."""
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < at_least:
        raise InvalidInput(f"{name} is {n!r}; expected a whole number, at least {at_least}")
    return int(n)


def checked_window(k: int, offset: int) -> int:
    """How many hits have to be found, so that k are left behind the first `offset`."""
    n_wanted = checked_count("k", k) + checked_count("offset", offset, at_least=0)
    if n_wanted > MAX_K:
        raise InvalidInput(f"k and offset ask for {n_wanted:,} hits; expected {MAX_K:,} at most")
    return n_wanted


def read_filter(filter: str | Filter | None) -> Filter | None:
    """The filter, read if it is still a text."""
    return filter if filter is None or isinstance(filter, Filter) else Filter(filter)

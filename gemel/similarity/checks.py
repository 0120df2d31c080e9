"""What is asked of vectors, counts and bounds before they are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput

LONGEST = 1e18  # rows up to this length cannot overflow float32 in any measure
WORST = np.float32(-3e38)  # below every score that two rows of that length can have
BLOCK_ROWS = 1024  # a block of scores is then 4 MB: large enough for BLAS, small enough for the cache


def slices(n: int, *, start: int = 0, size: int | None = None) -> Iterator[slice]:
    """The rows from start to n, some at a time."""
    step = size or BLOCK_ROWS
    return (slice(at, min(at + step, n)) for at in range(start, n, step))


def as_rows(name: str, vectors: npt.ArrayLike) -> Vectors:
    """The vectors as float32 (n, dim), where they stand if they are that already; perhaps not finite."""
    array: npt.NDArray[Any] = np.asarray(vectors)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput(
            f"{name} has shape {array.shape}; expected (n, dim): make one vector a row with vector[None, :]"
        )
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"{name} holds {array.dtype}; expected real numbers: convert it to float32")
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float32, copy=False)


def finite_rows(name: str, vectors: npt.ArrayLike) -> Vectors:
    """The vectors as finite float32 (n, dim)."""
    rows = as_rows(name, vectors)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in slices(len(rows)):
            fits = np.einsum("ij,ij->i", rows[part], rows[part]) <= LONGEST**2  # false for NaN, too
            if not fits.all():
                refuse_row(name, part.start + int(fits.argmin()))
    return rows


def refuse_row(name: str, row: int) -> None:
    """Tell which row cannot be compared."""
    raise InvalidInput(
        f"{name} has NaN, infinity or a length above {LONGEST:g}; expected finite numbers: "
        f"remove or repair row {row}"
    )


def check_dimensions(names: tuple[str, ...], left: Vectors, right: Vectors) -> None:
    """Refuse two sets of rows that cannot be compared."""
    if left.shape[1] != right.shape[1]:
        raise InvalidInput(
            f"{' and '.join(names)} have {left.shape[1]} and {right.shape[1]} dimensions; "
            "expected the same: encode both with one model"
        )


def checked_count(name: str, n: object) -> int:
    """The number as an int, at least 1."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise InvalidInput(f"{name} is {n!r}; expected a whole number, at least 1: ask for one or more")
    return int(n)


def checked_bound(name: str, bound: float) -> np.float32:
    """The score as float32."""
    if not abs(bound) < -WORST:
        raise InvalidInput(f"{name} is {bound!r}; expected a finite float32: give a score to stay above")
    return np.float32(bound)

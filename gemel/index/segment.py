"""The file of vectors: rows are only ever appended, and reach the disk before the table speaks of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from gemel.data.durable import sync_folder
from gemel.errors import Damaged, InvalidInput
from gemel.index.checksums import checksum

DType = Literal["float32", "float16"]
Rows = npt.NDArray[np.floating[Any]]  # (n, dim), of a layout's type

_BLOCK_BYTES = 1 << 17  # small, so that verifying the blocks of a few hits takes milliseconds
_LONGEST = 1e18  # similarity's own bound: longer rows overflow float32


@dataclass(frozen=True)
class RowLayout:
    """What all vectors of a collection have in common."""

    dim: int
    dtype: DType

    def __post_init__(self) -> None:
        if self.dtype not in get_args(DType):
            raise InvalidInput(f"dtype is {self.dtype!r}; expected one of {', '.join(get_args(DType))}")
        if self.dim < 1:
            raise InvalidInput(f"dim is {self.dim!r}; expected the length of the model's vectors")

    @property
    def row_bytes(self) -> int:
        """The size of a vector."""
        return self.dim * np.dtype(self.dtype).itemsize

    @property
    def block_rows(self) -> int:
        """How many vectors share a checksum."""
        return max(1, _BLOCK_BYTES // self.row_bytes)

    def stored(self, vectors: npt.ArrayLike, name: str = "vectors") -> Rows:
        """The vectors as they are kept; what is not (n, dim), finite and within range is refused."""
        array = as_array(vectors, name)
        if array.ndim != 2 or array.shape[1] != self.dim or array.dtype.kind not in "fiu":
            raise InvalidInput(
                f"{name} are {array.dtype} {array.shape}; expected numbers of shape (n, {self.dim}), "
                "one row for each text"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            rows: Rows = np.ascontiguousarray(array, self.dtype)
            squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        fits = squares <= _LONGEST**2  # false for NaN, too
        if not fits.all():
            raise InvalidInput(
                f"{name} have NaN, infinity or a number too large for {self.dtype} in row {fits.argmin()}; "
                "expected finite numbers"
            )
        return rows


def as_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """The values as one array; rows of different lengths are none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidInput(
            f"{name} are not one array ({error}); expected numbers, as many in each row"
        ) from error


@dataclass(frozen=True)
class Appended:
    """What an append has done: the checksum of each row, and of each block that has changed."""

    row_checksums: list[int]
    block_checksums: dict[int, int]


class Segment:
    """One generation of the file of vectors."""

    def __init__(self, folder: Path, generation: int, layout: RowLayout) -> None:
        self.path = folder / segment_name(generation)
        self.layout = layout

    def append(self, rows: Rows, n_slots: int, last_checksum: int) -> Appended:
        """Write rows to the disk behind the first `n_slots`, over what an unfinished writer may have left.

        `last_checksum` is that of the last block, where it is not full yet.
        """
        start = n_slots * self.layout.row_bytes
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            if size < start:
                raise Damaged(
                    f"{self.path} has {size:,} bytes and {start:,} were expected; run the collection's doctor"
                )
            os.ftruncate(descriptor, start)
            try:
                _write_at(descriptor, rows.data.cast("B"), start)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, start)  # where the disk is full, the space is wanted
                raise
        finally:
            os.close(descriptor)
        if not n_slots:
            sync_folder(self.path.parent)
        blocks: dict[int, int] = {}
        for block, part in _blocks_of(n_slots, len(rows), self.layout.block_rows):
            before = last_checksum if block * self.layout.block_rows < n_slots else 0
            blocks[block] = checksum(rows[part], before)
        return Appended([checksum(row) for row in rows], blocks)

    def mapped(self, n_slots: int, may_be_short: bool = False) -> Rows:
        """The first `n_slots` rows, mapped from the file; fewer if it is short and may be."""
        if may_be_short:
            size = self.path.stat().st_size if self.path.exists() else 0
            n_slots = min(n_slots, size // self.layout.row_bytes)
        if not n_slots:
            return np.zeros((0, self.layout.dim), self.layout.dtype)
        size = self.path.stat().st_size
        if size < n_slots * self.layout.row_bytes:
            raise Damaged(
                f"{self.path} has {size:,} bytes and {n_slots * self.layout.row_bytes:,} were expected; "
                "bring back a copy, or let the collection's doctor encode the texts again"
            )
        return np.memmap(self.path, self.layout.dtype, "r", shape=(n_slots, self.layout.dim))


def segment_name(generation: int | str) -> str:
    """The name of the file of one generation, or the pattern of all."""
    return f"vectors-{generation}.bin"


def _write_at(descriptor: int, data: memoryview, start: int) -> None:
    while data:
        written = os.pwrite(descriptor, data[: 1 << 30], start)
        data, start = data[written:], start + written


def _blocks_of(n_slots: int, n_rows: int, block_rows: int) -> Iterator[tuple[int, slice]]:
    """The blocks that rows behind the first `n_slots` fall into, and which of the rows do."""
    for block in range(n_slots // block_rows, -(-(n_slots + n_rows) // block_rows)):
        yield block, slice(max(0, block * block_rows - n_slots), (block + 1) * block_rows - n_slots)

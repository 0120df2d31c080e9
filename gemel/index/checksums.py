"""Checksums of what is kept: a flipped byte is found where it would be used, and named."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

FILE_BLOCK_BYTES = 1 << 20

Checksums = npt.NDArray[np.uint32]


def content_hash(text: str) -> bytes:
    """What tells one text from another, so that none is encoded twice: 16 bytes."""
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def checksum(data: npt.NDArray[np.generic] | bytes, before: int = 0) -> int:
    """CRC-32, which finds every flip within 32 bits; that of bytes that follow others goes on from theirs."""
    return zlib.crc32(data.data if isinstance(data, np.ndarray) else data, before)


def row_checksum(parts: Iterable[object]) -> int:
    """The checksum of everything in a row of the table, each part with its type and its length."""
    pieces: list[bytes] = []
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape")
        pieces += (f"{type(part).__name__} {len(data)} ".encode(), data)
    return zlib.crc32(b"".join(pieces))


def file_checksums(path: Path, n_bytes: int) -> Checksums:
    """One checksum for each megabyte of the first bytes of a file."""
    starts = range(0, n_bytes, FILE_BLOCK_BYTES)

    def of_block(start: int) -> int:
        with path.open("rb") as file:
            file.seek(start)
            return zlib.crc32(file.read(min(FILE_BLOCK_BYTES, n_bytes - start)))

    # zlib lets go of the interpreter, so that threads share the work.
    with ThreadPoolExecutor(max_workers=4) as pool:
        return np.fromiter(pool.map(of_block, starts), np.uint32, len(starts))

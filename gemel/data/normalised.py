"""gemel's own layout of a set: UTF-8, a header, tabs and nothing else between cells, an LF after each row."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gemel.data.lines import decompressed
from gemel.data.official.parts import Part, clean
from gemel.data.tables import open_bytes, split_suffixes
from gemel.errors import InvalidInput

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Written:
    """A file that was written: how many rows it has, and the sha256 of its content unpacked."""

    path: str
    rows: int
    sha256: str


def write_part(part: Part, path: Path) -> Written:
    """Write a part as a table, gzipped if the name says so."""
    digest, n_rows = hashlib.sha256(), 0
    with _opened(path) as file:
        for line in _lines(part):
            file.write(line)
            digest.update(line)
            n_rows += 1
    return Written(path.name, n_rows - 1, digest.hexdigest())


def content_hash(path: Path) -> str:
    """The sha256 of a table's content, however it is packed."""
    digest = hashlib.sha256()
    with open_bytes(path, "a table") as file:
        try:
            stream = decompressed(file, split_suffixes(path.name)[1])
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
        except (OSError, EOFError) as error:
            raise InvalidInput(
                f"cannot read {path} ({error}); expected a whole and undamaged file"
            ) from error
    return digest.hexdigest()


def _lines(part: Part) -> Iterator[bytes]:
    yield ("\t".join(part.columns) + "\n").encode()
    for row in part.rows:
        yield ("\t".join(map(clean, row)) + "\n").encode()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        # Neither name nor time, so that equal content makes equal files.
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            yield packed  # type: ignore[misc]

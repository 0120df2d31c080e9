"""Vectors that `gemel encode` has written, memory-mapped where the format allows it."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.data.parquet import import_pyarrow
from gemel.data.texts import Id
from gemel.errors import InvalidInput

_EXPECTED = "expected a whole .npy, .npz or .parquet file, or a folder of parts, as gemel encode writes it"
_BATCH_ROWS = 4_096
# A member of a zip file begins with 30 bytes, of which the last four say how long its name and extras are.
_MEMBER_HEADER_BYTES = 30


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """The rows of a file of vectors, and their ids where the file has them."""

    vectors: Vectors
    ids: Sequence[Id] | None = None


def open_vectors(path: str | os.PathLike[str]) -> StoredVectors:
    """The vectors of a .npy, .npz or .parquet file, or of a folder of parts."""
    file = Path(path)
    if file.is_dir():
        return _read_parts(file)
    read = {".npy": _open_npy, ".npz": _open_npz, ".parquet": _read_parquet}.get(file.suffix.lower())
    if read is None:
        raise InvalidInput(f"{file} has an unknown suffix; {_EXPECTED}")
    try:
        stored = read(file)
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no file {file}; {_EXPECTED}") from error
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, struct.error) as error:
        raise InvalidInput(f"cannot read vectors from {file} ({error}); {_EXPECTED}") from error
    if stored.vectors.ndim != 2 or not stored.vectors.shape[1]:
        raise InvalidInput(f"{file} holds an array of shape {stored.vectors.shape}; expected (rows, dim)")
    return stored


def _open_npy(file: Path) -> StoredVectors:
    return StoredVectors(_as_float32(np.load(file, mmap_mode="r", allow_pickle=False)))


def _open_npz(file: Path) -> StoredVectors:
    with np.load(file, allow_pickle=False) as arrays:
        ids = arrays["ids"].tolist() if "ids" in arrays else None
        mapped = _mapped_member(file, "embeddings.npy")
        vectors = arrays["embeddings"] if mapped is None else mapped
    return StoredVectors(_as_float32(vectors), ids)


def _mapped_member(file: Path, name: str) -> npt.NDArray[Any] | None:
    """The array of a member as a memory map of the archive itself, or None where it is compressed."""
    with zipfile.ZipFile(file) as archive, file.open("rb") as opened:
        member = archive.getinfo(name)
        if member.compress_type != zipfile.ZIP_STORED:
            return None
        opened.seek(member.header_offset)
        n_name, n_extra = struct.unpack("<26x2H", opened.read(_MEMBER_HEADER_BYTES))
        opened.seek(n_name + n_extra, os.SEEK_CUR)
        version = np.lib.format.read_magic(opened)
        read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_{version[1]}")
        shape, is_fortran, dtype = read_header(opened)
        if is_fortran or dtype.hasobject or not all(shape):
            return None
        return np.memmap(opened, dtype, "r", opened.tell(), shape)


def _read_parquet(file: Path) -> StoredVectors:
    pyarrow = import_pyarrow("reading parquet")
    try:
        table = pyarrow.parquet.ParquetFile(file)
        kind = table.schema_arrow.field("embedding").type
        vectors = np.empty((table.metadata.num_rows, kind.list_size), np.float32)
        ids: list[Id] = []
        for batch in table.iter_batches(_BATCH_ROWS):
            rows = batch.column("embedding").flatten().to_numpy(zero_copy_only=False)
            vectors[len(ids) : len(ids) + len(batch)] = rows.reshape(len(batch), -1)
            ids += batch.column("id").to_pylist()
    except (pyarrow.ArrowException, AttributeError) as error:
        raise ValueError(str(error)) from error
    return StoredVectors(vectors, ids)


def _read_parts(folder: Path) -> StoredVectors:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        is_complete, n_rows, dim = manifest["is_complete"], manifest["rows"], manifest["dim"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{folder} is no folder of vectors ({error}); {_EXPECTED}") from None
    if not is_complete:
        raise InvalidInput(f"{folder} is not complete; give the command again that has begun it")
    vectors, ids = np.empty((n_rows, dim), np.float32), list[Id]()
    for file in sorted(folder.glob("part-*.parquet")):
        part = open_vectors(file)
        vectors[len(ids) : len(ids) + len(part.vectors)] = part.vectors
        ids += part.ids or []
    if len(ids) != n_rows:
        raise InvalidInput(f"{folder} has {len(ids):,} rows; expected {n_rows:,} by its manifest.json")
    return StoredVectors(vectors, ids)


def _as_float32(vectors: npt.NDArray[Any]) -> Vectors:
    if vectors.dtype.kind != "f":
        raise ValueError(f"its numbers are of type {vectors.dtype}")
    return np.asanyarray(vectors, np.float32)

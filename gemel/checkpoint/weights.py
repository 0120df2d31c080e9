"""safetensors files, opened without torch and checked before they are believed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidModel

SINGLE_FILE = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin", "pytorch_model.pt")
HEADER_LIMIT = 100_000_000  # the format's own limit

_DTYPES: dict[str, type[np.generic]] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": np.uint16,  # numpy has no bfloat16: widened on reading
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


@dataclass(frozen=True)
class TensorEntry:
    """Where a tensor stands in its file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class WeightFile:
    """One safetensors file whose header has been read and found to fit the file."""

    path: Path
    entries: Mapping[str, TensorEntry]

    @classmethod
    def open(cls, path: Path) -> WeightFile:
        """Read and check the header; the tensors stay on disk."""
        size = path.stat().st_size
        with path.open("rb") as file:
            header_size = int.from_bytes(file.read(8), "little")
            if size < 8 or header_size > min(HEADER_LIMIT, size - 8):
                raise InvalidModel(f"{path} is not a whole safetensors file ({size:,} bytes): get it again")
            try:
                header = json.loads(file.read(header_size))
                entries = dict(_entries(header, data_start=8 + header_size))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidModel(
                    f"{path} has a damaged safetensors header ({error}): get it again"
                ) from None
        promised = max((entry.end for entry in entries.values()), default=8 + header_size)
        if promised != size:
            raise InvalidModel(
                f"{path} is damaged: its header promises {promised:,} bytes and the file has {size:,}; "
                "get it again"
            )
        return cls(path, entries)

    def raw(self, name: str) -> memoryview:
        """A tensor's bytes, mapped from disk."""
        entry = self.entries[name]
        if entry.start == entry.end:
            return memoryview(b"")
        return np.memmap(self.path, np.uint8, "r", entry.start, (entry.end - entry.start,)).data

    def read(self, name: str) -> npt.NDArray[Any]:
        """A tensor as an array of its own."""
        entry = self.entries[name]
        array = np.frombuffer(self.raw(name), _DTYPES[entry.dtype]).reshape(entry.shape)
        if entry.dtype == "BF16":
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array.copy()


def _entries(header: Mapping[str, Any], data_start: int) -> Iterator[tuple[str, TensorEntry]]:
    for name, value in header.items():
        if name == "__metadata__":
            continue
        start, end = value["data_offsets"]
        entry = TensorEntry(value["dtype"], tuple(value["shape"]), data_start + start, data_start + end)
        if entry.dtype not in _DTYPES:
            raise ValueError(f"tensor {name!r} has the unknown type {entry.dtype!r}")
        n_bytes = int(np.prod(entry.shape, dtype=np.int64)) * np.dtype(_DTYPES[entry.dtype]).itemsize
        if not 0 <= start <= end or end - start != n_bytes:
            raise ValueError(f"tensor {name!r} of shape {entry.shape} cannot fill {end - start} bytes")
        yield name, entry


def find_weights(folder: Path) -> tuple[Path, ...]:
    """The safetensors files of a folder, one or several shards; a pickle is refused."""
    if (folder / SINGLE_FILE).is_file():
        return (folder / SINGLE_FILE,)
    if (folder / SHARD_INDEX).is_file():
        return _shards(folder)
    for pickle in PICKLES:
        if (folder / pickle).exists():
            raise InvalidModel(
                f"{folder} holds its weights in a pickle ({pickle}), which can run code when it is opened; "
                f"make a safe copy with: gemel convert {folder} NEW_FOLDER"
            )
    raise InvalidModel(f"{folder} has no {SINGLE_FILE}: the weights are missing, get the folder again")


def _shards(folder: Path) -> tuple[Path, ...]:
    index = json.loads((folder / SHARD_INDEX).read_text(encoding="utf-8"))
    names = sorted(set(index.get("weight_map", {}).values()))
    for name in names:
        if Path(name).name != name or not (folder / name).is_file():
            raise InvalidModel(f"{folder / SHARD_INDEX} names {name!r}, which is not in the folder")
    return tuple(folder / name for name in names)


def open_weights(files: tuple[Path, ...]) -> dict[str, WeightFile]:
    """Which file holds each tensor, all headers checked."""
    return {name: weights for weights in map(WeightFile.open, files) for name in weights.entries}


def read_weights(files: tuple[Path, ...]) -> dict[str, npt.NDArray[Any]]:
    """Every tensor of the files as an array of its own."""
    return {name: weights.read(name) for name, weights in open_weights(files).items()}


def check_shapes(weights: WeightFile, expected: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a file that lacks a tensor or has it in another shape, naming both shapes."""
    for name, shape in expected.items():
        if name not in weights.entries:
            raise InvalidModel(f"{weights.path} lacks the tensor {name!r} of shape {shape}")
        found = weights.entries[name].shape
        if found != shape:
            raise InvalidModel(f"{weights.path}: tensor {name!r} has shape {found}, expected {shape}")

"""safetensors files, opened without torch and checked before they are believed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import fields
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
                _check_order(entries, data_start=8 + header_size)
            except (ValueError, RecursionError) as error:
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

    def view(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor as float32; where it is stored so, its pages are those of the file."""
        entry = self.entries[name]
        if entry.dtype != "F32":
            return np.ascontiguousarray(self.read(name), np.float32)
        return np.frombuffer(self.raw(name), np.float32).reshape(entry.shape)

    def read(self, name: str) -> npt.NDArray[Any]:
        """A tensor as an array of its own."""
        entry = self.entries[name]
        array = np.frombuffer(self.raw(name), _DTYPES[entry.dtype]).reshape(entry.shape)
        if entry.dtype == "BF16":
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array.copy()


def _entries(header: Any, data_start: int) -> Iterator[tuple[str, TensorEntry]]:
    if not isinstance(header, dict):
        raise ValueError(f"it holds a {type(header).__name__}, and a JSON object was expected")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("__metadata__ is not an object of texts")
    for name, value in header.items():
        value = value if isinstance(value, dict) else {}
        dtype, shape, offsets = value.get("dtype"), value.get("shape"), value.get("data_offsets")
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise ValueError(f"tensor {name!r} has the unknown type {dtype!r}")
        if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
            raise ValueError(f"tensor {name!r} has the shape {shape!r} and the offsets {offsets!r}")
        start, end = offsets
        if end - start != math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize:
            raise ValueError(f"tensor {name!r} of shape {tuple(shape)} cannot fill {end - start} bytes")
        yield name, TensorEntry(dtype, tuple(shape), data_start + start, data_start + end)


def _are_counts(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _check_order(entries: Mapping[str, TensorEntry], data_start: int) -> None:
    """Tensors stand end to end, as the format demands: none overlap, and nothing hides between them."""
    position = data_start
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != position:
            raise ValueError(f"tensor {name!r} starts at byte {entry.start:,}, and {position:,} was expected")
        position = entry.end


def find_weights(folder: Path, root: Path | None = None) -> tuple[Path, ...]:
    """The safetensors files of a folder, one or several shards; a pickle is refused.

    `root` is the whole model's folder: converting a part of a model would lose its pooling.
    """
    if (folder / SINGLE_FILE).is_file():
        return (folder / SINGLE_FILE,)
    if (folder / SHARD_INDEX).is_file():
        return _shards(folder)
    for pickle in PICKLES:
        if (folder / pickle).exists():
            raise InvalidModel(
                f"{folder} holds its weights in a pickle ({pickle}), which can run code when it is opened; "
                f"make a safe copy with: gemel convert {root or folder} NEW_FOLDER"
            )
    raise InvalidModel(f"{folder} has no {SINGLE_FILE}: the weights are missing, get the folder again")


def _shards(folder: Path) -> tuple[Path, ...]:
    file = folder / SHARD_INDEX
    names = sorted(set(fields.text_table(fields.read_json(file), "weight_map", str(file)).values()))
    if not names:
        raise InvalidModel(f"{file} has no weight_map, and the shard of each tensor was expected")
    for name in names:
        if not name.isprintable() or Path(name).name != name or not (folder / name).is_file():
            raise InvalidModel(f"{file} names {name!r}, which is not in the folder")
    return tuple(folder / name for name in names)


def open_weights(files: tuple[Path, ...]) -> dict[str, WeightFile]:
    """Which file holds each tensor, all headers checked."""
    return {name: weights for weights in map(WeightFile.open, files) for name in weights.entries}


def read_weights(files: tuple[Path, ...]) -> dict[str, npt.NDArray[Any]]:
    """Every tensor of the files as an array of its own."""
    return {name: weights.read(name) for name, weights in open_weights(files).items()}


def check_shapes(weights: WeightFile, expected: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a file that lacks a tensor, has it in another shape or has one too many, naming it."""
    for name, shape in expected.items():
        if name not in weights.entries:
            raise InvalidModel(f"{weights.path} lacks the tensor {name!r} of shape {shape}")
        found = weights.entries[name].shape
        if found != shape:
            raise InvalidModel(f"{weights.path}: tensor {name!r} has shape {found}, expected {shape}")
    for name in sorted(set(weights.entries) - set(expected)):
        raise InvalidModel(
            f"{weights.path} has the tensor {name!r}, which its config.json has no place for; "
            f"expected {', '.join(expected)}"
        )

"""An approximate index: a graph of near neighbours (HNSW, by usearch) in one file with its own checksums.

The file is usearch's own, with a footer behind it: what the index was made with, and a checksum for every
megabyte. A flipped bit can lead a search out of the graph's memory: hence it is verified before it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gemel.contracts import Hits, Vectors
from gemel.data.durable import sync_folder
from gemel.errors import Damaged, InvalidInput, MissingExtra, WriteFailed
from gemel.index.arguments import Integers, checked_count, checked_entries, checked_numbers, checked_vectors
from gemel.index.checksums import checksum, file_checksums
from gemel.index.scan import nothing_found
from gemel.similarity import top_k
from gemel.threads import thread_lock

_METRICS = {"cosine": "cos", "dot": "ip", "euclidean": "l2sq"}
_DTYPES = {"float32": "f32", "float16": "f16", "int8": "i8"}
_MARK = b"gemel-hnsw-1"
_ADDED_ALONE = 2_000
_EXACT_SHARE = 0.02  # where fewer than this are allowed, looking at all of them is quicker and exact

Precision = Literal["float32", "float16", "int8"]


@dataclass(frozen=True)
class HnswParameters:
    """How a graph is made and searched: more of each is more exact, slower and larger."""

    dim: int
    measure: str = "cosine"
    dtype: Precision = "float16"
    connectivity: int = 16
    expansion_add: int = 128
    expansion_search: int = 64

    def __post_init__(self) -> None:
        for name in ("dim", "connectivity", "expansion_add", "expansion_search"):
            checked_count(name, getattr(self, name))
        if self.measure not in _METRICS:
            raise InvalidInput(
                f"measure is {self.measure!r}; expected {', '.join(_METRICS)}: for others use ExactIndex"
            )
        if self.dtype not in _DTYPES:
            raise InvalidInput(f"dtype is {self.dtype!r}; expected one of {', '.join(_DTYPES)}")
        if self.dtype == "int8" and self.measure != "cosine":
            raise InvalidInput(f"int8 keeps directions only, and {self.measure} needs lengths; use float16")


class HnswIndex:
    """Vectors under integer ids, found in a few steps from neighbour to neighbour; needs gemel[index]."""

    def __init__(self, parameters: HnswParameters | int, path: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(parameters, HnswParameters):
            parameters = HnswParameters(parameters)
        self.parameters = parameters
        self.path = None if path is None else Path(path)
        self.is_mapped = False
        self._graph = _new_graph(parameters)
        self._lock = thread_lock()  # usearch's own threads are numbered from 0 in every call
        self._is_changing = False

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, mapped: bool = False) -> HnswIndex:
        """The index of a file, wholly verified; a mapped one stays on the disk and cannot be changed."""
        if not Path(path).is_file():
            raise InvalidInput(f"{path} is not the file of an index; write one with HnswIndex.save")
        parameters = verified_parameters(Path(path))
        index = cls(parameters, path)
        try:
            index._graph.view(os.fspath(path)) if mapped else index._graph.load(os.fspath(path))
        except RuntimeError as error:
            raise Damaged(f"{path} cannot be read ({error}); make the index again") from error
        index.is_mapped = mapped
        return index

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Keep one vector (n, dim) under each id (n,); an id that is there already gets the new one."""
        numbers, rows = checked_entries(ids, vectors, self.parameters.dim)
        self._check_changeable()
        if len(numbers):
            with self._held(changes=True):
                self._remove(numbers)
                # The first ones go in one by one: threads that begin a graph together may leave it in parts.
                n_alone = max(0, _ADDED_ALONE - len(self._graph))
                self._graph.add(numbers[:n_alone].view(np.uint64), rows[:n_alone], threads=1)
                self._graph.add(numbers[n_alone:].view(np.uint64), rows[n_alone:])

    def remove(self, ids: npt.ArrayLike) -> int:
        """Forget these ids; how many of them were there."""
        numbers = np.unique(checked_numbers("ids", ids))
        self._check_changeable()
        with self._held(changes=True):
            return self._remove(numbers)

    def search(self, queries: npt.ArrayLike, k: int, *, allowed: npt.ArrayLike | None = None) -> Hits:
        """The k ids that are (nearly always) most like each query, among the `allowed` ones."""
        asked, k = checked_vectors("queries", queries, self.parameters.dim), checked_count("k", k)
        if allowed is None:
            return self._nearest(asked, k)
        numbers = np.unique(checked_numbers("allowed", allowed))
        with self._held():
            numbers = numbers[self._contains(numbers)]
        if len(numbers) <= max(_EXACT_SHARE * len(self), k):
            return self._compared(asked, numbers, k)
        # So many that the allowed among them are enough, with some to spare.
        n_seen = 2 * k * len(self) // len(numbers) + 16
        hits = self._nearest(asked, min(n_seen, len(self)))
        hits = only(hits, np.isin(hits.ids, numbers), k)
        short = np.flatnonzero(hits.ids[:, -1] < 0)
        if len(short) and len(numbers):
            more = self._compared(asked[short], numbers, k)
            hits.ids[short], hits.scores[short] = more.ids, more.scores
        return hits

    def flush(self) -> None:
        """Write the index to its file, which changes whole or not at all."""
        if self.path is not None and not self.is_mapped:
            self.save(self.path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file of this name, which appears whole or not at all."""
        target = Path(path)
        draft = target.with_name(f".{target.name}.unfinished")
        try:
            with self._held():
                self._graph.save(os.fspath(draft))
                if draft.stat().st_size != self._graph.serialized_length:
                    raise OSError("the file is shorter than what was written to it")
            _append_footer(draft, self.parameters)
            draft.replace(target)
            sync_folder(target.parent)
        except (OSError, RuntimeError) as error:
            draft.unlink(missing_ok=True)
            raise WriteFailed(
                f"{target} could not be written ({error}); what was there is still there"
            ) from error

    def ids(self) -> Integers:
        """All ids, in no order."""
        with self._held():
            found = np.asarray(self._graph.keys[: len(self)]) if len(self) else np.zeros(0)
        return found.astype(np.int64)

    def __len__(self) -> int:
        return len(self._graph)

    def __contains__(self, id: int) -> bool:
        with self._held():
            return bool(self._contains(np.array([id], np.int64))[0])

    @contextmanager
    def _held(self, *, changes: bool = False) -> Iterator[None]:
        """Keep the other threads from the graph."""
        with self._lock:
            if self._is_changing:  # since before this process was forked: nobody will end it here
                raise InvalidInput(
                    "the index was being changed by a thread when this process was forked, and is unfinished "
                    "here; open it from its file, fork while nothing changes, or start processes by spawn"
                )
            self._is_changing = changes
            try:
                yield
            finally:
                self._is_changing = False

    def _check_changeable(self) -> None:
        if self.is_mapped:
            raise InvalidInput(f"{self.path} is mapped and cannot be changed; open it with mapped=False")

    def _remove(self, numbers: Integers) -> int:
        present = numbers[self._contains(numbers)]
        if len(present):
            self._graph.remove(present.view(np.uint64))
        return len(present)

    def _contains(self, numbers: Integers) -> npt.NDArray[np.bool_]:
        if not len(numbers) or not len(self):
            return np.zeros(len(numbers), np.bool_)
        return np.atleast_1d(np.asarray(self._graph.contains(numbers.view(np.uint64)), np.bool_))

    def _nearest(self, asked: Vectors, k: int) -> Hits:
        hits = nothing_found(len(asked), k)
        n_found = min(k, len(self))
        if not len(asked) or not n_found:
            return hits
        with self._held():
            self._graph.expansion_search = max(self.parameters.expansion_search, n_found)
            matches = self._graph.search(asked, n_found)
            # A lone query gets an answer without counts, of as many hits as there are.
            counts = np.asarray(getattr(matches, "counts", [len(matches)]))[:, None]
            keys = np.asarray(matches.keys).reshape(len(asked), -1).astype(np.int64)
            distances = np.asarray(matches.distances).reshape(len(asked), -1)
        width = keys.shape[1]
        is_hit = np.arange(width) < counts
        hits.ids[:, :width] = np.where(is_hit, keys, -1)
        # What stands behind the last hit was never written.
        scores = self._scores(np.where(is_hit, distances, 0))
        hits.scores[:, :width] = np.where(is_hit, scores, -np.inf)
        return hits

    def _scores(self, distances: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self.parameters.measure == "euclidean":
            return 0 - np.sqrt(np.maximum(distances, 0))
        return 1 - distances

    def _compared(self, asked: Vectors, numbers: Integers, k: int) -> Hits:
        """The exact answer among a few ids, as far as the kept precision goes."""
        if not len(numbers) or not len(asked):
            return nothing_found(len(asked), k)
        with self._held():
            rows = np.stack([np.asarray(row) for row in self._graph.get(numbers.view(np.uint64))])
        hits = top_k(asked, rows.astype(np.float32), k, self.parameters.measure)
        return Hits(np.where(hits.ids >= 0, numbers[hits.ids], -1), hits.scores)


def only(hits: Hits, kept: npt.NDArray[np.bool_], k: int) -> Hits:
    """The first k of the hits that are kept, in their order."""
    order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
    is_hit = np.take_along_axis(kept & (hits.ids >= 0), order, axis=1)
    chosen = nothing_found(len(hits.ids), k)
    width = order.shape[1]
    chosen.ids[:, :width] = np.where(is_hit, np.take_along_axis(hits.ids, order, axis=1), -1)
    chosen.scores[:, :width] = np.where(is_hit, np.take_along_axis(hits.scores, order, axis=1), -np.inf)
    return chosen


def verified_parameters(path: Path) -> HnswParameters:
    """What the graph in a file was made with, once every byte has been compared with its checksum."""
    try:
        footer = json.loads(_footer(path))
        expected = np.frombuffer(bytes.fromhex(footer["checksums"]), np.uint32)
        if not np.array_equal(file_checksums(path, footer["n_bytes"]), expected):
            raise ValueError("a checksum is wrong")
        return HnswParameters(**footer["parameters"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{path} is not what was written there ({error}); make the index again") from error


def footer_checksum(path: Path) -> int:
    """What tells one file of an index from every other, without reading all of it."""
    try:
        return checksum(_footer(path))
    except (OSError, ValueError) as error:
        raise Damaged(f"{path} is not what was written there ({error}); make the index again") from error


def _footer(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_MARK) - 8))
        end = file.read()
        n_bytes = int.from_bytes(end[:8], "little")
        if end[8:] != _MARK or n_bytes > size - len(end):
            raise ValueError("its end is not that of an index")
        file.seek(size - len(end) - n_bytes)
        return file.read(n_bytes)


def _append_footer(path: Path, parameters: HnswParameters) -> None:
    n_bytes = path.stat().st_size
    footer = {
        "parameters": asdict(parameters),
        "n_bytes": n_bytes,
        "checksums": file_checksums(path, n_bytes).tobytes().hex(),
    }
    data = json.dumps(footer).encode()
    with path.open("ab") as file:
        file.write(data + len(data).to_bytes(8, "little") + _MARK)
        file.flush()
        os.fsync(file.fileno())


def _new_graph(parameters: HnswParameters) -> Any:
    try:
        from usearch.index import Index as Graph
    except ImportError as error:
        raise MissingExtra("an approximate index", "index") from error
    return Graph(
        ndim=parameters.dim,
        metric=_METRICS[parameters.measure],
        dtype=_DTYPES[parameters.dtype],
        connectivity=parameters.connectivity,
        expansion_add=parameters.expansion_add,
        expansion_search=parameters.expansion_search,
    )

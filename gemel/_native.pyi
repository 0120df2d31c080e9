"""The compiled module, as Python sees it; sources in native/."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float32]

def cpu_features() -> dict[str, bool]: ...
def usable_cores() -> int: ...
def instruction_sets() -> list[str]: ...
def tile_ceiling(instruction_set: str, is_int8: bool, n_threads: int, seconds: float) -> float: ...
def int8_sums(
    instruction_set: str, rows: npt.NDArray[np.uint8], weights: _Floats, out: npt.NDArray[np.int32]
) -> None: ...

class WordPiece:
    def __init__(
        self, vocabulary: Sequence[str], unknown: int, lowercase: bool, stops: str, most_letters: int
    ) -> None: ...
    def encode(
        self, texts: list[str], prefix: Sequence[int], suffix: Sequence[int], room: int
    ) -> tuple[
        npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]
    ]: ...

class Engine:
    def __init__(self, settings: Mapping[str, Any], instruction_set: str, n_threads: int) -> None: ...
    def set_embeddings(
        self, words: _Floats, positions: _Floats | None, types: _Floats | None, gain: _Floats, shift: _Floats
    ) -> None: ...
    def set_projection(self, weight: _Floats, bias: _Floats | None) -> None: ...
    def set_distance_bias(self, by_head: _Floats) -> None: ...
    def add_layer(self, tensors: Mapping[str, _Floats]) -> None: ...
    def add_dense(
        self,
        weight: _Floats,
        bias: _Floats | None,
        activation: str,
        adds_input: bool = False,
        residual: _Floats | None = None,
    ) -> None: ...
    def add_normalisation(self) -> None: ...
    def encode(
        self,
        ids: npt.NDArray[np.int32],
        starts: npt.NDArray[np.int64],
        types: npt.NDArray[np.int32] | None,
        modes: Sequence[str],
        skipped: Sequence[int],
        result: str,
        out: _Floats,
    ) -> None: ...
    def finish(self, pooled: _Floats, out: _Floats) -> None: ...
    @property
    def n_bytes(self) -> int: ...
    @property
    def n_threads(self) -> int: ...
    @property
    def instruction_set(self) -> str: ...

_Columns = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], _Floats]

class BestPairs:
    def __init__(self, limit: int, at_least: float) -> None: ...
    def sorted(self) -> _Columns: ...

class PackedRows:
    def __init__(
        self, rows: _Floats, is_cosine: bool, instruction_set: str, n_threads: int, most_bytes: int
    ) -> None: ...
    def first_beyond(self, square: float) -> int: ...
    def above(
        self, right: PackedRows, begin: int, end: int, at_least: float, most: int
    ) -> _Columns | None: ...
    def best(self, right: PackedRows, begin: int, end: int, pairs: BestPairs) -> None: ...
    def search(
        self,
        queries: _Floats,
        allowed: npt.NDArray[np.uint8] | None,
        itself: int,
        ids: npt.NDArray[np.int64],
        scores: _Floats,
    ) -> None: ...
    def score(
        self,
        right: PackedRows,
        first: npt.NDArray[np.int64],
        second: npt.NDArray[np.int64],
        scores: _Floats,
    ) -> None: ...

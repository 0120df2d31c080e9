"""What a step of the batcher computes with each kind of model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.pair_scorer import PairScorer
from gemel.text_encoder import FolderEncoder, TextEncoder
from gemel.tokens import Ids, Pieces


class ArrayRunner:
    """Results that are rows of arrays."""

    def join(self, parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The rows of all parts."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class SentenceRunner(ArrayRunner):
    """Token sequences into sentence vectors."""

    def __init__(self, encoder: FolderEncoder) -> None:
        self._encoder = encoder

    def run(self, items: Sequence[Ids]) -> Vectors:
        """One vector a sequence (n, dim)."""
        return self._encoder.encode_pieces(Pieces.of(items, len(items)))


class TokenRunner:
    """Token sequences into the vectors of their tokens."""

    def __init__(self, encoder: FolderEncoder) -> None:
        self._encoder = encoder

    def run(self, items: Sequence[Ids]) -> list[Vectors]:
        """The token vectors (tokens, hidden_size) of each sequence."""
        pieces = Pieces.of(items, len(items))
        vectors = self._encoder.encode_tokens(pieces)
        return np.split(vectors, pieces.starts[1:-1]) if items else []

    def join(self, parts: list[list[Vectors]]) -> list[Vectors]:
        """The sequences of all parts."""
        return [vectors for part in parts for vectors in part]


class TextRunner(ArrayRunner):
    """Texts into vectors, for encoders that have no tokens to batch."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder

    def run(self, items: Sequence[str]) -> Vectors:
        """One vector a text (n, dim)."""
        return self._encoder.encode(items, show_progress=False)


class PairRunner(ArrayRunner):
    """Tokenised pairs into scores."""

    def __init__(self, reranker: PairScorer) -> None:
        self._reranker = reranker

    def run(self, items: Sequence[tuple[Ids, Ids]]) -> npt.NDArray[np.float32]:
        """The scores (n, labels) of pairs, each as its token ids and token types."""
        return self._reranker.score_tokens([ids for ids, _ in items], [types for _, types in items])

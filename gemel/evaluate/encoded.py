"""Texts beside their vectors: every distinct one is encoded once, however often it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gemel.contracts import Encoder, Vectors


class EncodedTexts:
    """The vectors of texts by the texts themselves."""

    def __init__(self, encoder: Encoder, texts: Iterable[str]) -> None:
        self._rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self._vectors = encoder.encode(list(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, in the order given (n, dim)."""
        vectors: Vectors = self._vectors[[self._rows[text] for text in texts]]
        return vectors

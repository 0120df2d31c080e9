"""Classes of text pairs, from a head that was trained together with its encoder, or by a cross-encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Reranker, Vectors, checked_pairs
from gemel.errors import InvalidModel


class PairClassifier:
    """softmax(W (u, v, |u-v|)): whether one text follows from another, each read only once."""

    def __init__(
        self,
        encoder: Encoder,
        weights: Mapping[str, npt.NDArray[Any]],
        concatenation: Sequence[str],
        labels: Sequence[str],
    ) -> None:
        self.encoder = encoder
        self.labels = tuple(labels)
        self._concatenation = tuple(concatenation)
        self._matrix = weights["classifier.weight"]  # (labels, dim x parts)
        expected = (len(self.labels), encoder.dim * len(self._concatenation))
        if self._matrix.shape != expected:
            raise InvalidModel(
                f"the classifier has the shape {self._matrix.shape}, and {expected} fits this encoder"
            )

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """How likely each label is for each pair (n, labels); rows add up to 1."""
        pairs = checked_pairs(pairs)
        texts = [text for pair in pairs for text in pair]
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}  # premises return
        vectors = self.encoder.encode(list(rows))[[rows[text] for text in texts]]
        return self.probabilities_of(vectors[::2], vectors[1::2])

    def probabilities_of(self, u: Vectors, v: Vectors) -> npt.NDArray[np.float32]:
        """How likely each label is for each pair of vectors (n, labels)."""
        return _softmax(_concatenate(u, v, self._concatenation) @ self._matrix.T)

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """The likeliest label of each pair."""
        return [self.labels[best] for best in self.probabilities(pairs).argmax(axis=1)]


class CrossPairClassifier:
    """The same question to a cross-encoder, which reads both texts at once."""

    def __init__(self, reranker: Reranker, labels: Sequence[str]) -> None:
        self.reranker, self.labels = reranker, tuple(labels)

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """How likely each label is for each pair (n, labels); rows add up to 1."""
        return _softmax(self.reranker.score(checked_pairs(pairs)))


def _softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    shares: npt.NDArray[np.float32] = exponentials / exponentials.sum(axis=1, keepdims=True)
    return shares


def _concatenate(u: Vectors, v: Vectors, parts: Sequence[str]) -> Vectors:
    made = {"u": u, "v": v, "|u-v|": np.abs(u - v), "u*v": u * v}
    return np.concatenate([made[part] for part in parts], axis=1)

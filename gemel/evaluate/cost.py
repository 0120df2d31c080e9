"""What two ways of comparing texts cost: vectors that are made once, or a reranker that reads every pair.

The paper's opening figures (section 1): the most similar pair of 10,000 sentences takes 49,995,000 readings,
65 hours with BERT, against seconds with vectors; and a new question has to be read with every stored one.
Here both are measured on a sample on this machine, and what would take too long is extrapolated, with that
said.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gemel.contracts import Encoder, Reranker, Vectors, checked_texts
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.correlation import spearman
from gemel.evaluate.encoded import EncodedTexts
from gemel.similarity import pairwise, top_k, top_pairs

_N_QUERIES = 20  # of which the median is taken
_N_WARMING = 8


@dataclass(frozen=True)
class Cost:
    """Seconds for a collection of `n_texts`, from speeds that were measured on fewer; quality beside them."""

    n_texts: int
    n_measured_texts: int
    n_measured_pairs: int
    texts_per_second: float  # that the encoder reads
    pairs_per_second: float  # that the reranker reads
    encoder_mining_seconds: float  # the most similar pair of the collection, encoding included
    reranker_mining_seconds: float
    encoder_query_seconds: float  # one new text against the collection, whose vectors are there
    reranker_query_seconds: float
    encoder_spearman: float | None = None
    reranker_spearman: float | None = None

    @property
    def n_pairs(self) -> int:
        """The pairs that a cross-encoder would have to read to find the most similar one."""
        return self.n_texts * (self.n_texts - 1) // 2

    @property
    def protocol(self) -> str:
        """What was measured and what was not, in words."""
        return (
            f"measured: {self.n_measured_texts:,} texts encoded and searched exactly, "
            f"{self.n_measured_pairs:,} pairs read by the reranker, the median of {_N_QUERIES} queries; "
            f"extrapolated to {self.n_texts:,} texts: encoding and the search of a query in proportion to "
            "the texts, the search for the best pair to their square, the reranker to its "
            f"{self.n_pairs:,} pairs"
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {**asdict(self), "n_pairs": self.n_pairs, "protocol": self.protocol}

    def describe(self) -> str:
        """A few lines for a person."""
        times = (
            ("the most similar pair of", self.encoder_mining_seconds, self.reranker_mining_seconds),
            ("one query against", self.encoder_query_seconds, self.reranker_query_seconds),
        )
        lines = [
            f"{what} {self.n_texts:,} texts: {_spoken(fast)} with vectors, {_spoken(slow)} with the reranker"
            for what, fast, slow in times
        ]
        if self.encoder_spearman is not None and self.reranker_spearman is not None:
            lines.append(
                f"Spearman x 100: {100 * self.encoder_spearman:.2f} with vectors, "
                f"{100 * self.reranker_spearman:.2f} with the reranker"
            )
        return "\n".join([*lines, self.protocol])


def measure_cost(
    encoder: Encoder,
    reranker: Reranker,
    texts: Sequence[str],
    *,
    n_texts: int = 10_000,
    n_pairs: int = 500,
    scored: Examples | None = None,
    seed: int = 0,
) -> Cost:
    """What it costs to compare `n_texts` texts like these; on `scored` pairs, such as STSb, also how well."""
    given = checked_texts(texts)
    if len(given) < 2 or n_texts < 2 or n_pairs < 1:
        raise InvalidInput(
            f"a cost was asked for {n_texts} texts, from {len(given)} texts and {n_pairs} pairs; "
            "expected at least 2 texts and 1 pair"
        )
    vectors, encoding_seconds = _timed_encoding(encoder, given)
    pairs_per_second = n_pairs / _timed_reading(reranker, given, n_pairs, seed)
    began = time.perf_counter()
    top_pairs(vectors, 1)
    search_seconds = time.perf_counter() - began
    growth = n_texts / len(given)
    quality = (None, None) if scored is None else _quality(encoder, reranker, scored)
    return Cost(
        n_texts=n_texts,
        n_measured_texts=len(given),
        n_measured_pairs=n_pairs,
        texts_per_second=len(given) / encoding_seconds,
        pairs_per_second=pairs_per_second,
        encoder_mining_seconds=encoding_seconds * growth + search_seconds * growth**2,
        reranker_mining_seconds=n_texts * (n_texts - 1) / 2 / pairs_per_second,
        encoder_query_seconds=_timed_query(encoder, given, vectors, growth),
        reranker_query_seconds=n_texts / pairs_per_second,
        encoder_spearman=quality[0],
        reranker_spearman=quality[1],
    )


def _timed_encoding(encoder: Encoder, texts: list[str]) -> tuple[Vectors, float]:
    encoder.encode(texts[:_N_WARMING])
    began = time.perf_counter()
    vectors = encoder.encode(texts)
    return vectors, time.perf_counter() - began


def _timed_reading(reranker: Reranker, texts: list[str], n_pairs: int, seed: int) -> float:
    generator = np.random.default_rng(seed)
    first = generator.integers(0, len(texts), n_pairs)
    second = (first + generator.integers(1, len(texts), n_pairs)) % len(texts)  # never a text with itself
    pairs = [(texts[a], texts[b]) for a, b in zip(first, second, strict=True)]
    reranker.score(pairs[:_N_WARMING])
    began = time.perf_counter()
    reranker.score(pairs)
    return time.perf_counter() - began


def _timed_query(encoder: Encoder, texts: list[str], vectors: Vectors, growth: float) -> float:
    """One text encoded, and its nearest found; only the search grows with the collection."""
    seconds = []
    for text in texts[:_N_QUERIES]:
        began = time.perf_counter()
        query = encoder.encode([text])
        encoded = time.perf_counter()
        top_k(query, vectors, 1)
        seconds.append((encoded - began) + (time.perf_counter() - encoded) * growth)
    return float(np.median(seconds))


def _quality(encoder: Encoder, reranker: Reranker, scored: Examples) -> tuple[float, float]:
    if scored.kind != "scored pairs" or scored.labels is None:
        raise InvalidInput(f"quality was asked of {scored.kind}; expected scored pairs, such as STSb")
    first, second = scored.columns.values()
    encoded = EncodedTexts(encoder, [*first, *second])
    similarities = pairwise(encoded.of(first), encoded.of(second))
    read = np.asarray(reranker.score(list(zip(first, second, strict=True))))
    if read.ndim != 1:
        raise InvalidInput(
            f"the reranker gave scores of shape {read.shape}; expected one score a pair: take a model with "
            "one output"
        )
    return spearman(similarities, scored.labels), spearman(read, scored.labels)


def _spoken(seconds: float) -> str:
    """The time in the unit that a person would choose."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "s")):
        if seconds >= 2 * size or (unit == "s" and seconds >= 1):
            return f"{seconds / size:,.1f} {unit}"
    return f"{1_000 * seconds:.1f} ms"

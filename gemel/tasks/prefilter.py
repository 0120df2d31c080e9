"""Similar pairs at a fraction of the encoding: a quick encoder proposes, a slow one confirms.

Where few texts have a twin, most need never be read by the slow encoder. What that loses is measured, not
hoped: a sample says from which score of the quick encoder on the wanted share of pairs is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Vectors, checked_texts
from gemel.errors import InvalidInput
from gemel.similarity import Pairs, pairs_above, pairwise
from gemel.similarity.packed import OnProgress

N_SAMPLE = 20_000  # texts; all their pairs are compared, and each is encoded once by both
FEWEST_PAIRS = 50  # below that a share says little: one pair more or less is two percent
PAIRS_AT_ONCE = 16_384
RECALL = 0.98

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Prefilter:
    """From which score of the quick encoder on a pair is shown to the slow one, and what that keeps."""

    at_least: float  # of the slow encoder: the pairs that are wanted
    loose: float  # of the quick encoder: the pairs that are looked at
    recall: float | None = None  # the share of the wanted pairs that are looked at, in the sample
    n_measured: int = 0  # wanted pairs in the sample

    def describe(self) -> str:
        """One line for a person."""
        if self.recall is None:
            return f"pairs that have {self.loose:.3f} or more by the quick encoder are looked at"
        return (
            f"{self.recall:.1%} of the {self.n_measured:,} pairs of different texts in a sample that score "
            f"{self.at_least:g} or more are kept: those that have {self.loose:.3f} or more by the quick "
            "encoder"
        )


def measure_prefilter(
    quick: Encoder,
    slow: Encoder,
    texts: Sequence[str],
    at_least: float,
    *,
    others: Sequence[str] | None = None,
    recall: float = RECALL,
    n_sample: int = N_SAMPLE,
    seed: int = 42,
) -> Prefilter:
    """The tightest prefilter that keeps that share of the pairs that score at_least in a sample of the texts.

    Pairs of different texts are counted, each once: repeats are alike for every encoder, and show nothing.
    With others, pairs of a text and one of them. A sample of a tenth has a hundredth of the pairs: for rare
    ones take a large sample.
    """
    if not 0 < recall <= 1:
        raise InvalidInput(f"recall is {recall!r}; expected a share above 0 and up to 1, such as {RECALL}")
    sample = _Sample.of(texts, others, n_sample, seed)
    exact, rough = slow.encode(sample.texts), quick.encode(sample.texts)
    blocks = [_cosines(rough, first, rough, second) for first, second in sample.pairs_above(exact, at_least)]
    scores = np.sort(np.concatenate([np.zeros(0, np.float32), *blocks]))
    if len(scores) < FEWEST_PAIRS:
        raise InvalidInput(
            f"{len(sample.texts):,} different texts have {len(scores)} pairs that score at least "
            f"{at_least:g}; expected {FEWEST_PAIRS} or more to measure on: give more texts or a lower score, "
            "or set the score of the quick encoder yourself (--prefilter-at-least)"
        )
    # The highest score that leaves enough at or above it; a hair lower, so that rounding loses none.
    n_lost = int(np.floor((1 - recall) * len(scores) + 1e-9))
    loose = float(scores[n_lost]) - 1e-6
    return Prefilter(at_least, loose, float(np.mean(scores >= loose)), len(scores))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Different texts, and which of them are to be compared: all, or some with some others."""

    texts: list[str]
    left: Rows
    right: Rows | None

    @classmethod
    def of(cls, texts: Sequence[str], others: Sequence[str] | None, n_sample: int, seed: int) -> _Sample:
        random = np.random.default_rng(seed)
        sides = [list(dict.fromkeys(checked_texts(side))) for side in (texts, others) if side is not None]
        # Each of two has half the sample, and what the other leaves of its own.
        shares = [max(n_sample // len(sides), n_sample - sum(map(len, sides)) + len(side)) for side in sides]
        drawn = [_drawn(side, share, random) for side, share in zip(sides, shares, strict=True)]
        places = {text: place for place, text in enumerate(dict.fromkeys(chain(*drawn)))}
        rows = [np.array([places[text] for text in side], np.int64) for side in drawn]
        return cls(list(places), rows[0], rows[1] if len(rows) > 1 else None)

    def pairs_above(self, vectors: Vectors, at_least: float) -> Iterator[tuple[Rows, Rows]]:
        """First and second of the pairs of different texts that score enough, in blocks."""
        if self.right is None:
            yield from ((found.first, found.second) for found in pairs_above(vectors, at_least))
            return
        for found in pairs_above(vectors[self.left], at_least, others=vectors[self.right]):
            first, second = self.left[found.first], self.right[found.second]
            yield first[first != second], second[first != second]


def _drawn(texts: list[str], n: int, random: np.random.Generator) -> list[str]:
    """So many of the texts, in their order; all where they are fewer."""
    if len(texts) <= n:
        return texts
    return [texts[row] for row in np.sort(random.choice(len(texts), n, replace=False))]


class PrefilteredPairs:
    """The pairs that the slow encoder confirms, in blocks; read once, while counts tell what it has cost."""

    def __init__(
        self,
        quick: Encoder,
        slow: Encoder,
        prefilter: Prefilter,
        texts: Sequence[str],
        *,
        others: Sequence[str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.prefilter = prefilter
        self._quick, self._on_progress = quick, on_progress
        self._left = _EncodedOnDemand(slow, checked_texts(texts))
        self._right = self._left if others is None else _EncodedOnDemand(slow, checked_texts(others))
        self.n_candidates = 0
        self.n_confirmed = 0

    @property
    def n_texts(self) -> int:
        """How many texts were given."""
        return sum(len(side.texts) for side in self._sides)

    @property
    def n_encoded(self) -> int:
        """How many of them the slow encoder has read so far."""
        return sum(side.n_encoded for side in self._sides)

    @property
    def _sides(self) -> tuple[_EncodedOnDemand, ...]:
        return (self._left,) if self._right is self._left else (self._left, self._right)

    def __iter__(self) -> Iterator[Pairs]:
        rough = [self._quick.encode(side.texts) for side in self._sides]
        candidates = pairs_above(
            rough[0],
            self.prefilter.loose,
            others=rough[1] if len(rough) > 1 else None,
            on_progress=self._on_progress,
        )
        for block in candidates:
            self.n_candidates += len(block)
            if self._left is self._right:
                self._left.encode(np.concatenate([block.first, block.second]))
            else:
                self._left.encode(block.first)
                self._right.encode(block.second)
            scores = _cosines(
                self._left.vectors,
                self._left.places[block.first],
                self._right.vectors,
                self._right.places[block.second],
            )
            enough = scores >= np.float32(self.prefilter.at_least)
            self.n_confirmed += int(enough.sum())
            yield Pairs(block.first[enough], block.second[enough], scores[enough])


class _EncodedOnDemand:
    """Texts whose vectors are made when first asked for; memory goes to those alone."""

    def __init__(self, encoder: Encoder, texts: list[str]) -> None:
        self.texts = texts
        self.places = np.full(len(texts), -1, np.int64)  # of each text among the vectors
        self.n_encoded = 0
        self._encoder = encoder
        self._vectors = np.zeros((0, encoder.dim), np.float32)

    @property
    def vectors(self) -> Vectors:
        """The vectors so far (n_encoded, dim)."""
        return self._vectors[: self.n_encoded]

    def encode(self, rows: Rows) -> None:
        """Make the vectors of those rows that have none yet."""
        missing = np.unique(rows[self.places[rows] < 0])
        end = self.n_encoded + len(missing)
        if end > len(self._vectors):
            larger = np.empty((max(end, 2 * len(self._vectors)), self._encoder.dim), np.float32)
            larger[: self.n_encoded] = self.vectors
            self._vectors = larger
        self._vectors[self.n_encoded : end] = self._encoder.encode([self.texts[row] for row in missing])
        self.places[missing] = np.arange(self.n_encoded, end)
        self.n_encoded = end


def _cosines(left: Vectors, first: Rows, right: Vectors, second: Rows) -> npt.NDArray[np.float32]:
    """The cosine of each pair, some at a time: the rows of all pairs would take more than all vectors do."""
    scores = np.empty(len(first), np.float32)
    for start in range(0, len(first), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        scores[part] = pairwise(left[first[part]], right[second[part]])
    return scores

"""Similar pairs of a corpus, or of two: the best overall, all above a threshold, or the best of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise as neighbouring

import numpy as np
import numpy.typing as npt

from gemel.contracts import Hits, Reranker, Vectors
from gemel.data.results import Values, id_type
from gemel.errors import InvalidInput
from gemel.similarity import PackedRows, Pairs, pairs_above, top_k, top_pairs
from gemel.similarity.packed import MEASURES as PACKED_MEASURES
from gemel.similarity.packed import OnProgress
from gemel.tasks.calibrate import Calibration
from gemel.tasks.corpus import Corpus
from gemel.tasks.thresholds import checked_threshold

Rows = npt.NDArray[np.int64]

QUERIES_AT_ONCE = 8_192  # rows whose neighbours are searched together
PAIRS_AT_ONCE = 4_096  # pairs that a reranker reads together


def mine(
    corpus: Corpus | npt.ArrayLike,
    others: Corpus | npt.ArrayLike | None = None,
    *,
    n_pairs: int | None = None,
    at_least: float | None = None,
    k: int | None = None,
    measure: str = "cosine",
    skip_identical: bool = False,
    on_progress: OnProgress | None = None,
) -> Iterator[Pairs]:
    """Similar pairs of rows, in blocks: within the corpus, or of its rows with those of the others.

    One of three: the `n_pairs` most similar, best first; all that score `at_least` that, block by block, any
    number in bounded memory; or for each row its `k` most similar, so that a pair may come both ways round.
    `at_least` also bounds the other two. `skip_identical` lets the first of identical texts stand for all,
    and leaves out pairs of one text with itself.
    """
    if (n_pairs is not None) + (k is not None) + (
        n_pairs is None and k is None and at_least is not None
    ) != 1:
        raise InvalidInput("expected one choice of pairs: give n_pairs, or k, or at_least alone")
    floor = None if at_least is None else checked_threshold(at_least, measure)
    sides = _Sides(corpus, others, skip_identical)
    sides.check_size()
    if k is not None:
        blocks = _best_of_each(sides, k, floor, measure, on_progress)
    elif n_pairs is not None:
        blocks = _best_of_all(sides, n_pairs, floor, measure, on_progress)
    else:
        assert floor is not None
        blocks = _all_above(sides, floor, measure, on_progress)
    return map(sides.original, blocks)


def confirm(
    blocks: Iterable[Pairs],
    corpus: Corpus,
    others: Corpus | None,
    reranker: Reranker,
    *,
    at_least: float = 0.5,
) -> Iterator[tuple[Pairs, npt.NDArray[np.float32]]]:
    """The pairs that a cross-encoder scores at least that, with its scores: it reads both texts at once."""
    others = others or corpus
    for block in blocks:
        for start in range(0, len(block), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            first, second = block.first[part], block.second[part]
            texts = [(corpus.texts[i], others.texts[j]) for i, j in zip(first, second, strict=True)]
            scores = scored_by(reranker, texts)
            enough = scores >= at_least
            yield Pairs(first[enough], second[enough], block.scores[part][enough]), scores[enough]


@dataclass(frozen=True, eq=False)
class PairRows:
    """Rows of results: the ids and texts of pairs, their scores, and what else is known of them."""

    corpus: Corpus
    others: Corpus
    calibration: Calibration | None = None
    is_reranked: bool = False

    @property
    def columns(self) -> dict[str, type]:
        """The columns of a row and their types."""
        more = {"probability": float} if self.calibration is not None else {}
        more |= {"rerank_score": float} if self.is_reranked else {}
        ids = {"id_a": id_type(self.corpus.ids), "id_b": id_type(self.others.ids)}
        return {**ids, "score": float, **more, "text_a": str, "text_b": str}

    def of(self, pairs: Pairs, rerank_scores: npt.NDArray[np.float32] | None = None) -> Iterator[Values]:
        """A row of values a pair."""
        more = [] if self.calibration is None else [self.calibration.probability(pairs.scores)]
        more += [] if rerank_scores is None else [rerank_scores.astype(np.float64)]
        figures = np.stack([pairs.scores.astype(np.float64), *more], axis=1).round(6).tolist()
        for i, j, values in zip(pairs.first.tolist(), pairs.second.tolist(), figures, strict=True):
            texts = self.corpus.texts[i], self.others.texts[j]
            yield [self.corpus.ids[i], self.others.ids[j], *values, *texts]


def scored_by(reranker: Reranker, pairs: list[tuple[str, str]]) -> npt.NDArray[np.float32]:
    """One score a pair (n,); a model that gives one a label is refused."""
    scores = reranker.score(pairs)
    if scores.ndim != 1:
        raise InvalidInput(
            f"the reranker gives {scores.shape[1]} scores a pair; expected one: use a cross-encoder that was "
            "trained on similarities or duplicates"
        )
    return scores


# Whose pairs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Side:
    """The rows of a corpus that take part: all of them, or the first of each text."""

    name: str
    vectors: Vectors
    texts: list[str] | None = None
    rows: Rows | None = None  # the row in the corpus of each of ours, where they differ

    def __len__(self) -> int:
        return len(self.vectors)

    def original(self, rows: Rows) -> Rows:
        return rows if self.rows is None else self.rows[rows]


class _Sides:
    """One corpus with itself, or two, and the way back to their own row numbers."""

    def __init__(
        self, corpus: Corpus | npt.ArrayLike, others: Corpus | npt.ArrayLike | None, skip_identical: bool
    ) -> None:
        self.left = _side(corpus, "the corpus", skip_identical)
        self.is_one = others is None
        self.right = self.left if others is None else _side(others, "the other corpus", skip_identical)
        # Within one corpus a text occurs once by now; two may still share texts.
        self.skips_shared = skip_identical and not self.is_one

    @property
    def others(self) -> Vectors | None:
        return None if self.is_one else self.right.vectors

    def check_size(self) -> None:
        """Refuse what has no pairs at all."""
        for side in (self.left, self.right):
            if not len(side):
                raise InvalidInput(f"{side.name} is empty; expected at least one row")
        if self.is_one and len(self.left) < 2:
            raise InvalidInput(f"{self.left.name} has only one text; expected two or more to compare")

    def n_shared(self) -> int:
        """How many texts both corpora have."""
        assert self.left.texts is not None
        assert self.right.texts is not None
        return len(set(self.left.texts) & set(self.right.texts))

    def unlike(self, pairs: Pairs) -> Pairs:
        """The pairs whose two texts differ."""
        if not self.skips_shared:
            return pairs
        left, right = self.left.texts, self.right.texts
        assert left is not None
        assert right is not None
        places = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        return chosen(pairs, np.array([left[i] != right[j] for i, j in places], np.bool_))

    def original(self, pairs: Pairs) -> Pairs:
        """The same pairs by the row numbers of the corpora as they were given."""
        return Pairs(self.left.original(pairs.first), self.right.original(pairs.second), pairs.scores)


def _side(corpus: Corpus | npt.ArrayLike, name: str, skip_identical: bool) -> _Side:
    if not isinstance(corpus, Corpus):
        if skip_identical:
            raise InvalidInput("skip_identical compares texts and was given vectors alone; give a Corpus")
        return _Side(name, np.asanyarray(corpus))
    if skip_identical:
        firsts = list({text: row for row, text in reversed(list(enumerate(corpus.texts)))}.values())[::-1]
        if len(firsts) < len(corpus):
            rows = np.array(firsts, np.int64)
            texts = [corpus.texts[row] for row in firsts]
            return _Side(corpus.name, corpus.vectors[rows], texts, rows)
    return _Side(corpus.name, corpus.vectors, corpus.texts)


# Which pairs -----------------------------------------------------------------------------------------


def _all_above(sides: _Sides, floor: float, measure: str, on_progress: OnProgress | None) -> Iterator[Pairs]:
    found = pairs_above(
        sides.left.vectors, floor, others=sides.others, measure=measure, on_progress=on_progress
    )
    return map(sides.unlike, found)


def _best_of_all(
    sides: _Sides, n_pairs: int, floor: float | None, measure: str, on_progress: OnProgress | None
) -> Iterator[Pairs]:
    if n_pairs < 1:
        raise InvalidInput(f"n_pairs is {n_pairs!r}; expected at least 1: ask for one pair or more")
    wanted = n_pairs + (sides.n_shared() if sides.skips_shared else 0)

    def search() -> Iterator[Pairs]:
        found = top_pairs(
            sides.left.vectors,
            wanted,
            others=sides.others,
            measure=measure,
            at_least=floor,
            on_progress=on_progress,
        )
        yield chosen(sides.unlike(found), slice(n_pairs))

    return search()


def _best_of_each(
    sides: _Sides, k: int, floor: float | None, measure: str, on_progress: OnProgress | None
) -> Iterator[Pairs]:
    most = len(sides.right) - (1 if sides.is_one else 0)
    if not 1 <= k <= most:
        raise InvalidInput(
            f"k is {k!r}, and each row can be compared with {most:,} others; expected 1 to {most:,}"
        )
    # A row finds itself, and its own text in the other corpus: one more is asked for, and that left out.
    wanted = k + 1 if sides.is_one or sides.skips_shared else k

    nearest = searcher(sides.right.vectors, measure)

    def search() -> Iterator[Pairs]:
        n_rows = len(sides.left)
        for start, stop in neighbouring([*range(0, n_rows, QUERIES_AT_ONCE), n_rows]):
            hits = nearest(sides.left.vectors[start:stop], wanted)
            first = np.repeat(np.arange(start, stop), wanted)
            found = Pairs(first, hits.ids.reshape(-1), hits.scores.reshape(-1))
            keeps = found.second >= 0
            if sides.is_one:
                keeps &= found.first != found.second
            if floor is not None:
                keeps &= found.scores >= np.float32(floor)
            found = sides.unlike(chosen(found, keeps))
            ranks = np.arange(len(found)) - np.searchsorted(found.first, found.first)
            yield chosen(found, ranks < k)
            if on_progress is not None:
                on_progress(stop, n_rows)

    return search()


def searcher(vectors: Vectors, measure: str) -> Callable[[Vectors, int], Hits]:
    """The k nearest rows of each query; where rows are packed, they are so only once."""
    if measure in PACKED_MEASURES:
        return PackedRows(vectors, measure).search
    return lambda queries, k: top_k(queries, vectors, k, measure)


def chosen(pairs: Pairs, which: slice | npt.NDArray[np.bool_]) -> Pairs:
    """Some of the pairs, in their order."""
    return Pairs(pairs.first[which], pairs.second[which], pairs.scores[which])

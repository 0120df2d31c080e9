"""Hard negatives: for each pair of an anchor and its positive, texts that are like the anchor and not meant.

Every candidate is compared, exactly. A text that the file pairs with the anchor, either way round, is never
its negative, nor is the anchor itself, nor a text that differs from one of these in case and blanks only.
What is too near the positive is more likely an unlabelled positive than a negative: hence the margins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Reranker
from gemel.data.examples import Examples
from gemel.data.results import Values
from gemel.errors import InvalidInput
from gemel.similarity import pairwise
from gemel.similarity.packed import OnProgress
from gemel.tasks.corpus import encode_distinct
from gemel.tasks.mine import scored_by, searcher

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float32]
Sampling = Literal["top", "random"]
Layout = Literal["triplets", "tuples", "labelled"]

BLOCK_PAIRS = 2_048  # whose candidates are held at once, or fewer:
BLOCK_CANDIDATES = 4_000_000  # an anchor with thousands of positives has as many more candidates
TOO_NEAR_FOR_THE_RERANKER = "too near the positive by the cross-encoder"


@dataclass(frozen=True)
class NegativeRules:
    """Which candidates of an anchor become its negatives; margins are to the score of its positive."""

    n_negatives: int = 1
    skip_first: int = 0  # candidates, the nearest ones
    n_candidates: int = 100  # that are looked at after those
    max_score: float | None = None
    min_score: float | None = None
    margin: float | None = None  # score <= positive - margin
    relative_margin: float | None = 0.05  # score <= positive - relative_margin x |positive|
    rerank_margin: float = 0.1  # the same margin in scores of the cross-encoder
    sampling: Sampling = "top"
    seed: int = 42
    is_transitive: bool = False  # what a chain of pairs leads to is a known positive, too

    def __post_init__(self) -> None:
        for name, least in (("n_negatives", 1), ("skip_first", 0), ("n_candidates", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InvalidInput(f"{name} is {getattr(self, name)!r}; expected at least {least}")
        if self.n_candidates < self.n_negatives:
            raise InvalidInput(
                f"n_candidates is {self.n_candidates} and n_negatives {self.n_negatives}; expected at least "
                "as many candidates as negatives"
            )
        for name in ("margin", "relative_margin", "rerank_margin"):
            if getattr(self, name) is not None and not getattr(self, name) >= 0:
                raise InvalidInput(f"{name} is {getattr(self, name)!r}; expected 0 or more")
        if self.sampling not in get_args(Sampling):
            known = " or ".join(get_args(Sampling))
            raise InvalidInput(f"sampling is {self.sampling!r}; expected {known}")

    def drops(self, scores: Scores, positive: Scores, ranks: Rows) -> dict[str, Flags]:
        """What each rule drops of the candidates (pairs, k), whose ranks count from 1."""
        rules: dict[str, Flags] = {f"among the {self.skip_first} nearest": ranks <= self.skip_first}
        own = positive[:, None]
        if self.max_score is not None:
            rules[f"more similar than {self.max_score:g}"] = scores > self.max_score
        if self.min_score is not None:
            rules[f"less similar than {self.min_score:g}"] = scores < self.min_score
        if self.margin is not None:
            rules[f"within {self.margin:g} of the positive"] = scores > own - self.margin
        if self.relative_margin is not None:
            # |positive|, since negated distances are below 0 and have a margin all the same.
            too_near = scores > own - self.relative_margin * np.abs(own)
            rules[f"within {self.relative_margin:.4g} of the positive's score"] = too_near
        return rules


@dataclass(frozen=True, eq=False)
class MinedPair:
    """A pair of the file by its row, and its negatives, as many as were found."""

    row: int
    anchor: str
    positive: str
    score: float  # how similar the two are
    negatives: list[str]
    negative_scores: list[float]


@dataclass
class NegativeReport:
    """How many negatives were found, and what was dropped by which rule."""

    pairs: int = 0
    negatives: int = 0
    pairs_with_fewer: int = 0  # than were asked for
    pairs_with_none: int = 0
    blank_texts: int = 0  # of the corpus; nothing can be learnt from them
    dropped: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "dropped": {rule: n for rule, n in self.dropped.items() if n}}


class HardNegatives:
    """The pairs with their negatives, one after the other; `report` counts what has been seen so far."""

    def __init__(
        self,
        pairs: Examples,
        encoder: Encoder,
        rules: NegativeRules | None = None,
        *,
        corpus: Sequence[str] = (),
        anchor_encoder: Encoder | None = None,
        reranker: Reranker | None = None,
        measure: str = "cosine",
        on_progress: OnProgress | None = None,
    ) -> None:
        self.rules, self.reranker = rules or NegativeRules(), reranker
        self._measure = measure
        self._anchors, self._positives = list(pairs.columns.values())[:2]
        texts = [text for text in corpus if text.strip()]
        self._n_blank = len(corpus) - len(texts)
        self.report = NegativeReport(blank_texts=self._n_blank)
        self._pool = _Pool([*self._positives, *texts])
        n_distinct = len(self._pool.texts)
        anchors = list(dict.fromkeys(self._anchors))
        n_work = n_distinct + len(anchors)
        self._vectors = encode_distinct(encoder, self._pool.texts, _part_of(on_progress, 0, n_work))
        self._anchor_vectors = encode_distinct(
            anchor_encoder or encoder, anchors, _part_of(on_progress, n_distinct, n_work)
        )
        places = {anchor: place for place, anchor in enumerate(anchors)}
        self._anchor_of = np.array([places[anchor] for anchor in self._anchors], np.int64)
        self._positive_of = np.array([self._pool.place(text) for text in self._positives], np.int64)
        self._known = self._known_of(anchors)

    def __iter__(self) -> Iterator[MinedPair]:
        self.report = NegativeReport(blank_texts=self._n_blank)
        nearest = searcher(self._vectors, self._measure)
        for rows in self._blocks():
            yield from self._mined(self._candidates(rows, nearest))

    def _blocks(self) -> Iterator[Rows]:
        """Consecutive pairs, as many as may be looked at together."""
        wanted = self.rules.skip_first + self.rules.n_candidates
        start, most_known = 0, 0
        for row, anchor in enumerate(self._anchor_of.tolist()):
            most_known = max(most_known, len(self._known[anchor]))
            n_rows = row - start + 1
            if n_rows > 1 and (n_rows > BLOCK_PAIRS or n_rows * (wanted + most_known) > BLOCK_CANDIDATES):
                yield np.arange(start, row)
                start, most_known = row, len(self._known[anchor])
        if start < len(self._anchor_of):
            yield np.arange(start, len(self._anchor_of))

    def _known_of(self, anchors: list[str]) -> list[Rows]:
        """For each anchor the places in the pool that are no negatives of it."""
        partners: dict[str, set[str]] = {_same(anchor): {_same(anchor)} for anchor in anchors}
        for anchor, positive in zip(self._anchors, self._positives, strict=True):
            partners[_same(anchor)].add(_same(positive))
            partners.setdefault(_same(positive), {_same(positive)}).add(_same(anchor))
        if self.rules.is_transitive:
            partners = _chained(partners)
        places = self._pool.places
        # All anchors of a chain share one array: there may be thousands of them.
        known = {
            id(keys): np.array([places[key] for key in keys if key in places], np.int64)
            for keys in {id(keys): keys for keys in partners.values()}.values()
        }
        return [known[id(partners[_same(anchor)])] for anchor in anchors]

    def _candidates(self, rows: Rows, nearest: Any) -> _Candidates:
        """The candidates of these pairs in the order in which they would be taken, dropped ones last."""
        rules = self.rules
        anchors, own = np.unique(self._anchor_of[rows], return_inverse=True)
        n_known = max(len(self._known[anchor]) for anchor in anchors)
        k = min(rules.skip_first + rules.n_candidates + n_known, len(self._vectors))
        hits = nearest(self._anchor_vectors[anchors], k)
        is_known = np.stack([np.isin(hits.ids[i], self._known[anchor]) for i, anchor in enumerate(anchors)])
        ids, scores, is_known = hits.ids[own], hits.scores[own], is_known[own]
        positive = pairwise(
            self._anchor_vectors[self._anchor_of[rows]], self._vectors[self._positive_of[rows]], self._measure
        )
        ranks = np.cumsum(~is_known, axis=1, dtype=np.int64)
        left = (ids >= 0) & (ranks <= rules.skip_first + rules.n_candidates)
        drops = {"the anchor or a known positive": is_known, **rules.drops(scores, positive, ranks)}
        for rule, is_dropped in drops.items():
            self.report.dropped[rule] += int((left & is_dropped).sum())
            left &= ~is_dropped
        turns = np.broadcast_to(np.arange(k, dtype=np.float64), left.shape)
        if rules.sampling == "random":
            turns = np.random.default_rng([rules.seed, int(rows[0])]).random(left.shape)
        order = np.argsort(np.where(left, turns, np.inf), axis=1, kind="stable")
        return _Candidates(
            rows,
            positive,
            np.take_along_axis(ids, order, axis=1),
            np.take_along_axis(scores, order, axis=1),
            left.sum(axis=1),
        )

    def _mined(self, found: _Candidates) -> Iterator[MinedPair]:
        chosen = self._confirmed(found) if self.reranker is not None else found.first(self.rules.n_negatives)
        for number, row in enumerate(found.rows.tolist()):
            columns = sorted(chosen[number], key=lambda column: -found.scores[number, column])
            self.report.pairs += 1
            self.report.negatives += len(columns)
            self.report.pairs_with_fewer += len(columns) < self.rules.n_negatives
            self.report.pairs_with_none += not columns
            yield MinedPair(
                row,
                self._anchors[row],
                self._positives[row],
                float(found.positive[number]),
                [self._pool.texts[found.ids[number, column]] for column in columns],
                [float(found.scores[number, column]) for column in columns],
            )

    def _confirmed(self, found: _Candidates) -> list[list[int]]:
        """The columns that the cross-encoder leaves, which reads no more candidates than it must."""
        assert self.reranker is not None
        rows, wanted = found.rows.tolist(), self.rules.n_negatives
        own = scored_by(self.reranker, [(self._anchors[row], self._positives[row]) for row in rows])
        chosen: list[list[int]] = [[] for _ in rows]
        n_read = [0] * len(rows)
        while True:
            asked = [
                (number, column)
                for number in range(len(rows))
                for column in range(
                    n_read[number],
                    min(n_read[number] + wanted - len(chosen[number]), int(found.n_left[number])),
                )
            ]
            if not asked:
                return chosen
            texts = [(self._anchors[rows[i]], self._pool.texts[found.ids[i, column]]) for i, column in asked]
            for (number, column), score in zip(asked, scored_by(self.reranker, texts), strict=True):
                n_read[number] = column + 1
                if score <= own[number] - self.rules.rerank_margin:
                    chosen[number].append(column)
                else:
                    self.report.dropped[TOO_NEAR_FOR_THE_RERANKER] += 1


@dataclass(frozen=True)
class NegativeRows:
    """Rows of results: `triplets` a row a negative, `tuples` a row a pair, `labelled` a row a text."""

    layout: Layout = "triplets"
    n_negatives: int = 1
    has_scores: bool = False

    @property
    def columns(self) -> dict[str, type]:
        """The columns of a row and their types; their names say to `gemel train` what they are."""
        if self.layout == "labelled":
            scores: dict[str, type] = {"vector_similarity": float} if self.has_scores else {}
            return {"sentence1": str, "sentence2": str, "label": int, **scores}
        numbers = range(1, self.n_negatives + 1)
        negatives = [f"negative_{n}" for n in numbers] if self.layout == "tuples" else ["negative"]
        texts = ["anchor", "positive", *negatives]
        scored = [f"{name}_similarity" for name in texts[1:]] if self.has_scores else []
        return {**dict.fromkeys(texts, str), **dict.fromkeys(scored, float)}

    def of(self, pair: MinedPair) -> Iterator[Values]:
        """The rows of a pair; none, where a tuple would have gaps."""
        negatives = list(zip(pair.negatives, pair.negative_scores, strict=True))
        if self.layout == "labelled":
            yield self._row([pair.anchor, pair.positive, 1], [pair.score])
            for text, score in negatives:
                yield self._row([pair.anchor, text, 0], [score])
        elif self.layout == "triplets":
            for text, score in negatives:
                yield self._row([pair.anchor, pair.positive, text], [pair.score, score])
        elif len(negatives) == self.n_negatives:
            yield self._row(
                [pair.anchor, pair.positive, *pair.negatives], [pair.score, *pair.negative_scores]
            )

    def _row(self, values: list[Any], scores: list[float]) -> Values:
        return [*values, *(round(score, 6) for score in scores)] if self.has_scores else values


@dataclass(frozen=True, eq=False)
class _Candidates:
    """What is left for some pairs: columns (pairs, k) in the order in which they would be taken."""

    rows: Rows
    positive: Scores
    ids: Rows
    scores: Scores
    n_left: Rows  # (pairs,) how many columns of each row are candidates

    def first(self, wanted: int) -> list[list[int]]:
        return [list(range(min(wanted, n_left))) for n_left in self.n_left.tolist()]


class _Pool:
    """The texts that may become negatives, each once."""

    def __init__(self, texts: Sequence[str]) -> None:
        firsts: dict[str, str] = {}
        for text in texts:
            firsts.setdefault(_same(text), text)
        self.texts = list(firsts.values())
        self.places = {key: place for place, key in enumerate(firsts)}

    def place(self, text: str) -> int:
        return self.places[_same(text)]


def _same(text: str) -> str:
    """What texts that differ in case and blanks only have in common."""
    return " ".join(text.split()).casefold()


def _chained(partners: dict[str, set[str]]) -> dict[str, set[str]]:
    """For each text all that pairs lead to from it, and from there, and so on."""
    chains: dict[str, set[str]] = {}
    for key in partners:
        if key in chains:
            continue
        chain, waiting = {key}, [key]
        while waiting:
            fresh = partners[waiting.pop()] - chain
            chain |= fresh
            waiting += fresh
        chains.update(dict.fromkeys(chain, chain))
    return chains


def _part_of(on_progress: OnProgress | None, n_before: int, n_total: int) -> OnProgress | None:
    """Progress of one part of the encoding, told as that of all of it."""
    if on_progress is None:
        return None
    return lambda n_done, _: on_progress(n_before + n_done, n_total)

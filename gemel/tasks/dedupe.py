"""One of each group of duplicates is kept; the others say which one stands for them, and why.

Two ways to group. A `star` is drawn around the row that is kept, so every row that is dropped really is
within the threshold of its keeper. `connected` drops whatever a chain of similar rows leads to: it drops
more, but the ends of a chain may have little in common, which is why it is not the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from gemel.contracts import Reranker, Vectors
from gemel.data.results import Values, id_type
from gemel.errors import InvalidInput
from gemel.similarity import Pairs, pairs_above, pairwise
from gemel.similarity.packed import OnProgress
from gemel.tasks.calibrate import Calibration
from gemel.tasks.components import Components
from gemel.tasks.corpus import Corpus
from gemel.tasks.mine import PAIRS_AT_ONCE, chosen, scored_by
from gemel.tasks.thresholds import checked_threshold

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Keep = Literal["first", "longest", "best-connected"]
Grouping = Literal["star", "connected"]
_Confirm = Callable[[Rows, Rows], npt.NDArray[np.bool_]]

# Large blocks share the work of preparing what is kept already; small ones bound the pairs within a block.
OUTER_ROWS = 16_384
INNER_ROWS = 1_024


@dataclass(frozen=True, eq=False)
class Duplicates:
    """For each row the kept row that stands for it, itself if it is kept, and how alike the two are."""

    keepers: Rows  # (n,)
    scores: Scores  # (n,) the similarity to the keeper
    is_repeat: npt.NDArray[np.bool_]  # (n,) whether the row was dropped for having its keeper's text

    @property
    def is_kept(self) -> npt.NDArray[np.bool_]:
        """Which rows are kept (n,)."""
        kept: npt.NDArray[np.bool_] = self.keepers == np.arange(len(self.keepers))
        return kept

    @property
    def kept(self) -> Rows:
        """The rows that are kept, in ascending order."""
        return np.flatnonzero(self.is_kept)

    @property
    def dropped(self) -> Rows:
        """The rows that are not, in ascending order."""
        return np.flatnonzero(~self.is_kept)

    def among(self, rows: Rows, n: int) -> Duplicates:
        """The same for a corpus of n rows, of which only these were looked at; the others are kept."""
        keepers, scores, is_repeat = np.arange(n), np.ones(n, np.float32), np.zeros(n, np.bool_)
        keepers[rows], scores[rows], is_repeat[rows] = rows[self.keepers], self.scores, self.is_repeat
        return Duplicates(keepers, scores, is_repeat)


def dedupe(
    corpus: Corpus,
    *,
    threshold: float = 0.9,
    keep: Keep = "first",
    grouping: Grouping = "star",
    normalise: bool = False,
    reranker: Reranker | None = None,
    rerank_at_least: float = 0.5,
    on_progress: OnProgress | None = None,
) -> Duplicates:
    """Which rows are duplicates of which: of the same text, or with a cosine that reaches the threshold.

    Of two duplicates stays the one that comes first, the longest text, or the one with the most duplicates.
    `normalise` lets case and white space make no difference between repeated texts. A `reranker` has the last
    word on similar ones: only pairs that it scores at least `rerank_at_least` are duplicates.
    """
    threshold = checked_threshold(threshold)
    confirm = _confirmation(corpus, reranker, rerank_at_least)
    search = DuplicateSearch(corpus, threshold, confirm, on_progress)
    return group_duplicates(corpus, search, keep, grouping, normalise)


def group_duplicates(
    corpus: Corpus, search: DuplicateSearch, keep: Keep, grouping: Grouping, normalise: bool
) -> Duplicates:
    """Which rows are duplicates of which, by a search that says which pairs are."""
    for name, value, known in (("keep", keep, get_args(Keep)), ("grouping", grouping, get_args(Grouping))):
        if value not in known:
            raise InvalidInput(f"{name} is {value!r}; expected one of {', '.join(known)}")
    order = np.arange(len(corpus))
    if keep == "longest":
        order = np.argsort([-len(text) for text in corpus.texts], kind="stable")
    repeated = first_of_the_same(corpus.texts, order, normalise)
    distinct = order[repeated[order] == order]
    if keep == "best-connected":
        search.n_steps = 2 if grouping == "star" else 1
    if grouping == "connected":
        keepers = _connected(search, distinct, repeated, keep)
    else:
        if keep == "best-connected":
            connections, _ = search.connections(distinct, repeated)
            distinct = distinct[np.lexsort((distinct, -connections[distinct]))]
        keepers = search.stars(distinct)
    return _attributed(corpus, keepers[repeated], repeated)


def first_of_the_same(texts: list[str], order: Rows, normalise: bool) -> Rows:
    """For each row the first one, in this order, that has the same text."""
    first: dict[str, int] = {}
    repeated = np.empty(len(texts), np.int64)
    for row in order.tolist():
        text = " ".join(texts[row].split()).casefold() if normalise else texts[row]
        repeated[row] = first.setdefault(text, row)
    return repeated


def dropped_columns(corpus: Corpus, calibration: Calibration | None = None) -> dict[str, type]:
    """The columns of the rows that say why a row was dropped, and their types."""
    kind = id_type(corpus.ids)
    more = {"probability": float} if calibration is not None else {}
    return {"id": kind, "reason": str, "kept_id": kind, "score": float, **more, "text": str, "kept_text": str}


def dropped_rows(
    corpus: Corpus, duplicates: Duplicates, threshold: float, calibration: Calibration | None = None
) -> Iterator[Values]:
    """Why each row was dropped: an `exact` repeat, `similar`, or only `connected` to its keeper by others."""
    for row in duplicates.dropped.tolist():
        keeper, score = int(duplicates.keepers[row]), float(duplicates.scores[row])
        reason = "similar" if np.float32(score) >= np.float32(threshold) else "connected"
        figures: list[float | None] = [round(score, 6)]
        if calibration is not None:
            figures.append(round(float(calibration.probability(score)), 6))
        if duplicates.is_repeat[row]:
            reason, figures = "exact", [None] * len(figures)
        texts = corpus.texts[row], corpus.texts[keeper]
        yield [corpus.ids[row], reason, corpus.ids[keeper], *figures, *texts]


def _attributed(corpus: Corpus, keepers: Rows, repeated: Rows) -> Duplicates:
    """How alike each row and its keeper are."""
    rows = np.arange(len(keepers))
    scores = np.ones(len(rows), np.float32)
    is_repeat = (keepers == repeated) & (keepers != rows)
    unsure = np.flatnonzero((keepers != rows) & ~is_repeat)
    for start in range(0, len(unsure), INNER_ROWS):
        some = unsure[start : start + INNER_ROWS]
        scores[some] = pairwise(corpus.vectors[some], corpus.vectors[keepers[some]])
    return Duplicates(keepers, scores, is_repeat)


# The search ------------------------------------------------------------------------------------------


def _confirmation(corpus: Corpus, reranker: Reranker | None, at_least: float) -> _Confirm:
    def confirm(first: Rows, second: Rows) -> npt.NDArray[np.bool_]:
        if reranker is None:
            return np.ones(len(first), np.bool_)
        confirmed = [np.zeros(0, np.bool_)]
        for start in range(0, len(first), PAIRS_AT_ONCE):
            some = slice(start, start + PAIRS_AT_ONCE)
            pairs = zip(first[some].tolist(), second[some].tolist(), strict=True)
            texts = [(corpus.texts[i], corpus.texts[j]) for i, j in pairs]
            confirmed.append(scored_by(reranker, texts) >= at_least)
        return np.concatenate(confirmed)

    return confirm


class DuplicateSearch:
    """Pairs of a corpus's rows that are duplicates, and how far the search has come."""

    def __init__(
        self, corpus: Corpus, threshold: float, confirm: _Confirm, on_progress: OnProgress | None
    ) -> None:
        self.vectors, self.threshold = corpus.vectors, threshold
        self.n_steps = 1  # how often all rows are gone through
        self._n_rows, self._confirm, self._on_progress = len(corpus), confirm, on_progress

    def report(self, step: int, share: float) -> None:
        """Tell the share of a step that is done, in rows."""
        if self._on_progress is not None:
            self._on_progress(round((step + share) * self._n_rows), self.n_steps * self._n_rows)

    def find(self, vectors: Vectors, on_progress: OnProgress | None) -> Iterator[Pairs]:
        """All pairs of rows of these vectors that reach the threshold, by index."""
        return pairs_above(vectors, self.threshold, on_progress=on_progress)

    def stars(self, ranked: Rows) -> Rows:
        """The keeper of each row of the corpus, where rows are taken in this order."""
        return _Stars(self, ranked).keepers

    def within(self, rows: Rows, *, counts: bool = False) -> Iterator[Pairs]:
        """The duplicates among these rows; with `counts`, progress is told."""
        is_whole = len(rows) == self._n_rows and (rows == np.arange(len(rows))).all()
        vectors = self.vectors if is_whole else self.vectors[rows]
        tell = (lambda done, total: self.report(0, done / total)) if counts else None
        for pairs in self.find(vectors, tell):
            yield chosen(pairs, self._confirm(rows[pairs.first], rows[pairs.second]))

    def between(self, rows: Rows, kept_vectors: Vectors, kept: Rows) -> Iterator[Pairs]:
        """The duplicates of these rows among the kept ones."""
        if len(rows) and len(kept):
            for pairs in pairs_above(self.vectors[rows], self.threshold, others=kept_vectors):
                yield chosen(pairs, self._confirm(kept[pairs.second], rows[pairs.first]))

    def connections(self, distinct: Rows, repeated: Rows) -> tuple[Rows, Rows]:
        """For each distinct row how many rows are its duplicates, and the lowest that a chain leads to."""
        rows = np.sort(distinct)
        n_copies = np.bincount(repeated, minlength=len(repeated))[rows]
        n_alike, components = n_copies.copy(), Components(len(rows))
        for pairs in self.within(rows, counts=True):
            np.add.at(n_alike, pairs.first, n_copies[pairs.second])
            np.add.at(n_alike, pairs.second, n_copies[pairs.first])
            components.join(pairs.first, pairs.second)
        connections, lowest = np.zeros(len(repeated), np.int64), np.arange(len(repeated))
        connections[rows], lowest[rows] = n_alike, rows[components.labels()]
        return connections, lowest


def _connected(search: DuplicateSearch, distinct: Rows, repeated: Rows, keep: Keep) -> Rows:
    """The keeper of each distinct row: the first, in order, of all that a chain joins."""
    connections, lowest = search.connections(distinct, repeated)
    if keep == "best-connected":
        distinct = distinct[np.lexsort((distinct, -connections[distinct]))]
    components, places = np.unique(lowest[distinct], return_index=True)
    keepers = np.arange(len(repeated))
    keepers[components] = distinct[places]
    return keepers[lowest]


def first_of_each(n: int, found: Iterable[Pairs]) -> Rows:
    """For each of n rows the first that is kept and that it is a duplicate of, itself if there is none."""
    blocks, empty = list(found), np.zeros(0, np.int64)
    first = np.concatenate([pairs.first for pairs in blocks] or [empty])
    second = np.concatenate([pairs.second for pairs in blocks] or [empty])
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    keepers, is_free = np.arange(n), np.ones(n, np.bool_)
    starts = np.searchsorted(first, np.arange(n + 1))
    for row in np.unique(first):
        if is_free[row]:
            alike = second[starts[row] : starts[row + 1]]
            alike = alike[is_free[alike]]
            is_free[alike] = False
            keepers[alike] = row
    return keepers


class _Stars:
    """Rows in order of preference: each is kept unless it is a duplicate of one that is kept before it.

    Only what is kept is compared, so a corpus full of duplicates is soon done, and memory is bounded by what
    is kept and one block. A row's keeper is the first that it is a duplicate of.
    """

    def __init__(self, search: DuplicateSearch, ranked: Rows) -> None:
        self._search = search
        self.keepers = np.arange(len(search.vectors))
        self._kept = np.empty(len(ranked), np.int64)
        self._kept_vectors = np.empty((len(ranked), search.vectors.shape[1]), np.float32)
        self._n_kept = 0
        for start in range(0, len(ranked), OUTER_ROWS):
            rows = self._without_duplicates(ranked[start : start + OUTER_ROWS], since=0)
            n_before = self._n_kept
            for inner in range(0, len(rows), INNER_ROWS):
                some = self._without_duplicates(rows[inner : inner + INNER_ROWS], since=n_before)
                self._keep(self._first_of_each(some))
            search.report(search.n_steps - 1, min(1.0, (start + OUTER_ROWS) / len(ranked)))

    def _without_duplicates(self, rows: Rows, since: int) -> Rows:
        """The rows that are no duplicates of what has been kept since then."""
        kept, vectors = self._kept[since : self._n_kept], self._kept_vectors[since : self._n_kept]
        nearest = np.full(len(rows), len(kept))
        for pairs in self._search.between(rows, vectors, kept):
            np.minimum.at(nearest, pairs.first, pairs.second)
        is_duplicate = nearest < len(kept)
        self.keepers[rows[is_duplicate]] = kept[nearest[is_duplicate]]
        return rows[~is_duplicate]

    def _first_of_each(self, rows: Rows) -> Rows:
        """The rows that are no duplicates of an earlier one among them."""
        places = first_of_each(len(rows), self._search.within(rows))
        self.keepers[rows] = rows[places]
        is_first: npt.NDArray[np.bool_] = places == np.arange(len(rows))
        return rows[is_first]

    def _keep(self, rows: Rows) -> None:
        place = slice(self._n_kept, self._n_kept + len(rows))
        self._kept[place], self._kept_vectors[place] = rows, self._search.vectors[rows]
        self._n_kept += len(rows)

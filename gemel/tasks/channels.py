"""The channels of a search, by meaning and by words: a ranking of documents from each, and one of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Literal, TypeAlias

from gemel.contracts import Vectors
from gemel.index import Filter, Store
from gemel.index.arguments import MAX_K
from gemel.index.moment import Candidate, Moment
from gemel.index.records import Id
from gemel.tasks.ahead import Ahead, Later
from gemel.tasks.explain import Place, is_unspaced
from gemel.tasks.fusion import depth_for, fused_pages, rank_share
from gemel.tasks.passages import KEY, passage_in

Channel: TypeAlias = Literal["dense", "lexical"]
_Ranking: TypeAlias = dict[Id, tuple[int, Candidate]]  # documents in their order, each with its rank


@dataclass(frozen=True)
class Ranked:
    """A document among those that fit best: the record that stands for it, its score and what made it."""

    key: Id
    score: float
    places: dict[Channel, Place]


@dataclass(frozen=True)
class Channels:
    """How a collection is asked: by words, by meaning or by both, under a filter."""

    collection: Store
    names: Sequence[Channel]
    filter: str | Filter | None

    def ranked(
        self, moment: Moment, queries: Sequence[str], vectors: Vectors | None, n_wanted: int
    ) -> list[list[Ranked]]:
        """For each query the documents that fit best; the vectors are needed for meaning only."""
        depth = n_wanted if len(self.names) == 1 else min(depth_for(n_wanted), MAX_K)
        found: dict[Channel, list[list[Candidate]]] = {}
        with self._words(moment, queries, depth) as words:
            if vectors is not None:
                found["dense"] = moment.nearest(vectors, depth, self.filter) if len(vectors) else []
            if "lexical" in self.names:
                found["lexical"] = words.result()
        ranked = []
        for row, query in enumerate(queries):
            ask: dict[Channel, Callable[[int], list[Candidate]]] = {
                "dense": partial(self._nearest, moment, None if vectors is None else vectors[row : row + 1]),
                "lexical": partial(self._lexical, moment, query),
            }
            documents = {
                channel: _documents(moment, rows[row], depth, ask[channel]) for channel, rows in found.items()
            }
            ranked.append(_merged(documents, n_wanted))
        return ranked

    def _words(
        self, moment: Moment, queries: Sequence[str], depth: int
    ) -> Ahead[list[list[Candidate]]] | Later[list[list[Candidate]]]:
        """The search by words: for one query beside that by meaning, else behind it."""

        def ask() -> list[list[Candidate]]:
            return [self._lexical(moment, query, depth) for query in queries]

        # Many queries keep all cores busy as it is; and a filter has both channels ask the database.
        is_worthwhile = len(self.names) > 1 and len(queries) == 1 and self.filter is None
        return Ahead(ask) if is_worthwhile and moment.can_be_shared else Later(ask)

    def _nearest(self, moment: Moment, vectors: Vectors | None, n: int) -> list[Candidate]:
        assert vectors is not None, "there are vectors where there is a dense ranking"
        return moment.nearest(vectors, n, self.filter)[0]

    def _lexical(self, moment: Moment, query: str, n: int) -> list[Candidate]:
        return moment.lexical(query, n, self.filter, self._tokenizer(query))

    def _tokenizer(self, query: str) -> str | None:
        """By parts of words where the query's script has no borders between them; else as is usual here."""
        return "trigram" if is_unspaced(query) and "trigram" in self.collection.settings.text_search else None


def _documents(
    moment: Moment, found: list[Candidate], depth: int, ask: Callable[[int], list[Candidate]]
) -> _Ranking:
    """The best passage of each document; where many are of one, more are asked for."""
    n_asked = depth
    while True:
        best: _Ranking = {}
        heads = moment.heads([each.key for each in found], KEY)
        for each in found:
            head = heads[each.key]
            passage = passage_in(head.metadata)
            document = head.id if passage is None else passage.document
            if document not in best and len(best) < depth:
                best[document] = len(best) + 1, each
        if len(best) >= depth or len(found) < n_asked or n_asked == MAX_K:
            return best
        n_asked = min(2 * n_asked, MAX_K)
        found = ask(n_asked)


def _merged(rankings: dict[Channel, _Ranking], n_wanted: int) -> list[Ranked]:
    """One ranking of all channels: the only one as it is, or several fused."""
    if len(rankings) == 1:
        ((channel, only),) = rankings.items()
        return [
            Ranked(each.key, each.score, {channel: Place(rank, each.score, each.score)})
            for rank, each in islice(only.values(), n_wanted)
        ]
    fusion = fused_pages([list(ranking) for ranking in rankings.values()], n_wanted)
    return [_fused(document, score, rankings) for document, score in fusion]


def _fused(document: Id, score: float, rankings: dict[Channel, _Ranking]) -> Ranked:
    """What is shown of a document is what ranked best in any channel."""
    places: dict[Channel, Place] = {}
    shown: tuple[int, Id] | None = None
    for channel, ranking in rankings.items():
        if document in ranking:
            rank, found = ranking[document]
            places[channel] = Place(rank, found.score, rank_share(rank))
            if shown is None or rank < shown[0]:
                shown = rank, found.key
    assert shown is not None, "a document that no channel has found was fused"
    return Ranked(shown[1], score, places)

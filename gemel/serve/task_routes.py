"""Mining, deduplication and clustering over HTTP, of texts or of a collection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from gemel.errors import InvalidInput
from gemel.serve.answers import Answer
from gemel.serve.calls import Call
from gemel.serve.collection_routes import ID, Name, the_library
from gemel.serve.inputs import check_count
from gemel.serve.refusals import Refusal
from gemel.serve.routing import Route
from gemel.serve.schemas import Choice, Field, Flag, ListOf, Nullable, Number, Record, Reply, Text, Whole
from gemel.serve.work import GoOn, QueuedReranker, answered_slowly, both_sides
from gemel.similarity import MEASURES, normalise
from gemel.tasks.cluster import METHODS, cluster
from gemel.tasks.cluster_map import places_on_axes
from gemel.tasks.clustering import Clustering
from gemel.tasks.corpus import Corpus, make_corpus
from gemel.tasks.dedupe import Grouping, Keep, dedupe
from gemel.tasks.describe import describe
from gemel.tasks.linkage import LINKAGES
from gemel.tasks.mine import PairRows, mine

MOST_ROWS = 100_000  # of a collection that are compared with each other in one request
MOST_PAIRS = 100_000  # in one answer
SOURCE = (
    Field("collection", Name(), None, "The collection whose records are meant; or give texts."),
    Field("texts", ListOf(Text(), least=1), None, "The texts themselves, whose ids are their row numbers."),
)
MINE_REQUEST = Record(
    "MineRequest",
    *SOURCE,
    Field("n_pairs", Whole(1, MOST_PAIRS), None, "The most similar pairs of all."),
    Field("at_least", Number(), None, "All pairs that score that, or a bound of the other two."),
    Field("k", Whole(1, 1_000), None, "The most similar of each row."),
    Field("measure", Choice(tuple(MEASURES)), "cosine"),
    Field("skip_identical", Flag(), False, "Let the first of identical texts stand for all."),
    Field("return_texts", Flag(), True, "Also send the two texts of each pair."),
)
PAIR = Reply(
    "Pair",
    Field("id_a", ID),
    Field("id_b", ID),
    Field("score", Number()),
    Field("text_a", Text(), None),
    Field("text_b", Text(), None),
)
MINED = Reply(
    "Mined", Field("object", Choice(("mine",))), Field("n_rows", Whole()), Field("data", ListOf(PAIR))
)
DEDUPE_REQUEST = Record(
    "DedupeRequest",
    *SOURCE,
    Field("threshold", Number(), 0.9, "The cosine from which texts are duplicates."),
    Field("keep", Choice(get_args(Keep)), "first"),
    Field("grouping", Choice(get_args(Grouping)), "star"),
    Field("normalise", Flag(), False, "Let case and white space make no difference."),
    Field("rerank", Flag(), False, "Let the server's re-ranker confirm each pair."),
    Field("rerank_at_least", Number(), 0.5),
)
KEPT = Reply("Kept", Field("id", ID), Field("text", Text()))
DROPPED = Reply(
    "Dropped", Field("id", ID), Field("text", Text()), Field("score", Number()), Field("is_repeat", Flag())
)
GROUP = Reply("Group", Field("kept", KEPT), Field("dropped", ListOf(DROPPED)))
DEDUPED = Reply(
    "Deduped",
    Field("object", Choice(("dedupe",))),
    Field("n_rows", Whole()),
    Field("n_kept", Whole()),
    Field("n_dropped", Whole()),
    Field("threshold", Number()),
    Field("data", ListOf(GROUP), says="The groups of duplicates, the largest first."),
)
CLUSTER_REQUEST = Record(
    "ClusterRequest",
    *SOURCE,
    Field("method", Choice(tuple(METHODS)), "star"),
    Field("threshold", Number(), None, "Found from the texts where it is needed and not given."),
    Field("n_clusters", Whole(1), None),
    Field("min_size", Whole(1), None),
    Field("linkage", Choice(tuple(LINKAGES)), "average"),
    Field("seed", Whole(), 0),
    Field("map", Flag(), False, "Also send a place in two dimensions for each row."),
    Field("return_texts", Flag(), False, "Also send the text of each row."),
)
CLUSTER = Reply(
    "Cluster",
    Field("cluster", Whole()),
    Field("size", Whole()),
    Field("key_words", ListOf(Text())),
    Field("exemplar", ID),
    Field("typical", ListOf(Text())),
)
CLUSTERED = Reply(
    "Clustered",
    Field("object", Choice(("cluster",))),
    Field("method", Text()),
    Field("threshold", Nullable(Number())),
    Field("n_unclustered", Whole()),
    Field("ids", ListOf(ID)),
    Field("labels", ListOf(Whole(-1)), says="The cluster of each row, -1 for none."),
    Field("data", ListOf(CLUSTER), says="The clusters, the largest first."),
    Field("places", ListOf(ListOf(Number(), least=2, most=2)), None),
    Field("texts", ListOf(Text()), None),
)


async def mine_pairs(call: Call, request: dict[str, Any]) -> Answer:
    """The similar pairs of texts or of a collection."""
    corpus_of = _source(call, request)

    def mined(go_on: GoOn) -> dict[str, Any]:
        corpus = corpus_of(go_on)
        asked = {name: request[name] for name in ("n_pairs", "at_least", "k", "measure", "skip_identical")}
        rows = PairRows(corpus, corpus)
        columns = list(rows.columns)[: None if request["return_texts"] else 3]
        data: list[dict[str, Any]] = []
        for block in mine(corpus, **asked, on_progress=go_on):
            if len(data) + len(block) > MOST_PAIRS:
                raise Refusal(
                    "too_large",
                    f"there are more than {MOST_PAIRS:,} such pairs; raise at_least, or ask for n_pairs",
                )
            data += (dict(zip(columns, values, strict=False)) for values in rows.of(block))
        return {"object": "mine", "n_rows": len(corpus), "data": data}

    return await answered_slowly(call, mined)


async def find_duplicates(call: Call, request: dict[str, Any]) -> Answer:
    """Which texts stand for which."""
    corpus_of = _source(call, request)
    reader = QueuedReranker(call, asyncio.get_running_loop()) if request["rerank"] else None

    def deduped(go_on: GoOn) -> dict[str, Any]:
        corpus = corpus_of(go_on)
        asked = {name: request[name] for name in ("threshold", "keep", "grouping", "normalise")}
        confirmed = {"reranker": reader, "rerank_at_least": request["rerank_at_least"]}
        found = dedupe(corpus, **asked, **confirmed, on_progress=go_on)
        groups: dict[int, list[dict[str, Any]]] = {}
        for row in found.dropped.tolist():
            groups.setdefault(int(found.keepers[row]), []).append(
                {
                    "id": corpus.ids[row],
                    "text": corpus.texts[row],
                    "score": float(found.scores[row]),
                    "is_repeat": bool(found.is_repeat[row]),
                }
            )
        ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
        data = [
            {"kept": {"id": corpus.ids[row], "text": corpus.texts[row]}, "dropped": dropped}
            for row, dropped in ordered
        ]
        counts = {"n_kept": len(found.kept), "n_dropped": len(found.dropped)}
        told = {"object": "dedupe", "n_rows": len(corpus), **counts, "threshold": request["threshold"]}
        return {**told, "data": data}

    return await answered_slowly(call, deduped)


async def find_clusters(call: Call, request: dict[str, Any]) -> Answer:
    """Groups of alike texts, what each is about, and a map of them."""
    corpus_of = _source(call, request)
    options = ("method", "threshold", "n_clusters", "min_size", "linkage", "seed")

    def clustered(go_on: GoOn) -> dict[str, Any]:
        corpus = corpus_of(go_on)
        asked = {name: request[name] for name in options}
        found = cluster(corpus.vectors, **asked, on_progress=go_on)
        go_on()
        told: dict[str, Any] = {
            "object": "cluster",
            "method": found.method,
            "threshold": found.threshold,
            "n_unclustered": found.n_unclustered,
            "ids": corpus.ids,
            "labels": found.labels,
            "data": _described(found, corpus),
        }
        if request["map"]:
            go_on()
            places = places_on_axes(normalise(corpus.vectors), found.labels, found)
            told["places"] = np.ascontiguousarray(places, np.float32)
        return told | ({"texts": corpus.texts} if request["return_texts"] else {})

    return await answered_slowly(call, clustered)


def _described(found: Clustering, corpus: Corpus) -> list[dict[str, Any]]:
    return [
        {
            "cluster": each.cluster,
            "size": each.size,
            "key_words": each.key_words,
            "exemplar": corpus.ids[int(found.exemplars[each.cluster])],
            "typical": [corpus.texts[row] for row in each.typical],
        }
        for each in describe(found, corpus.texts)
    ]


def _source(call: Call, request: dict[str, Any]) -> Callable[[GoOn], Corpus]:
    """How to have the texts that a request is about, with their vectors."""
    name, texts = request["collection"], request["texts"]
    if (name is None) == (texts is None):
        raise InvalidInput("expected either texts or the name of a collection; give one of the two")
    if texts is not None:
        check_count(call, len(texts), "texts")
        documents, _ = both_sides(call)
        return lambda go_on: make_corpus(texts, documents, name="texts", on_progress=go_on)
    library = the_library(call)

    def stored(go_on: GoOn) -> Corpus:
        go_on()
        collection = library.collection(name)
        n_records = len(collection)
        if n_records > MOST_ROWS:
            raise Refusal(
                "too_large",
                f"the collection {name!r} has {n_records:,} records, and {MOST_ROWS:,} are compared at once "
                "over HTTP; export it, and use the command",
            )
        records, vectors = collection.records_with_vectors()
        go_on()
        texts, ids = [record.text for record in records], [record.id for record in records]
        return Corpus(texts, ids, vectors, name, collection.settings.fingerprint)

    return stored


ROUTES = (
    Route(
        "POST", "/v1/mine", mine_pairs, "The similar pairs of texts, or of a collection.", MINED,
        MINE_REQUEST, measures="embed",
    ),
    Route(
        "POST", "/v1/dedupe", find_duplicates, "Which texts are duplicates of which.", DEDUPED,
        DEDUPE_REQUEST, measures="embed",
    ),
    Route(
        "POST", "/v1/cluster", find_clusters, "Groups of alike texts, and what each is about.", CLUSTERED,
        CLUSTER_REQUEST, measures="embed",
    ),
)  # fmt: skip

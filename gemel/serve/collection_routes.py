"""Collections over HTTP: list, create, add, remove, search, info."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Any, get_args

from gemel.errors import GemelError, ModelMismatch, ServerError
from gemel.index import CollectionInfo
from gemel.serve.answers import Answer
from gemel.serve.calls import Call
from gemel.serve.inputs import check_count
from gemel.serve.library import NAME, AnyLibrary, checked_name
from gemel.serve.refusals import Refusal, refusal_of
from gemel.serve.routing import Route
from gemel.serve.schemas import (
    AnyOf,
    Choice,
    Field,
    Flag,
    Free,
    ListOf,
    Nullable,
    Number,
    Record,
    Reply,
    Text,
    Whole,
)
from gemel.serve.work import QueuedReranker, answered, both_sides
from gemel.tasks.hit_fields import fields_of
from gemel.tasks.rerank import Reranking
from gemel.tasks.search import Mode, search

MOST_HITS = 1_000  # of one query
MOST_CANDIDATES = 200  # that a re-ranker reads for one query
LARGEST_WHOLE = (1 << 63) - 1
ID = AnyOf((Text(), Whole(-LARGEST_WHOLE, LARGEST_WHOLE)), "a text or a whole number")
QUERIES = AnyOf((Text(), ListOf(Text(), least=1)), "a query or a list of queries")


@dataclass(frozen=True)
class Name(Text):
    """The name of a collection."""

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{NAME.pattern}$"}

    def read(self, value: Any, where: str) -> str:
        return checked_name(super().read(value, where))


SEARCH_FIELDS = (
    Field("queries", QUERIES),
    Field("k", Whole(1, MOST_HITS), 10, "How many hits a query."),
    Field("mode", Choice(get_args(Mode)), None, "Hybrid where the collection has full text, else dense."),
    Field("rerank", Flag(), False, "Let the server's re-ranker read the best candidates again."),
    Field("n_candidates", Whole(1, MOST_CANDIDATES), 100, "That the re-ranker reads for each query."),
    Field("filter", Text(), None, "A condition on the metadata, such as: year >= 2019 and kind = 'note'."),
    Field("offset", Whole(0, MOST_HITS), 0, "How many of the best to leave out."),
    Field("explain", Flag(), False, "Say why each hit was found."),
)
SEARCH_REQUEST = Record("SearchRequest", Field("collection", Name()), *SEARCH_FIELDS)
SEARCH_ONE_REQUEST = Record("CollectionSearchRequest", *SEARCH_FIELDS)
CREATE_REQUEST = Record("CreateRequest", Field("name", Name(), says="Letters (a to z), digits, - and _."))
ADD_REQUEST = Record(
    "AddRequest",
    Field("texts", ListOf(Text(), least=1)),
    Field("ids", ListOf(ID, least=1), None, "As many; texts without ids are known by their content."),
    Field("metadata", ListOf(Free(), least=1), None, "As many; filters of searches go by it."),
)
REMOVE_REQUEST = Record("RemoveRequest", Field("ids", ListOf(ID, least=1)))

INFO = Reply(
    "Collection",
    Field("object", Choice(("collection",))),
    Field("name", Text()),
    Field("n_records", Whole()),
    Field("n_removed", Whole()),
    Field("n_bytes", Whole()),
    Field("dim", Whole()),
    Field("measure", Text()),
    Field("text_search", ListOf(Text())),
    Field("model", Text()),
    Field("fingerprint", Text()),
    Field("is_usable", Flag(), says="Whether the model that is loaded is the one that it was made with."),
    Field("plan", Text()),
    Field("error", Text(), None, "In a list: why it cannot be opened; then what it holds is left empty."),
)
LISTED = Reply("Collections", Field("object", Choice(("list",))), Field("data", ListOf(INFO)))
HIT = Reply(
    "Hit",
    Field("id", ID),
    Field("score", Number()),
    Field("text", Text()),
    Field("metadata", Free()),
    Field("passage", Free(), None),
    Field("explanation", Free(), None),
)
FOUND = Reply(
    "Found",
    Field("object", Choice(("search",))),
    Field("collection", Text()),
    Field("data", ListOf(ListOf(HIT)), says="The hits of each query, best first."),
    Field("model", Text()),
    Field("reranker", Nullable(Text())),
)
ADDED = Reply(
    "Added",
    Field("object", Choice(("added",))),
    Field("n_new", Whole()),
    Field("n_changed", Whole()),
    Field("n_unchanged", Whole()),
    Field("n_encoded", Whole()),
    Field("n_records", Whole()),
)
REMOVED = Reply(
    "Removed", Field("object", Choice(("removed",))), Field("n_removed", Whole()), Field("n_records", Whole())
)


def the_library(call: Call) -> AnyLibrary:
    """The server's collections, if it keeps any."""
    if call.serving.library is None:
        raise Refusal(
            "not_found", "this server keeps no collections; start it with --collections FOLDER to have some"
        )
    return call.serving.library


async def list_collections(call: Call, request: dict[str, Any]) -> Answer:
    """What collections there are."""
    library = the_library(call)

    def listed() -> dict[str, Any]:
        found = (_listed(call, library, name) for name in library.names())
        return {"object": "list", "data": [each for each in found if each is not None]}

    return await answered(call, listed)


async def create(call: Call, request: dict[str, Any]) -> Answer:
    """A new, empty collection."""
    library, name = the_library(call), request["name"]

    def made() -> dict[str, Any]:
        collection = library.create(name, call.models.encoder, call.models.name)
        return _described(call, name, collection.info())

    return await answered(call, made)


async def info(call: Call, request: dict[str, Any]) -> Answer:
    """What a collection is and holds."""
    library, name = the_library(call), request["path"]["name"]
    return await answered(call, lambda: _described(call, name, library.collection(name).info()))


async def add(call: Call, request: dict[str, Any]) -> Answer:
    """Texts into a collection."""
    library, name = the_library(call), request["path"]["name"]
    check_count(call, len(request["texts"]), "texts")
    documents, queries = both_sides(call)

    def added() -> dict[str, Any]:
        collection = library.collection(name).with_encoder(documents, queries)
        outcome = collection.add(request["texts"], request["ids"], request["metadata"])
        return {"object": "added", **asdict(outcome), "n_records": len(collection)}

    return await answered(call, added)


async def remove(call: Call, request: dict[str, Any]) -> Answer:
    """Records out of a collection."""
    library, name = the_library(call), request["path"]["name"]
    check_count(call, len(request["ids"]), "ids")

    def removed() -> dict[str, Any]:
        collection = library.collection(name)
        n_removed = collection.remove(request["ids"])
        return {"object": "removed", "n_removed": n_removed, "n_records": len(collection)}

    return await answered(call, removed)


async def search_any(call: Call, request: dict[str, Any]) -> Answer:
    """What fits queries best, in the collection that the request names."""
    return await _searched(call, request, request["collection"])


async def search_one(call: Call, request: dict[str, Any]) -> Answer:
    """The same, in the collection that the path names."""
    return await _searched(call, request, request["path"]["name"])


async def _searched(call: Call, request: dict[str, Any], name: str) -> Answer:
    library = the_library(call)
    queries = [request["queries"]] if isinstance(request["queries"], str) else request["queries"]
    check_count(call, len(queries), "queries")
    documents, asking = both_sides(call)
    reranking = None
    if request["rerank"]:
        reader = QueuedReranker(call, asyncio.get_running_loop())
        reranking = Reranking(reader, n_candidates=request["n_candidates"])

    def found() -> dict[str, Any]:
        collection = library.collection(name)
        if request["mode"] != "lexical" or request["explain"]:  # words alone need no model
            collection = collection.with_encoder(documents, asking)
        hits = search(
            collection,
            queries,
            request["k"],
            mode=request["mode"],
            reranker=reranking,
            filter=request["filter"],
            offset=request["offset"],
            explain=request["explain"],
        )
        data = [[fields_of(hit) for hit in of_query] for of_query in hits]
        reader_name = call.models.reranker_name if request["rerank"] else None
        told = {"object": "search", "collection": name, "data": data, "model": call.models.name}
        return {**told, "reranker": reader_name}

    return await answered(call, found)


def _listed(call: Call, library: AnyLibrary, name: str) -> dict[str, Any] | None:
    """What a collection is and holds, or why that cannot be told: one that is damaged hides no other."""
    try:
        return _described(call, name, library.collection(name).info())
    except (Refusal, FileNotFoundError):  # it is gone since the names were read
        return None
    except ServerError:  # then none can be told of, and each would be waited for
        raise
    except GemelError as error:
        return _unopened(name, library.without_root(refusal_of(error).message))


def _unopened(name: str, why: str) -> dict[str, Any]:
    nothing = {"n_records": 0, "n_removed": 0, "n_bytes": 0, "dim": 0, "measure": "", "text_search": []}
    unknown = {"model": "", "fingerprint": "", "is_usable": False, "plan": ""}
    return {"object": "collection", "name": name, **nothing, **unknown, "error": why}


def _described(call: Call, name: str, found: CollectionInfo) -> dict[str, Any]:
    settings = found.settings
    return {
        "object": "collection",
        "name": name,
        "n_records": found.n_records,
        "n_removed": found.n_removed,
        "n_bytes": found.n_bytes,
        "dim": settings.dim,
        "measure": settings.measure,
        "text_search": list(settings.text_search),
        "model": settings.model.rpartition("/")[2],  # of a folder only the last part, as for the loaded one
        "fingerprint": settings.fingerprint,
        "is_usable": _is_usable(call, found),
        "plan": f"{found.plan.method}: {found.plan.reason}",
    }


def _is_usable(call: Call, found: CollectionInfo) -> bool:
    encoder = call.models.encoder
    try:
        found.settings.check_model(encoder.fingerprint, encoder.dim, found.name)
    except ModelMismatch:
        return False
    return True


ROUTES = (
    Route(
        "POST", "/v1/search", search_any, "What fits queries best in a collection.", FOUND, SEARCH_REQUEST,
        measures="embed",
    ),
    Route("GET", "/v1/collections", list_collections, "The collections, and what they hold.", LISTED),
    Route(
        "POST", "/v1/collections", create, "Make an empty collection for the model that is loaded.", INFO,
        CREATE_REQUEST, scope="write",
    ),
    Route("GET", "/v1/collections/{name}", info, "What a collection is and holds.", INFO),
    Route(
        "POST", "/v1/collections/{name}/add", add, "Store texts, in place of what has their ids.", ADDED,
        ADD_REQUEST, scope="write", measures="embed",
    ),
    Route(
        "POST", "/v1/collections/{name}/remove", remove, "Remove the records with these ids.", REMOVED,
        REMOVE_REQUEST, scope="write",
    ),
    Route(
        "POST", "/v1/collections/{name}/search", search_one, "What fits queries best in this collection.",
        FOUND, SEARCH_ONE_REQUEST, measures="embed",
    ),
)  # fmt: skip

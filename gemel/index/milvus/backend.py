"""The records of a collection in Milvus."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.index.backend import Allowed, Held, Ranked, best_of
from gemel.index.filters import Filter
from gemel.index.judging import passes
from gemel.index.lexical import all_terms, terms_of
from gemel.index.milvus.client import Client
from gemel.index.milvus.expressions import Expression, necessary
from gemel.index.milvus.schema import MAX_BYTES, TERM_FIELDS
from gemel.index.planning import Changes, changes_for
from gemel.index.records import Id, Row
from gemel.index.segment import Rows
from gemel.index.settings import Settings
from gemel.index.store import CollectionInfo, Plan
from gemel.threads import thread_lock

WINDOW_ROWS = 1_000  # asked for by their keys, or read, at a time
MAX_FOUND = 16_384  # that Milvus gives to one query
EFFORT = 200  # candidates that a walk keeps
SPARE = 16  # more than are asked for, as Milvus's order and ours may differ in the last bit
TERM_BYTES = 16

_FIELDS = ["number", "id", "text", "metadata_text", "content"]


class MilvusBackend:
    """One collection of a server or a file."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self.name = str(client.address)
        self.settings = settings
        self._client = client
        self._collection = client.address.collection
        self._writing = thread_lock()

    # In and out -------------------------------------------------------------------------------------------

    def known(self, ids: Sequence[Id]) -> dict[Id, Held]:
        """Those of the records with these ids that are there."""
        rows = self._rows([_key(id_) for id_ in ids], _FIELDS)
        return {each.id: each for each in map(_held, rows)}

    def store(self, rows: Sequence[Row], vectors: Mapping[Id, Rows]) -> Changes[Held] | None:
        """Store the rows, which is no transaction: see the package; None where a vector is missing."""
        for row in rows:
            _check_storable(row)
        with self._writing:  # at least the threads of this process do not overtake each other
            changes = changes_for(rows, self.known([row.id for row in rows]))
            if any(row.id not in vectors for row in changes.inserted):
                return None
            first = time.time_ns()
            entries = [
                self._entry(row, vectors[row.id], first + place) for place, row in enumerate(changes.inserted)
            ]
            entries += self._relabelled([row for row, _ in changes.relabelled])
            for start in range(0, len(entries), WINDOW_ROWS):
                window = entries[start : start + WINDOW_ROWS]
                self._client.run(partial(self._upserted, window))
            return changes

    def remove(self, ids: Sequence[Id]) -> int:
        """Remove the records with these ids; how many of them were there."""
        with self._writing:
            keys = [row["key"] for row in self._rows([_key(id_) for id_ in ids], ["key"])]
            for start in range(0, len(keys), WINDOW_ROWS):
                window = keys[start : start + WINDOW_ROWS]
                self._client.run(partial(self._deleted, window))
            return len(keys)

    def count(self, filter_: Filter | None) -> int:
        """How many records pass a filter."""
        if filter_ is not None:
            return len(self._passing(filter_))
        found = self._client.run(lambda c: c.query(self._collection, filter="", output_fields=["count(*)"]))
        return int(found[0]["count(*)"])

    def all_records(self, filter_: Filter | None) -> Iterator[Held]:
        """The records that pass a filter, in the order in which their texts came."""
        keys = self._passing(filter_)
        for start in range(0, len(keys), WINDOW_ROWS):
            rows = self._rows(keys[start : start + WINDOW_ROWS], _FIELDS)
            yield from map(_held, sorted(rows, key=lambda row: row["number"]))

    def vectors(self, ids: Sequence[Id] | None) -> tuple[list[Id], Vectors]:
        """The vectors of the records with these ids, in their order, or of all."""
        keys = self._passing(None) if ids is None else [_key(id_) for id_ in ids]
        found = {row["key"]: row for row in self._rows(keys, ["key", "id", "embedding"])}
        kept = [found[key] for key in keys if key in found]
        rows = np.array([row["embedding"] for row in kept], np.float32).reshape(-1, self.settings.dim)
        return [_id(row["id"]) for row in kept], rows

    def id_types(self, filter_: Filter | None) -> set[type]:
        """Which types the ids have."""
        return {type(held.id) for held in self.all_records(filter_)}

    # Search -----------------------------------------------------------------------------------------------

    def nearest(self, queries: Vectors, k: int, allowed: Allowed) -> list[list[Ranked]]:
        """The k records most like each query."""
        if allowed is not None and not isinstance(allowed, Filter):
            rows = self._rows([_key(number) for number in allowed], [*_FIELDS, "embedding"])
            return [self._best(query, rows, k) for query in queries]
        return [self._nearest(query, k, allowed) for query in queries]

    def _nearest(self, query: Vectors, k: int, filter_: Filter | None) -> list[Ranked]:
        expression = necessary(filter_.tree if filter_ is not None else None)
        n_asked = k + SPARE
        while n_asked <= MAX_FOUND:
            found = self._client.run(partial(self._asked, query, n_asked, expression))
            rows = [row for row in found if _passes(row, filter_)]
            if len(rows) >= k or len(found) < min(n_asked, MAX_FOUND):
                break
            if n_asked == MAX_FOUND:
                rows = self._rows(self._passing(filter_), [*_FIELDS, "embedding"])
                break
            n_asked = min(4 * n_asked, MAX_FOUND)
        else:
            rows = self._rows(self._passing(filter_), [*_FIELDS, "embedding"])
        return self._best(query, rows, k)

    def _asked(self, query: Vectors, n: int, expression: Expression, client: Any) -> list[dict[str, Any]]:
        found = client.search(
            self._collection,
            [query.tolist()],
            anns_field="embedding",
            limit=n,
            output_fields=[*_FIELDS, "embedding"],
            search_params={"params": {"ef": max(EFFORT, 2 * n)}},
            **self._filtering(expression),
        )
        return [dict(hit["entity"]) for hit in found[0]]

    def _best(self, query: Vectors, rows: Sequence[Mapping[str, Any]], k: int) -> list[Ranked]:
        vectors = np.array([row["embedding"] for row in rows], np.float32).reshape(-1, self.settings.dim)
        return best_of(
            query, [(row["number"], _held(row)) for row in rows], vectors, k, self.settings.measure
        )

    def lexical(self, query: str, k: int, tokenizer: str, filter_: Filter | None) -> list[Ranked]:
        """The k records that share the rarest words with a query, by Milvus's own BM25."""
        terms = terms_of(query, tokenizer)
        if not terms:
            return []
        expression = necessary(filter_.tree if filter_ is not None else None)
        asked, (_, field) = _hashed(terms), TERM_FIELDS[tokenizer]
        n_asked = min(k if filter_ is None else 4 * k + SPARE, MAX_FOUND)
        while True:
            found = self._client.run(partial(self._worded, asked, field, n_asked, expression))
            kept = [hit for hit in found if _passes(hit["entity"], filter_)]
            if len(kept) >= k or len(found) < n_asked or n_asked == MAX_FOUND:
                break
            n_asked = min(4 * n_asked, MAX_FOUND)
        # Milvus Lite gives BM25 with a minus before it.
        ranked = [(abs(hit["distance"]), hit["entity"]["number"], _held(hit["entity"])) for hit in kept]
        ranked.sort(key=lambda each: (-each[0], each[1]))
        return [Ranked(held, score) for score, _, held in ranked[:k]]

    def _worded(self, asked: str, field: str, n: int, expression: Expression, client: Any) -> list[Any]:
        filtering = self._filtering(expression)
        found = client.search(
            self._collection, [asked], anns_field=field, limit=n, output_fields=_FIELDS, **filtering
        )
        return list(found[0])

    def terms(self, query: str, tokenizer: str) -> list[str]:
        """The words of a query, all of which Milvus ranks by."""
        return terms_of(query, tokenizer)

    def plan(self, filter_: Filter | None) -> Plan:
        """How a search by vector is answered."""
        return Plan(
            "approximate", self.count(filter_), "an index of Milvus's; exact scores of its candidates"
        )

    # Upkeep -----------------------------------------------------------------------------------------------

    def info(self) -> CollectionInfo:
        """What the collection is and holds; Milvus does not tell how much room that takes."""
        return CollectionInfo(self.name, self.settings, self.count(None), 0, 0, self.plan(None))

    def build_index(self) -> None:
        """Milvus indexes what it has written out; see that this is everything."""
        self._client.run(lambda c: c.flush(self._collection))

    def keep_index(self) -> None:
        """Milvus does so itself."""

    def compact(self) -> None:
        """Give back the room of what was removed."""
        self._client.run(lambda c: c.flush(self._collection))
        self._client.run(lambda c: c.compact(self._collection))

    def close(self) -> None:
        """Let go of the server."""
        self._client.close()

    # Steps ------------------------------------------------------------------------------------------------

    def _rows(self, keys: Sequence[str], fields: Sequence[str]) -> list[dict[str, Any]]:
        """The rows with these keys that are there; keys are hashes, in which nothing can be injected."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(keys), WINDOW_ROWS):
            asked = f"key in {json.dumps(list(keys[start : start + WINDOW_ROWS]))}"
            found += self._client.run(partial(self._queried, asked, list(fields)))
        return found

    def _queried(self, asked: str, fields: list[str], client: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in client.query(self._collection, filter=asked, output_fields=fields)]

    def _upserted(self, window: list[dict[str, Any]], client: Any) -> None:
        client.upsert(self._collection, window)

    def _deleted(self, keys: list[str], client: Any) -> None:
        client.delete(self._collection, ids=keys)

    def _passing(self, filter_: Filter | None) -> list[str]:
        """The keys of all records that pass a filter, in the order in which their texts came."""
        expression = necessary(filter_.tree if filter_ is not None else None)

        def read(client: Any) -> list[tuple[int, str]]:
            fields = ["key", "number"] if filter_ is None else ["key", "number", "metadata_text"]
            iterator = client.query_iterator(
                self._collection, batch_size=WINDOW_ROWS, output_fields=fields, **self._filtering(expression)
            )
            found: list[tuple[int, str]] = []
            while window := iterator.next():
                found += [(row["number"], row["key"]) for row in window if _passes(row, filter_)]
            iterator.close()
            return found

        return [key for _, key in sorted(self._client.run(read))]

    def _filtering(self, expression: Expression) -> dict[str, Any]:
        if self._client.takes_values:
            return {"filter": expression.text, "filter_params": expression.values}
        return {"filter": expression.inlined()}

    def _entry(self, row: Row, vector: Any, number: int) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "key": _key(row.id),
            "number": number,
            "id": _tagged(row.id),
            "text": row.text,
            "metadata_text": row.metadata,
            "metadata": _fields(row.metadata),
            "content": row.content.hex(),
            "embedding": np.asarray(vector, np.float32).tolist(),
        }
        for tokenizer in self.settings.text_search:
            entry[TERM_FIELDS[tokenizer][0]] = _hashed(all_terms(row.text, tokenizer))
        return entry

    def _relabelled(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Whole rows with other metadata: Milvus knows no smaller change."""
        new = {_key(row.id): row for row in rows}
        kept = self._rows(list(new), ["key", "number", "embedding"])
        return [self._entry(new[row["key"]], row["embedding"], row["number"]) for row in kept]


def _tagged(id_: Id) -> str:
    return f"i:{id_}" if isinstance(id_, int) else f"s:{id_}"


def _id(tagged: str) -> Id:
    return int(tagged[2:]) if tagged.startswith("i:") else tagged[2:]


def _key(id_: Id) -> str:
    return hashlib.blake2b(_tagged(id_).encode(), digest_size=16).hexdigest()


def _held(row: Mapping[str, Any]) -> Held:
    return Held(_id(row["id"]), row["text"], row["metadata_text"], bytes.fromhex(row["content"]))


def _passes(row: Mapping[str, Any], filter_: Filter | None) -> bool:
    return filter_ is None or passes(filter_.tree, json.loads(row["metadata_text"]))


def _hashed(terms: Sequence[str]) -> str:
    """Terms as words that every analyzer leaves alone: hexadecimal hashes, as many as a field holds."""
    most = MAX_BYTES // (TERM_BYTES + 1)
    return " ".join(
        hashlib.blake2b(term.encode(), digest_size=TERM_BYTES // 2).hexdigest() for term in terms[:most]
    )


def _fields(metadata: str) -> dict[str, Any]:
    """The metadata for Milvus's filters, which know integers of 64 bits."""
    found: dict[str, Any] = json.loads(metadata, parse_int=_short_integer)
    return found


def _short_integer(digits: str) -> int | float:
    number = int(digits)
    return number if -(1 << 63) <= number < 1 << 63 else float(number)


def _check_storable(row: Row) -> None:
    parts = {"text": row.text, "metadata": row.metadata, "id": _tagged(row.id)}
    for what, part in parts.items():
        if len(part) > MAX_BYTES // 4 and len(part.encode()) > MAX_BYTES:
            raise InvalidInput(
                f"the {what} of the record {str(row.id)[:40]!r} has {len(part.encode()):,} bytes; Milvus "
                f"keeps {MAX_BYTES:,} at most: cut it into passages"
            )

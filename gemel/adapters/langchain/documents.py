"""The records of a collection as LangChain's documents, whose ids are always str, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from gemel.errors import InvalidInput
from gemel.index import Filter, Found, Record, Store
from gemel.index.records import Id, checked_ids
from gemel.tasks.passages import passage_of

Where = str | Filter | Mapping[str, Any] | None
Scored = list[tuple[Document, float]]


def document_of(record: Record) -> Document:
    """The record as a document; a passage has its own id, in every search."""
    return Document(id=str(record.id), page_content=record.text, metadata=dict(record.metadata))


def scored_documents(found: Iterable[Found]) -> Scored:
    """What was found, with how well it fits."""
    return [(document_of(each.record), each.score) for each in found]


def records_of(collection: Store, ids: Sequence[str]) -> list[Record]:
    """The records with these ids, be they kept as str or as int; of a document that was cut, its passages."""
    named = [kind for id_ in dict.fromkeys(checked_ids(ids)) for kind in _both_kinds(id_)]
    there = dict(zip(named, collection.get(named), strict=True))
    absent = [id_ for id_, record in there.items() if record is None]
    passages = collection.get(_passage_ids(collection, absent))
    return [record for record in (*there.values(), *passages) if record is not None]


def kept_ids(collection: Store, ids: Sequence[str]) -> list[Id]:
    """The ids to store documents under: an int where a record is kept under that."""
    numbers = {id_: number for id_ in checked_ids(ids) for number in _both_kinds(id_)[1:]}
    there = {record.id for record in collection.get(numbers.values()) if record is not None}
    return [numbers[id_] if numbers.get(id_) in there else id_ for id_ in ids]


def whole_document_ids(records: Iterable[Record]) -> list[Id]:
    """Of which document each record is: itself, or the one that it is a passage of."""
    found = [(record, passage_of(record)) for record in records]
    return [record.id if passage is None else passage.document for record, passage in found]


def condition_of(where: Where) -> str | Filter | None:
    """A filter as it is, or one that asks for equal fields."""
    if not isinstance(where, Mapping):
        return where
    if not where:
        return None
    quoted = [name for name in where if "`" in name]
    if quoted:
        raise InvalidInput(f"the filter asks for the field {quoted[0]!r}; a field's name may have no ` in it")
    return Filter(" and ".join(f"`{name}` = ?" for name in where), *where.values())


def refuse_unknown(unknown: Mapping[str, Any], asked: str, known: str) -> None:
    """Refuse arguments that would be without effect."""
    if unknown:
        raise InvalidInput(f"{asked} was given {', '.join(unknown)}, which it does not know; give {known}")


def _both_kinds(id_: Id) -> list[Id]:
    """An id as it was shown, and the integer that is shown so."""
    try:
        number = int(id_)
    except ValueError:
        return [id_]
    is_kept_so = str(number) == id_ and -(1 << 63) <= number < 1 << 63
    return [id_, number] if is_kept_so else [id_]


def _passage_ids(collection: Store, documents: Sequence[Id]) -> Iterator[str]:
    firsts = collection.get([f"{document}#1" for document in documents])
    for document, first in zip(documents, firsts, strict=True):
        passage = None if first is None else passage_of(first)
        if passage is not None and passage.document == document:
            yield from (f"{document}#{number}" for number in range(1, passage.count + 1))

"""What a collection keeps for each sentence, what it gives back, and what it refuses to keep."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gemel.errors import InvalidInput
from gemel.index.checksums import content_hash

Id = int | str
Metadata = Mapping[str, Any]

# SQLite reads JSON to a depth of 1,000; a filter must never meet a row that it cannot read.
MAX_DEPTH = 100
NO_METADATA = "{}"
_MANY_DIGITS = re.compile(r"[0-9]{19}")  # only such numbers can have more than 64 bits


@dataclass(frozen=True)
class Record:
    """A sentence under its id, with whatever else is known of it."""

    id: Id
    text: str
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A record that a search has found, and how well it fits: larger is better."""

    record: Record
    score: float


@dataclass(frozen=True)
class Added:
    """What became of the records that were added; only `n_encoded` of them cost an encoding."""

    n_new: int = 0
    n_changed: int = 0
    n_unchanged: int = 0
    n_encoded: int = 0

    def __add__(self, other: Added) -> Added:
        return Added(
            self.n_new + other.n_new,
            self.n_changed + other.n_changed,
            self.n_unchanged + other.n_unchanged,
            self.n_encoded + other.n_encoded,
        )

    def __len__(self) -> int:
        return self.n_new + self.n_changed + self.n_unchanged


class Row(NamedTuple):
    """A record as it is stored, before it has a number and a vector."""

    id: Id
    text: str
    metadata: str
    content: bytes
    is_named: bool = True  # and not known by its content


def checked_rows(
    texts: Iterable[str | Record], ids: Iterable[Id] | None = None, metadata: Iterable[Metadata] | None = None
) -> Iterator[Row]:
    """The records to store, one by one; the first that cannot be stored is named."""
    if isinstance(texts, str | bytes | Mapping | Record) or not isinstance(texts, Iterable):
        raise InvalidInput(
            f"a sequence of texts or records was expected and one {type(texts).__name__} was given; "
            "put it into a list"
        )
    ids_given, metadata_given = _beside("ids", ids), _beside("metadata", metadata)
    nothing = object()
    position = -1
    for position, text in enumerate(texts):
        id_, known = next(ids_given, nothing), next(metadata_given, nothing)
        if (id_ is nothing) != (ids is None) or (known is nothing) != (metadata is None):
            short = "ids" if id_ is nothing and ids is not None else "metadata"
            raise InvalidInput(f"{short} end after {position} and the texts do not; give one for each text")
        if isinstance(text, Record):
            if ids is not None or metadata is not None:
                raise InvalidInput("records carry their own ids and metadata; give them once, not twice")
            id_, known, text = text.id, text.metadata, text.text
        yield _row(position, text, id_, known, nothing)
    for name, rest in (("ids", ids_given), ("metadata", metadata_given)):
        if next(rest, nothing) is not nothing:
            raise InvalidInput(f"there are more {name} than the {position + 1} texts; give one for each text")


def checked_ids(ids: Iterable[Id]) -> list[Id]:
    """The ids as they are kept; one alone, or one of another kind, is refused."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InvalidInput(f"a sequence of ids was expected and {_shown(ids)} was given; put it into a list")
    return [checked_id(id_, f"id {position}") for position, id_ in enumerate(ids)]


def checked_id(value: object, place: str) -> Id:
    """The id as it is kept: a str, or an int of 64 bits."""
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if -(1 << 63) <= value < 1 << 63:
            return value
        raise InvalidInput(f"{place} is {value}, which has more than 64 bits; give it as a str")
    if isinstance(value, str):
        return whole_text(value, place)
    raise InvalidInput(f"{place} is {_shown(value)}; expected a str or an int")


def each_once(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows; an id that stands twice among them is refused: which of the two was meant?"""
    seen: dict[Id, int] = {}
    for position, row in enumerate(rows):
        before = seen.setdefault(row.id, position)
        if before != position and row.is_named:
            raise InvalidInput(
                f"id {row.id!r} is given twice, at {before} and at {position}; give every id once"
            )
        yield row


def _row(position: int, text: object, id_: object, metadata: object, nothing: object) -> Row:
    if not isinstance(text, str):
        raise InvalidInput(f"text {position} is {_shown(text)}; expected a str or a Record")
    text = whole_text(text, f"text {position}")
    content = content_hash(text)
    # A text without an id is known by what it says, so that adding it again changes nothing.
    key = content.hex() if id_ is nothing else checked_id(id_, f"id {position}")
    known = NO_METADATA if metadata is nothing else checked_metadata(metadata, f"metadata {position}")
    return Row(key, text, known, content, id_ is not nothing)


def checked_metadata(value: object, place: str) -> str:
    """The metadata as JSON; what JSON would drop or change is refused."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{place} is {_shown(value)}; expected a dict with string keys")
    given = dict(value)
    if not given:
        return NO_METADATA
    try:
        dumped = json.dumps(given, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        is_kept = json.loads(dumped) == given
        dumped.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is not JSON ({error}); keep to what JSON can hold") from error
    if _MANY_DIGITS.search(dumped) and not _fits_64_bits(given):
        raise InvalidInput(
            f"{place} has a whole number of more than 64 bits: {_shown(given)}; give it as a str"
        )
    if not is_kept:
        raise InvalidInput(
            f"{place} would come back changed from JSON: {_shown(given)}; "
            "use string keys, lists instead of tuples, and plain numbers"
        )
    if dumped.count("{") + dumped.count("[") > MAX_DEPTH and _depth(given) > MAX_DEPTH:
        raise InvalidInput(f"{place} is nested deeper than {MAX_DEPTH}; make it flatter")
    return dumped


def _beside(name: str, values: Iterable[Any] | None) -> Iterator[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise InvalidInput(
            f"{name} is {_shown(values)}; expected a sequence with one for each text: put it into a list"
        )
    return iter(() if values is None else values)


def whole_text(text: str, place: str) -> str:
    """The text, if it can be kept."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{place} holds half a surrogate pair; expected text that UTF-8 can hold"
        ) from None
    return text


def _fits_64_bits(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_fits_64_bits, value.values()))
    if isinstance(value, list):
        return all(map(_fits_64_bits, value))
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63


def _depth(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _shown(value: object) -> str:
    shown = repr(value)
    return f"the {type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"

"""The rows of many files as parts: ranges that are the same ones in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import IO

from gemel.data.texts import Id, TextSource
from gemel.errors import InvalidInput
from gemel.scale.places import open_input, without_secrets

LARGEST_ID = 1 << 63


class StoredTexts(TextSource):
    """A file of texts on this disk or in an object storage."""

    @property
    def name(self) -> str:
        """What messages call this source."""
        return without_secrets(str(self.path))

    def opened(self) -> AbstractContextManager[IO[bytes]]:
        """The file, still compressed."""
        return open_input(str(self.path))


@dataclass(frozen=True)
class InputFacts:
    """What an input holds; `sha256` is that of its ids and texts."""

    path: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """Rows of one input that are encoded together and stand in one file."""

    number: int
    ids: list[Id]
    texts: list[str]


def look_through(sources: Sequence[StoredTexts]) -> list[InputFacts]:
    """Count and check the rows of each input: a flaw is told before hours are spent."""
    facts: list[InputFacts] = []
    first_type: type | None = None
    for source in sources:
        digest, rows = hashlib.sha256(), 0
        for record in source.records():
            first_type = first_type or type(record.id)
            _check_id(source, record.id, first_type)
            line = record.text.encode()
            digest.update(f"{len(line)} {record.id!r} ".encode())
            digest.update(line)
            rows += 1
        facts.append(InputFacts(source.name, rows, digest.hexdigest()))
    return facts


def count_parts(facts: Sequence[InputFacts], part_rows: int) -> int:
    """How many parts the inputs make; none holds rows of two."""
    return sum(-(-fact.rows // part_rows) for fact in facts)


def parts_of(
    sources: Sequence[StoredTexts], facts: Sequence[InputFacts], part_rows: int, done: frozenset[int]
) -> Iterator[Part]:
    """The parts that are not done; an id that no column gives is the row's number among all inputs."""
    number = first_row = 0
    for source, fact in zip(sources, facts, strict=True):
        n_parts = -(-fact.rows // part_rows)
        if done.issuperset(range(number, number + n_parts)):
            number, first_row = number + n_parts, first_row + fact.rows
            continue
        records, seen = source.records(), 0
        while window := list(islice(records, part_rows)):
            if number not in done:
                ids = [
                    record.id if source.id_column is not None else first_row + seen + place
                    for place, record in enumerate(window)
                ]
                yield Part(number, ids, [record.text for record in window])
            number, seen = number + 1, seen + len(window)
        if seen != fact.rows:
            raise InvalidInput(
                f"{source.name} had {fact.rows:,} rows and now has {seen:,}: wait until it is whole"
            )
        first_row += seen


def _check_id(source: StoredTexts, id_: Id, first_type: type) -> None:
    """Refuse what one typed column cannot hold."""
    if type(id_) is not first_type:
        raise InvalidInput(
            f"{source.name} has the id {id_!r}, and the first id is of type {first_type.__name__}; expected "
            "ids of one type"
        )
    if isinstance(id_, int) and not -LARGEST_ID <= id_ < LARGEST_ID:
        raise InvalidInput(f"{source.name} has the id {id_!r}; expected at most 64 bits")

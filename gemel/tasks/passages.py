"""Long documents in a collection: cut into passages where sentences end, and known by their own id.

A document of several passages is stored as records `id#1`, `id#2` ...; each carries the document's metadata
and, under `_passage`, whose it is and where in the text it stands. One that is short enough is stored whole,
under its own id, as if it had been added directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput
from gemel.index import Added, Record, Store
from gemel.index.records import Id, Metadata

KEY = "_passage"  # in the metadata of a record that is a part of a document
FILE_KEY = "_file"  # in the metadata of one that came from a folder which is watched
WINDOW_DOCUMENTS = 2_048  # cut, encoded and committed at a time
_PROBED = 64  # passages of a longer, earlier text that are looked for at a time

# Where a sentence ends: after its full stop and closing quotes, before white space; or at an empty line.
# Chinese and Japanese leave no space. A run of stops is looked at from its first one only: from each of them,
# a dotted line without a blank behind it would take the square of its length.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"')\]”’»]*\s+|\n\s*\n\s*|[。！？]+[」』”]*\s*")
_WORD_END = re.compile(r"\s+")


# What encoders with a tokenizer offer: how many tokens each text has, special ones included.
CountTokens = Callable[[Sequence[str]], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Chunking:
    """How documents are cut: passages of at most `max_tokens`, neighbours sharing up to `overlap_tokens`."""

    max_tokens: int
    overlap_tokens: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens < 8:
            raise InvalidInput(f"passages of {self.max_tokens} tokens were asked for; expected at least 8")
        if not 0 <= self.overlap_tokens <= self.max_tokens // 2:
            raise InvalidInput(
                f"an overlap of {self.overlap_tokens} tokens was asked for; expected 0 to "
                f"{self.max_tokens // 2}, half of a passage"
            )


class Span(NamedTuple):
    """A part of a text: `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True)
class Passage:
    """Where in a document a record stands: its number of how many, and `document[start:end]`."""

    document: Id
    number: int  # from 1
    count: int
    start: int
    end: int


def passage_of(record: Record) -> Passage | None:
    """Which part of which document a record is; None for one that is whole."""
    return passage_in(record.metadata)


def passage_in(metadata: Metadata) -> Passage | None:
    """Which part of which document the record with these metadata is; None for one that is whole."""
    kept = metadata.get(KEY)
    if not isinstance(kept, dict) or kept.keys() != {"of", "number", "count", "start", "end"}:
        return None
    return Passage(kept["of"], kept["number"], kept["count"], kept["start"], kept["end"])


def add_documents(
    collection: Store,
    documents: Iterable[Record],
    chunking: Chunking,
    *,
    on_progress: Callable[[int], object] | None = None,
) -> Added:
    """Store documents under their ids, long ones in passages, in place of what stood there.

    What is told is counted in records, `on_progress` in documents.
    """
    counter, added, n_done = _Counter(collection), Added(), 0
    remaining = each_once(documents)
    while window := list(islice(remaining, WINDOW_DOCUMENTS)):
        spans = cut(window, chunking, counter)
        records = [part for document in window for part in _parts(document, spans[document.id])]
        _check_not_taken(collection, records)
        added += collection.add(records)
        stale = _stale(collection, {id_: len(parts) for id_, parts in spans.items()})
        collection.remove([name for _, name in stale])
        n_done += len(window)
        if on_progress is not None:
            on_progress(n_done)
    return added


def remove_documents(collection: Store, ids: Iterable[Id]) -> int:
    """Remove documents with all their passages; how many of them were there."""
    asked = list(dict.fromkeys(ids))
    there = zip(asked, collection.get(asked), strict=True)
    found = [(id_, id_) for id_, record in there if record is not None and passage_of(record) is None]
    found += _stale(collection, dict.fromkeys(asked, 0))
    collection.remove([name for _, name in found])
    return len({document for document, _ in found})


def each_once(documents: Iterable[Record]) -> Iterator[Record]:
    """The documents; an id that stands twice among them is refused."""
    seen: set[Id] = set()
    for document in documents:
        if document.id in seen:
            raise InvalidInput(f"id {document.id!r} is given twice; give every id once")
        seen.add(document.id)
        yield document


def cut(documents: Sequence[Record], chunking: Chunking, counter: Counter) -> dict[Id, list[Span]]:
    """Where each document is cut; one span for one that is short enough."""
    # No tokenizer makes more tokens of a text than it has bytes, but for the special ones.
    limit = chunking.max_tokens - counter.n_special
    long = [document for document in documents if len(document.text.encode()) > limit]
    counts = dict(zip((each.id for each in long), counter.count([each.text for each in long]), strict=True))
    return {
        document.id: passages(document.text, chunking, counter)
        if counts.get(document.id, 0) > limit
        else [Span(0, len(document.text))]
        for document in documents
    }


def passages(text: str, chunking: Chunking, counter: Counter) -> list[Span]:
    """The text in passages that end where sentences do, or words where a sentence is too long."""
    limit = chunking.max_tokens - counter.n_special
    pieces: list[tuple[Span, int]] = []
    for sentence, n_tokens in _counted(text, _split(text, Span(0, len(text)), _SENTENCE_END), counter):
        if n_tokens <= limit:
            pieces.append((sentence, n_tokens))
        else:
            pieces += _short_pieces(text, sentence, limit, counter)
    return [_trimmed(text, span) for span in _packed(pieces, limit, chunking.overlap_tokens)]


# Cutting ---------------------------------------------------------------------------------------------------


class Counter(Protocol):
    """Counts tokens, special ones apart."""

    n_special: int

    def count(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""


class _Counter:
    """Counts as the collection's encoder does, or words where it has no tokens."""

    def __init__(self, collection: Store) -> None:
        self._count: CountTokens | None = getattr(collection.encoder, "count_tokens", None)
        self.n_special = 0 if self._count is None else int(self._count([""])[0])

    def count(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        if self._count is None:
            return [len(text.split()) for text in texts]
        counts: list[int] = (self._count(texts) - self.n_special).tolist() if texts else []
        return counts


def _split(text: str, within: Span, border: re.Pattern[str]) -> Iterator[Span]:
    """The parts of a stretch of text, each with the border behind it."""
    start = within.start
    for found in border.finditer(text, within.start, within.end):
        if found.end() > start:
            yield Span(start, found.end())
            start = found.end()
    if start < within.end:
        yield Span(start, within.end)


def _counted(text: str, spans: Iterable[Span], counter: Counter) -> Iterator[tuple[Span, int]]:
    listed = list(spans)
    return zip(listed, counter.count([text[span.start : span.end] for span in listed]), strict=True)


def _short_pieces(text: str, sentence: Span, limit: int, counter: Counter) -> Iterator[tuple[Span, int]]:
    """The words of a sentence that is too long, and the parts of words that are."""
    for word, n_tokens in _counted(text, _split(text, sentence, _WORD_END), counter):
        if n_tokens <= limit:
            yield word, n_tokens
            continue
        step = max(1, limit // 4)  # a character has at most four bytes, and a token at least one
        for start in range(word.start, word.end, step):
            part = Span(start, min(start + step, word.end))
            yield part, min(limit, len(text[part.start : part.end].encode()))


def _packed(pieces: Sequence[tuple[Span, int]], limit: int, overlap_tokens: int) -> Iterator[Span]:
    """As many pieces together as fit; each passage begins with the last few of the one before."""
    first, n_tokens = 0, 0
    for at, (_, n_piece) in enumerate(pieces):
        if at > first and n_tokens + n_piece > limit:
            yield Span(pieces[first][0].start, pieces[at - 1][0].end)
            first, n_tokens = at, 0
            while first > 0 and n_tokens + pieces[first - 1][1] <= min(overlap_tokens, limit - n_piece):
                first -= 1
                n_tokens += pieces[first][1]
        n_tokens += n_piece
    if pieces:
        yield Span(pieces[first][0].start, pieces[-1][0].end)


def _trimmed(text: str, span: Span) -> Span:
    part = text[span.start : span.end]
    start = span.start + len(part) - len(part.lstrip())
    return Span(start, max(start, span.start + len(part.rstrip())))


# Storing ---------------------------------------------------------------------------------------------------


def _parts(document: Record, spans: Sequence[Span]) -> Iterator[Record]:
    if KEY in document.metadata:
        raise InvalidInput(
            f"the metadata of {document.id!r} has {KEY!r}, which is kept for passages; rename it"
        )
    if len(spans) == 1:
        yield document
        return
    for number, (start, end) in enumerate(spans, 1):
        place = {"of": document.id, "number": number, "count": len(spans), "start": start, "end": end}
        yield Record(f"{document.id}#{number}", document.text[start:end], {**document.metadata, KEY: place})


def _check_not_taken(collection: Store, records: Sequence[Record]) -> None:
    """Refuse a document and a passage of another one under the same id."""
    for record, there in zip(records, collection.get([record.id for record in records]), strict=True):
        if there is None:
            continue
        ours, theirs = passage_of(record), passage_of(there)
        if (ours and ours.document) != (theirs and theirs.document):
            raise InvalidInput(
                f"the id {record.id!r} would be both a document and a passage of another; choose other ids"
            )


def _stale(collection: Store, n_kept: dict[Id, int]) -> list[tuple[Id, Id]]:
    """What is left of earlier texts, document and record, given how many passages each document has now."""
    split = [id_ for id_, n in n_kept.items() if n > 1]
    whole = zip(split, collection.get(split), strict=True)
    gone: list[tuple[Id, Id]] = [(id_, id_) for id_, record in whole if record is not None]
    behind = {id_: n if n > 1 else 0 for id_, n in n_kept.items()}
    n_probed = 1  # most documents have nothing behind their end
    while behind:
        asked = [(id_, f"{id_}#{n + step}") for id_, n in behind.items() for step in range(1, n_probed + 1)]
        records = collection.get([name for _, name in asked])
        found = [
            (id_, name) for (id_, name), record in zip(asked, records, strict=True) if _is_of(record, id_)
        ]
        gone += found
        last = {name for _, name in found}
        behind = {id_: n + n_probed for id_, n in behind.items() if f"{id_}#{n + n_probed}" in last}
        n_probed = _PROBED
    return gone


def _is_of(record: Record | None, document: Id) -> bool:
    passage = None if record is None else passage_of(record)
    return passage is not None and passage.document == document

"""Official folders of retrieval: BEIR's `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from gemel.data.official.files import OfficialFiles, json_file, tab_file
from gemel.data.official.parts import Part, Reader, cells
from gemel.data.tables import is_text
from gemel.errors import InvalidInput


def beir(folder: str) -> Reader:
    """The reader of a set that lies in a folder of this name, or alone."""
    return partial(_beir, folder=folder)


def _beir(official: OfficialFiles, folder: str) -> Iterator[Part]:
    corpus, queries, qrels = (
        official.find(f"{folder}/{name}", name)
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
    )
    yield Part("corpus", ("doc_id", "title", "text"), _text_rows(corpus, ("title", "text")))
    yield Part("queries", ("query_id", "text"), _text_rows(queries, ("text",)))
    yield Part("qrels", ("query_id", "doc_id", "relevance"), _qrels_rows(qrels))


def _text_rows(path: Path, fields: Sequence[str]) -> Iterator[list[str]]:
    with json_file(path) as table:
        for number, row in table.rows():
            texts = [row.get("_id"), *(row.get(field, "") for field in fields)]
            if not all(map(is_text, texts)) or not texts[0]:
                raise InvalidInput(f"{table.place(number)}: expected texts as _id, {', '.join(fields)}")
            yield texts


def _qrels_rows(path: Path) -> Iterator[list[str]]:
    with tab_file(path) as table:
        yield from (row for _, row in cells(table, ("query-id", "corpus-id", "score")))

"""Questions, documents and which of them belong together: what search is measured by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemel.data.layouts import opened_table
from gemel.data.tables import Table, finite_number, is_text
from gemel.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class RetrievalData:
    """Texts by their ids, and for each query the documents that were judged; above 0 is relevant."""

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    relevance: Mapping[str, Mapping[str, float]]  # query id -> document id -> grade
    origin: str = "memory"

    def __post_init__(self) -> None:
        for query, judged in self.relevance.items():
            if query not in self.queries:
                raise InvalidInput(f"{self.origin}: the judged query {query!r} is not among the queries")
            missing = next((document for document in judged if document not in self.documents), None)
            if missing is not None:
                raise InvalidInput(
                    f"{self.origin}: the judged document {missing!r} is not among the documents"
                )
        if not any(grade > 0 for judged in self.relevance.values() for grade in judged.values()):
            raise InvalidInput(f"{self.origin}: no query has a relevant document; expected at least one")


# What the columns go by: the files of this program's own layout, and BEIR's.
_IDS = ("_id", "id", "doc_id", "query_id")
_QUERY = ("query-id", "query_id")
_DOCUMENT = ("corpus-id", "corpus_id", "doc_id")
_GRADE = ("score", "relevance")


def read_retrieval(folder: str | Path, split: str = "test") -> RetrievalData:
    """The data of a folder: corpus, queries and qrels as tables, or in BEIR's layout (`qrels/test.tsv`)."""
    folder = Path(folder)
    documents = _texts(_file(folder, "corpus"))
    queries = _texts(_file(folder, "queries"))
    relevance: dict[str, dict[str, float]] = {}
    qrels = _file(folder / "qrels", split) if (folder / "qrels").is_dir() else _file(folder, "qrels")
    with opened_table(qrels) as table:
        for number, row in table.rows():
            place = table.place(number)
            query, document = _id(row, _QUERY, place), _id(row, _DOCUMENT, place)
            grade = finite_number(_value(row, _GRADE, place))
            if grade is None:
                raise InvalidInput(f"{place}: the relevance is no number; expected 0, 1, 2 ...")
            relevance.setdefault(query, {})[document] = grade
    return RetrievalData(queries, documents, relevance, str(folder))


def _file(folder: Path, stem: str) -> Path:
    names = [f"{stem}.{suffix}{packed}" for suffix in ("jsonl", "tsv", "parquet") for packed in ("", ".gz")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InvalidInput(f"{folder} has no {stem}; expected one of {', '.join(names)}")


def _texts(path: Path) -> dict[str, str]:
    """The texts of a table by their ids; a title stands before its text."""
    texts: dict[str, str] = {}
    with opened_table(path) as table:
        for number, row in table.rows():
            key = _id(row, _IDS, table.place(number))
            if key in texts:
                raise InvalidInput(f"{table.place(number)}: the id {key!r} is there twice")
            texts[key] = _text(row, table, number)
    return texts


def _text(row: Mapping[str, Any], table: Table, number: int) -> str:
    parts = [row.get(name) for name in ("title", "text")]
    text = " ".join(part.strip() for part in parts if is_text(part) and part.strip())
    if "text" not in row:
        raise InvalidInput(f"{table.place(number)}: the row has no text; expected a column of that name")
    return text


def _id(row: Mapping[str, Any], names: tuple[str, ...], place: str) -> str:
    value = _value(row, names, place)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InvalidInput(f"{place}: the id is {value!r}; expected a text or a whole number")
    return str(value)


def _value(row: Mapping[str, Any], names: tuple[str, ...], place: str) -> Any:
    name = next((name for name in names if name in row), None)
    if name is None:
        raise InvalidInput(
            f"{place}: the row has the columns {', '.join(row)}; expected one of {', '.join(names)}"
        )
    return row[name]

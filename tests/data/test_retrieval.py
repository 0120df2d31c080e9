"""Questions, documents and judgements."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.data.retrieval import RetrievalData, read_retrieval
from gemel.errors import InvalidInput


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_beir(folder: Path) -> Path:
    write(
        folder / "corpus.jsonl",
        '{"_id": "d1", "title": "Wings", "text": "of planes"}',
        '{"_id": "d2", "text": "x"}',
    )
    write(folder / "queries.jsonl", '{"_id": "q1", "text": "flight"}')
    write(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", "q1\td1\t2", "q1\td2\t0")
    return folder


def test_a_beir_folder_is_read(tmp_path: Path) -> None:
    data = read_retrieval(write_beir(tmp_path))
    assert data.documents == {"d1": "Wings of planes", "d2": "x"}
    assert data.queries == {"q1": "flight"}
    assert data.relevance == {"q1": {"d1": 2.0, "d2": 0.0}}


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("qrels/test.tsv", "q9\td1\t1", "the judged query 'q9' is not among the queries"),
        ("qrels/test.tsv", "q1\td9\t1", "the judged document 'd9' is not among the documents"),
        ("qrels/test.tsv", "q1\td1\tmuch", "the relevance is no number"),
        ("corpus.jsonl", '{"_id": "d1", "text": "again"}', "line 3: the id 'd1' is there twice"),
        ("corpus.jsonl", '{"_id": "d3"}', "line 3: the row has no text"),
        ("queries.jsonl", '{"text": "who?"}', "line 2: the row has the columns text; expected one of _id"),
    ],
)
def test_a_bad_row_is_told_in_one_sentence(tmp_path: Path, file: str, line: str, message: str) -> None:
    with (write_beir(tmp_path) / file).open("a", encoding="utf-8") as opened:
        opened.write(line + "\n")
    with pytest.raises(InvalidInput, match=message):
        read_retrieval(tmp_path)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    write_beir(tmp_path)
    (tmp_path / "queries.jsonl").unlink()
    with pytest.raises(InvalidInput, match=r"has no queries; expected one of queries\.jsonl"):
        read_retrieval(tmp_path)


def test_without_a_relevant_document_there_is_nothing_to_measure() -> None:
    with pytest.raises(InvalidInput, match="no query has a relevant document"):
        RetrievalData({"q": "a"}, {"d": "b"}, {"q": {"d": 0.0}})


def test_cranfield_is_whole(real_data: Path) -> None:
    data = read_retrieval(real_data / "cranfield")
    assert (len(data.queries), len(data.documents)) == (225, 1_400)
    assert sum(len(judged) for judged in data.relevance.values()) == 1_837

"""Plain texts of several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.data.plain_texts import TextFile, read_plain_texts
from gemel.errors import InvalidInput


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\n\n  \none\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("p\th\tsource\nthree\tone\tx\nfour\tfive\tsick\n", encoding="utf-8")
    return tmp_path


def test_each_text_of_all_files_and_columns_is_read_once(folder: Path) -> None:
    found = read_plain_texts([TextFile(folder / "a.txt"), TextFile(folder / "b.tsv", ("p", "h"))])
    assert found.kind == "texts"
    assert found.columns["text"] == ["one", "two", "three", "four", "five"]
    assert found.describe() == f"5 texts from {folder / 'a.txt'} + {folder / 'b.tsv'}"


def test_rows_are_chosen_by_other_columns(folder: Path) -> None:
    for wanted, expected in (("sick", ["four"]), ("!=sick", ["three"])):
        assert list(TextFile(folder / "b.tsv", ("p",), {"source": wanted}).texts()) == expected


def test_truths_and_whole_numbers_are_alike_in_all_formats(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "a", "ok": true, "n": 1.0}\n{"text": "b", "ok": false, "n": 2}\n')
    for where in ({"ok": "!=false"}, {"ok": "1"}, {"n": "1"}, {"n": "!=2.0"}):
        assert list(TextFile(file, where=where).texts()) == ["a"]


def test_the_rows_of_a_document_are_one_text(tmp_path: Path) -> None:
    file = tmp_path / "sections.tsv"
    file.write_text("page\ttext\nA\tone\nB\ttwo\nA\tthree\nB\t\n", encoding="utf-8")
    assert list(TextFile(file, document="page").texts()) == ["one\nthree", "two\n"]


def test_a_limit_is_an_even_sample_that_the_seed_fixes(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("\n".join(map(str, range(1000))) + "\n", encoding="utf-8")
    files = [TextFile(tmp_path / "many.txt")]
    some, again, other = (read_plain_texts(files, limit=200, seed=seed).columns["text"] for seed in (1, 1, 2))
    assert some == again != other
    assert len(set(some)) == 200
    assert 70 < sum(int(text) < 500 for text in some) < 130
    assert len(read_plain_texts(files, limit=2000).columns["text"]) == 1000
    with pytest.raises(InvalidInput, match="limit is 0; expected at least 1"):
        read_plain_texts(files, limit=0)


def test_a_name_may_tell_the_columns(folder: Path) -> None:
    assert TextFile.named("a.tsv:p,h") == TextFile("a.tsv", ("p", "h"))
    assert TextFile.named("a.tsv", "body") == TextFile("a.tsv", ("body",))
    odd = folder / "odd:name.txt"
    odd.touch()
    assert TextFile.named(str(odd)) == TextFile(str(odd))

"""A column beside the examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.data.columns import read_column

FILES = {
    "tsv": "text\ttopic\na\tguns\nb\t\n",
    "csv": 'text,topic\n"a, b",guns\nb,\n',
    "jsonl": '{"text": "a", "topic": "guns"}\n{"text": "b"}\n',
}


@pytest.mark.parametrize("suffix", FILES)
def test_a_column_is_read_by_the_first_name_that_is_there(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text(FILES[suffix], "utf-8")
    assert read_column(path, ("subject", "topic", "text")) == ["guns", ""]
    assert read_column(path, "topic") == ["guns", ""]


@pytest.mark.parametrize("suffix", FILES)
def test_a_column_that_is_not_there_is_none(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text(FILES[suffix], "utf-8")
    assert read_column(path, ("subject", "file")) is None

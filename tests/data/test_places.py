"""Where data is looked for."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gemel.data.places import cache_folder, data_folder, find_file, hash_of
from gemel.errors import InvalidInput


def test_the_data_folder_is_the_argument_then_the_environment_then_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, cache = tmp_path / "named", tmp_path / "cache"
    named.mkdir()
    monkeypatch.setenv("GEMEL_DATA", str(named))
    assert data_folder() == named
    assert data_folder(tmp_path) == tmp_path
    monkeypatch.delenv("GEMEL_DATA")
    monkeypatch.setenv("GEMEL_CACHE", str(cache))
    assert data_folder() == cache_folder() == cache / "data"


def test_a_named_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere is not there; expected a folder of data sets"):
        data_folder(tmp_path / "nowhere")


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"STSb was looked for at .*stsb/test\.tsv and is not there"):
        find_file(tmp_path, "stsb/test.tsv", "STSb")


def test_the_hash_of_several_files_is_that_of_their_bytes_in_a_row(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    assert hash_of(tmp_path / "a", tmp_path / "b") == hashlib.sha256(b"onetwo").hexdigest()

"""Where a recipe's paths are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.data.places import CACHE_VARIABLE, DATA_VARIABLE, data_folder
from gemel.reproduce.sources import place


def test_a_file_is_looked_for_here_then_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, named, cache = (tmp_path / name for name in ("here", "named", "cache"))
    for folder in (here, named, cache / "data"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert place("pairs.tsv", data_folder()) == Path("pairs.tsv")  # nowhere: told as it was written
    (cache / "data" / "pairs.tsv").touch()
    assert place("pairs.tsv", data_folder()) == cache / "data" / "pairs.tsv"
    assert place("pairs.tsv", data_folder(named)) == named / "pairs.tsv"
    (here / "pairs.tsv").touch()
    assert place("pairs.tsv", data_folder(named)) == Path("pairs.tsv")

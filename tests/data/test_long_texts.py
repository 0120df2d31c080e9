"""Examples without long texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.long_texts import without_long_texts
from gemel.errors import InvalidInput


@pytest.fixture
def pairs(tmp_path: Path) -> Examples:
    (tmp_path / "x.tsv").write_text(
        "sentence1\tsentence2\tscore\nfive!\tb\t0.1\nc\tsix...\t0.2\nélan…\td\t0.3\n", encoding="utf-8"
    )
    return read_examples(tmp_path / "x.tsv")


def test_rows_with_a_text_of_too_many_characters_are_left_out_and_counted(pairs: Examples) -> None:
    short = without_long_texts(pairs, 5)
    assert short.columns["first"] == ["five!", "élan…"]  # characters, not bytes
    assert short.labels is not None
    assert short.labels.tolist() == pytest.approx([0.1, 0.3])
    assert short.describe().endswith("left out: 1 longer than 5 characters")
    assert "left out" not in without_long_texts(pairs, 6).describe()


def test_a_limit_counts_those_that_are_left(pairs: Examples) -> None:
    assert without_long_texts(pairs, 5, limit=2).columns["first"] == ["five!", "élan…"]
    assert without_long_texts(pairs, 5, limit=1).columns["first"] == ["five!"]


def test_what_leaves_nothing_or_makes_no_sense_is_refused(pairs: Examples) -> None:
    with pytest.raises(InvalidInput, match=r"all 3 scored pairs of .*x\.tsv .* more than max_characters=4"):
        without_long_texts(pairs, 4)
    with pytest.raises(InvalidInput, match="max_characters is 0; expected at least 1"):
        without_long_texts(pairs, 0)
    with pytest.raises(InvalidInput, match="limit is 0; expected at least 1"):
        without_long_texts(pairs, 5, limit=0)

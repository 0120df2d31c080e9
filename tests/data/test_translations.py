"""Translation pairs out of tables with a language a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.data.translations import read_translations
from gemel.errors import InvalidInput

TABLE = (
    "a\tb\tlang\nHallo\tWelt\tde\nJa\tWelt\tde\nhello\tworld\ten\nyes\tworld\ten\n"
    "oui\tmonde\tfr\nha\tmonde\tfr\n"
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "x.tsv"
    file.write_text(TABLE, encoding="utf-8")
    return file


def test_row_k_of_one_language_translates_row_k_of_another(table: Path) -> None:
    pairs = read_translations(table, texts=["a", "b"])
    assert pairs.kind == "pairs"
    assert list(zip(*pairs.columns.values(), strict=True)) == [
        ("hello", "Hallo"), ("world", "Welt"), ("yes", "Ja"),
        ("hello", "oui"), ("world", "monde"), ("yes", "ha"),
    ]  # fmt: skip
    some = read_translations(table, texts=["a"], pivot="fr", languages=["de"])
    assert some.columns == {"first": ["oui", "ha"], "second": ["Hallo", "Ja"]}


def test_what_does_not_align_is_refused(table: Path) -> None:
    with pytest.raises(InvalidInput, match="no rows in the language 'ko'; it has de, en, fr"):
        read_translations(table, texts=["a"], languages=["ko"])
    with pytest.raises(InvalidInput, match=r"no text in the column 'c' \(columns: a, b, lang\)"):
        read_translations(table, texts=["c"])
    table.write_text(TABLE + "Nein\tWelt\tde\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"has 4 texts in 'en' and 6 in 'de'; expected as many of each"):
        read_translations(table, texts=["a", "b"])
    table.write_text("a\tlang\nx\ten\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="holds no translations from 'en'"):
        read_translations(table, texts=["a"])


def test_the_translated_sts_benchmark_aligns(real_data: Path) -> None:
    file = real_data / "stsb_multi_mt" / "train.tsv.gz"
    pairs = read_translations(file, texts=["sentence1", "sentence2"], languages=["de"])
    assert 10_000 < len(pairs) <= 2 * 5_749
    assert ("A plane is taking off.", "Ein Flugzeug hebt gerade ab.") in set(
        zip(*pairs.columns.values(), strict=True)
    )

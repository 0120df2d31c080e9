"""Plain tables that align."""

from __future__ import annotations

from gemel.table import format_table


def test_numbers_are_set_to_the_right_and_words_to_the_left() -> None:
    table = format_table(["model", "score"], [["a", "7.50"], ["longer", "1,234.00"]])
    assert table.splitlines() == [
        "model      score",
        "──────  ────────",
        "a           7.50",
        "longer  1,234.00",
    ]


def test_differences_spreads_ratios_and_dashes_count_as_numbers() -> None:
    table = format_table(["x"], [["−0.12"], ["84.67 ± 0.19"], ["×1.20"], ["–"], [""], ["+3"]])
    assert table.splitlines()[2:] == [
        "       −0.12",
        "84.67 ± 0.19",
        "       ×1.20",
        "           –",
        "",
        "          +3",
    ]


def test_one_word_sets_its_column_to_the_left() -> None:
    assert format_table(["x"], [["1.2.3"], ["10"]]).splitlines()[2:] == ["1.2.3", "10"]

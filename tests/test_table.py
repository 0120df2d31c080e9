"""Plain tables that align."""

from __future__ import annotations

from gemel.table import format_table, shortened, width_of


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


def test_letters_that_are_two_columns_wide_align() -> None:
    table = format_table(["size", "words"], [["3", "고양이"], ["12", "cat"]])
    assert table.splitlines()[1:] == ["────  ──────", "   3  고양이", "  12  cat"]
    assert format_table(["a", "b"], [["고양이", "x"], ["cat", "x"]]).splitlines()[2:] == [
        "고양이  x",
        "cat     x",
    ]
    assert width_of("cafe\u0301") == 4


def test_a_text_is_cut_to_the_columns_there_are() -> None:
    assert shortened("one line\nof  words", 40) == "one line of words"
    assert shortened("one line of words", 8) == "one lin…"
    assert shortened("고양이가 잔다", 7) == "고양이…"
    assert width_of(shortened("x" * 10_000, 20)) == 20

"""A reproduced table on a terminal."""

from __future__ import annotations

import math

import pytest
from reproduced import REASON, of_table_1, of_table_2, of_table_7

from gemel.reproduce.cells import Cell, cell_of, columns_of, signed
from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.paper import TABLE_1, TABLE_2, TABLES
from gemel.reproduce.printing import formatted


def test_a_wide_table_has_ours_over_the_papers_over_the_difference() -> None:
    lines = formatted(of_table_1()).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("SBERT-NLI-base"))
    ours, paper, difference = (line.split() for line in lines[at : at + 3])
    assert ours[2:] == ["ours", "71.97", "76.53", "72.19", "77.00", "74.31", "76.99", "72.91", "74.56"]
    assert paper == ["paper", "70.97", "76.53", "73.19", "79.09", "74.30", "77.03", "72.91", "74.89"]
    assert difference == ["differs", "+1.00", "0.00", "−1.00", "−2.09", "+0.01", "−0.04", "0.00", "−0.33"]


def test_a_narrow_table_has_them_side_by_side_with_means_under_means() -> None:
    lines = formatted(of_table_2()).splitlines()
    single = next(line for line in lines if line.startswith("SBERT-NLI-base"))
    several = next(line for line in lines if line.startswith("SBERT-STSb-base"))
    assert single.split()[2:] == ["76.99", "77.03", "−0.04"]
    assert several.endswith("84.17 ± 0.25  84.67 ± 0.19    −0.50")
    assert single.index("76.99") == several.index("84.17")
    assert single.index("77.03") == several.index("84.67")


def test_a_line_that_was_not_run_shows_the_papers_figure_only_and_says_why() -> None:
    text = formatted(of_table_2())
    line = next(line for line in text.splitlines() if line.startswith("SBERT-STSb-large"))
    assert line.split()[2:] == ["–", "84.45", "±", "0.43"]
    assert f"not at hand: {REASON} (the figures are the paper's)" in text


def test_speeds_are_compared_as_ratios() -> None:
    line = next(line for line in formatted(of_table_7()).splitlines() if line.startswith("SBERT-base"))
    assert line.split()[-5:] == ["415", "83", "×5.0", "–", "2,042"]


@pytest.mark.parametrize("number", TABLES)
def test_every_table_of_the_paper_fits_on_a_terminal(number: int) -> None:
    rows = TABLES[number].rows
    lines = tuple(Line(row.name, row, "m", "n", row.figures, row.spread) for row in rows)
    assert max(map(len, formatted(Reproduction(TABLES[number], lines)).splitlines())) <= 115


def test_a_figure_is_near_the_papers_within_a_point_or_a_tenth_of_a_speed() -> None:
    sides = [cell_of(TABLE_1, of_table_1().lines[0], column).side for column in ("STS12", "STS15")]
    assert sides == ["near", "below"]
    assert cell_of(TABLE_2, of_table_2().lines[1], "STSb").side == "near"
    assert cell_of(of_table_7().table, of_table_7().lines[0], "CPU").side == "above"


def test_what_is_missing_or_no_number_is_never_a_figure_of_ours() -> None:
    row = TABLE_1.rows[0]
    contradictory = Line(row.name, row, figures={"STS12": 99.0}, missing="not here")
    undefined = Line(row.name, row, figures={"STS12": math.nan})
    for line in (contradictory, undefined):
        assert cell_of(TABLE_1, line, "STS12") == Cell("–", "55.14")


def test_columns_that_only_we_have_follow_the_papers() -> None:
    reproduction = Reproduction(TABLE_2, (Line("a", figures={"speed": 3.0, "STSb": 70.0}),))
    assert columns_of(reproduction) == ("STSb", "speed")


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    assert [signed(points) for points in (0.004, -0.004, 0.006, -1)] == ["0.00", "0.00", "+0.01", "−1.00"]


def test_a_name_with_line_breaks_stays_on_its_line() -> None:
    text = formatted(Reproduction(TABLE_2, (Line("a\nb\tc", figures={"STSb": 70.0}),)))
    assert "a b c" in text

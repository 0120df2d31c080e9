"""The pictures of a report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from reproduced import of_table_1, of_table_6, of_table_7

from gemel.drawing import Picture, label_points, new_figure, quiet_style
from gemel.errors import InvalidInput, MissingExtra
from gemel.reproduce.pictures import (
    Similarities,
    SpeedPoint,
    ours_against_paper,
    quality_against_speed,
    reliability,
    similarity_histograms,
)

GOLD = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 4.5, 5.0])
RAW = Similarities("raw", np.array([0.90, 0.92, 0.94, 0.9, 0.9, 0.91, 0.93, 0.95]), GOLD)
TUNED = Similarities("tuned & <short>", GOLD / 5, GOLD)
POINTS = [SpeedPoint("a", 100, 70.0), SpeedPoint("b", 110, 70.1), SpeedPoint("c & d", 9000, 60.0, True)]

every_picture = pytest.mark.parametrize(
    "draw",
    [
        lambda: quality_against_speed(POINTS),
        lambda: similarity_histograms(RAW, TUNED),
        lambda: reliability([RAW, TUNED]),
        lambda: ours_against_paper(of_table_1()),
        lambda: ours_against_paper(of_table_6(), "STSb"),
    ],
    ids=["quality against speed", "histograms", "reliability", "ours against the paper's", "ablation"],
)


@every_picture
def test_a_picture_is_svg_that_says_what_it_shows(draw: Callable[[], Picture]) -> None:
    picture = draw()
    root = ElementTree.fromstring(picture.svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert [root[0].text, root[1].text] == [picture.title, picture.caption]
    assert picture.png.startswith(b"\x89PNG")


@every_picture
def test_the_same_figures_give_the_same_bytes(draw: Callable[[], Picture]) -> None:
    first, second = draw(), draw()
    assert first.png == second.png
    assert first.svg == second.svg == first.svg


def test_names_stay_text_and_are_escaped() -> None:
    root = ElementTree.fromstring(quality_against_speed(POINTS).svg)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b", "c & d"} <= set(texts)


def test_the_papers_points_are_told_apart_only_where_there_are_some() -> None:
    assert "the paper's own figures" in quality_against_speed(POINTS).caption
    assert "the paper's own figures" not in quality_against_speed(POINTS[:2]).caption


def test_labels_of_near_points_do_not_cover_each_other() -> None:
    points = [(1.0 + 0.01 * number, 1.0 + 0.002 * number) for number in range(4)] + [(0.0, 0.0), (3.0, 3.0)]
    with quiet_style():
        figure = new_figure(6, 4)
        axes = figure.add_subplot()
        axes.plot(*zip(*points, strict=True), "o")
        label_points(axes, points, [f"model number {number}" for number in range(6)])
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[:number])


def test_separation_is_the_area_under_the_roc_curve() -> None:
    # alike 0.91, 0.93, 0.95 against unlike 0.90, 0.92, 0.94: 1 + 2 + 3 of 9 pairs are in order
    caption = similarity_histograms(RAW, TUNED).caption
    assert "raw: an alike pair has the higher cosine in 66.7% of cases" in caption
    assert "tuned & <short>: an alike pair has the higher cosine in 100.0% of cases" in caption


def test_ties_count_half() -> None:
    same = Similarities("same", np.full(8, 0.9), GOLD)
    assert (
        "same: an alike pair has the higher cosine in 50.0% of cases"
        in similarity_histograms(same, RAW).caption
    )


def test_a_cosine_that_rounding_has_put_above_one_is_still_counted() -> None:
    above = Similarities("m", np.where(GOLD >= 4, 1.0000001, 0.5), GOLD)
    stairs = similarity_histograms(RAW, above).figure.axes[1].patches
    shares = [stair.get_data().values.sum() for stair in stairs]  # type: ignore[attr-defined]
    assert np.allclose(shares, 1.0)


def test_reliability_shows_the_mean_cosine_of_each_group() -> None:
    axes = reliability([TUNED]).figure.axes[0]
    drawn = next(line for line in axes.lines if line.get_label() == TUNED.name)
    # five groups of gold: 0 and 0.5, 1, 2, 3, and 4 to 5
    assert np.allclose(drawn.get_xdata(), [0.5, 1.5, 2.5, 3.5, 4.5])
    assert np.allclose(drawn.get_ydata(), [0.05, 0.2, 0.4, 0.6, 0.9])


def test_a_line_that_was_not_run_has_no_dot_of_ours() -> None:
    axes = ours_against_paper(of_table_1()).figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["not run", "74.56  −0.33"]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    strokes = [line for line in axes.lines if line.get_marker() == "|"]
    assert [dot.get_xdata()[0] for dot in dots] == [74.56]
    assert sorted(stroke.get_xdata()[0] for stroke in strokes) == [74.89, 76.55]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: Similarities("m", np.zeros(3), np.zeros(2)),
            r"shape \(3,\) and gold scores of shape \(2,\)",
        ),
        (lambda: similarity_histograms(RAW, TUNED, low=-1), "0 pairs of at most -1"),
        (lambda: quality_against_speed([]), "at least one point"),
        (lambda: quality_against_speed([SpeedPoint("a", 0, 1)]), "above 0"),
        (lambda: reliability([]), "got 0 models; give 1 to 3"),
        (lambda: Similarities("m", np.array([np.nan]), np.zeros(1)), "no numbers"),
        (lambda: ours_against_paper(of_table_7(), "average"), "its columns are CPU, GPU"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        draw()


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"gemel\[plot\]"):
        reliability([RAW])

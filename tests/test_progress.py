"""Bars say how far the work is, to those who watch."""

from __future__ import annotations

import time

import pytest

from gemel.progress import progress_bar, progress_of


def test_a_bar_follows_what_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of("compare", show=True, unit="rows") as tell:
        tell(0, 5_000)
        time.sleep(0.2)  # so that the bar is drawn again
        tell(2_500, 5_000)
    shown = capsys.readouterr().err
    assert "compare:  50%" in shown
    assert "2500/5000" in shown


def test_nothing_is_shown_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of("compare") as tell:
        tell(10, 5_000)
    assert capsys.readouterr().err == ""


def test_what_was_done_before_is_shown_and_is_no_part_of_the_pace(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(1_000, "train", True, "steps", first=900) as bar:
        time.sleep(0.2)
        bar.update(1)
    shown = capsys.readouterr().err
    assert " 901/1000 [" in shown
    pace = shown.split("901/1000")[1]
    assert "s/ steps" in pace or float(pace.split(",")[1].split(" steps/s")[0]) < 10

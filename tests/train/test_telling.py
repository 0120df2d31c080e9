"""What a run says of itself while it goes on."""

from __future__ import annotations

import pytest

from gemel.train import telling


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of day, which a test moves on."""
    now = [0.0]
    monkeypatch.setattr(telling.time, "perf_counter", lambda: now[0])
    return now


def test_a_line_a_minute_and_one_for_news(clock: list[float]) -> None:
    lines: list[str] = []
    with telling.told_steps(100, 0, False, lines.append) as told:
        for step, seconds, is_news in (
            (1, 30.0, False),
            (2, 50.0, True),
            (3, 90.0, False),
            (4, 120.0, False),
        ):
            clock[0] = seconds
            told(step, f"loss {step}", is_news)
    assert lines == [
        "step 2 of 100: loss 2, about 41 minutes left",
        "step 4 of 100: loss 4, about 48 minutes left",
    ]


def test_what_is_left_is_told_by_the_pace_of_this_run(clock: list[float]) -> None:
    lines: list[str] = []
    with telling.told_steps(100, 90, False, lines.append) as told:
        clock[0] = 60.0
        told(91, "loss 1", False)
    assert lines == ["step 91 of 100: loss 1, about 9 minutes left"]


def test_nothing_is_said_to_nobody(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with telling.told_steps(100, 0, None, None) as told:
        clock[0] = 1_000.0
        told(1, "loss 1", True)
    assert capsys.readouterr() == ("", "")

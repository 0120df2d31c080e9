"""What a run says of itself while it goes on: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gemel.progress import SilentBar, progress_bar

LINE_SECONDS = 60.0  # between two lines, unless there is news
BAR = "{desc} {n_fmt}/{total_fmt} |{bar}| {remaining} left{postfix}"  # of 80 columns most is for the postfix
Tell = Callable[[str], object]


@contextmanager
def told_steps(
    n_steps: int, first: int, show: bool | None, tell: Tell | None
) -> Iterator[Callable[[int, str, bool], None]]:
    """A callable that takes how many steps are made, how the run stands, and whether that is news.

    Every step is worth a bar, for a few hundred can take an hour; where none is shown, `tell` has lines.
    """
    with progress_bar(n_steps, "train", show, "steps", first=first, worth=1, form=BAR) as bar:
        lines = _Lines(n_steps, first, tell) if tell is not None and isinstance(bar, SilentBar) else None

        def told(step: int, status: str, is_news: bool) -> None:
            bar.set_postfix_str(status, refresh=False)
            bar.update(step - bar.n)
            if lines is not None:
                lines.add(step, status, is_news)

        yield told


class _Lines:
    """At most one a minute, and one for everything that is news; a log wants no more."""

    def __init__(self, n_steps: int, first: int, tell: Tell) -> None:
        self._n_steps, self._first, self._tell = n_steps, first, tell
        self._began = self._last = time.perf_counter()

    def add(self, step: int, status: str, is_news: bool) -> None:
        now = time.perf_counter()
        if now - self._last < LINE_SECONDS and not is_news:
            return
        self._last = now
        minutes_left = (now - self._began) / (step - self._first) * (self._n_steps - step) / 60
        self._tell(f"step {step:,} of {self._n_steps:,}: {status}, about {minutes_left:,.0f} minutes left")

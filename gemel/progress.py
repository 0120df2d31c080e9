"""Progress bars on standard error, for long work that a person is watching; one bar at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

WORTH_A_BAR = 1_000  # items; below that the work is over before a bar has been read

_is_inside_a_bar: ContextVar[bool] = ContextVar("is_inside_a_bar", default=False)


class SilentBar:
    """A bar that nobody sees; making a tqdm takes as long as encoding a few words."""

    def __init__(self, first: int = 0) -> None:
        self.n = self.initial = first

    def update(self, n: int = 1) -> None:
        """Count on."""
        self.n += n

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        """Say nothing."""


@contextmanager
def progress_bar(
    total: int | None,
    what: str,
    show: bool | None = None,
    unit: str = "texts",
    *,
    first: int = 0,  # how much was done before, which is no part of the pace
    worth: int = WORTH_A_BAR,
    form: str | None = None,  # as tqdm's bar_format
) -> Iterator[Any]:
    """A tqdm bar; unless told, it shows on a terminal, for long work, and not inside another bar."""
    if show is None:
        is_long = total is None or total >= worth
        show = is_long and not _is_inside_a_bar.get() and sys.stderr.isatty()
    if not show:
        yield SilentBar(first)
        return
    from tqdm import tqdm

    outer = _is_inside_a_bar.set(True)
    try:
        is_size = unit == "bytes"  # which are told in thousands and millions
        unit = "B" if is_size else f" {unit}"
        told = {"desc": what, "unit": unit, "unit_scale": is_size, "bar_format": form, "leave": False}
        with tqdm(total=total, initial=first, **told) as bar:
            yield bar
    finally:
        _is_inside_a_bar.reset(outer)


@contextmanager
def progress_of(
    what: str, show: bool | None = None, unit: str = "texts"
) -> Iterator[Callable[[int, int], None]]:
    """A callable that takes how many are done and how many there are, and shows it as a bar."""
    with ExitStack() as opened:
        bar: Any = None

        def tell(n_done: int, n_total: int) -> None:
            nonlocal bar
            if bar is None:
                bar = opened.enter_context(progress_bar(n_total, what, show, unit))
            bar.update(n_done - bar.n)

        yield tell

"""Progress bars on standard error, for long work that a person is watching."""

from __future__ import annotations

import sys
from typing import Any

WORTH_A_BAR = 1_000  # items; below that the work is over before a bar has been read


def progress_bar(total: int | None, what: str, show: bool | None = None, unit: str = "texts") -> Any:
    """A tqdm bar; unless told, it shows on a terminal and for long work only."""
    from tqdm import tqdm

    if show is None:
        show = sys.stderr.isatty() and (total is None or total >= WORTH_A_BAR)
    return tqdm(total=total, desc=what, unit=f" {unit}", disable=not show, leave=False, smoothing=0.1)

"""What workers would warn of, brought to where somebody reads it: texts that were cut, or are unknown."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from gemel.errors import TruncationWarning, UnknownWordsWarning

Result = TypeVar("Result")


class Flaws(NamedTuple):
    """How many texts were cut, to how many tokens at most, and how many have no word that the model knows."""

    n_texts: int = 0
    n_truncated: int = 0
    max_tokens: int = 0
    n_unknown: int = 0

    def joined(self, other: Flaws) -> Flaws:
        """The flaws of both."""
        return Flaws(
            self.n_texts + other.n_texts,
            self.n_truncated + other.n_truncated,
            max(self.max_tokens, other.max_tokens),
            self.n_unknown + other.n_unknown,
        )

    def tell(self) -> None:
        """Warn of them here, in the name of whoever called our caller."""
        if self.n_truncated:
            warnings.warn(TruncationWarning(self.n_truncated, self.n_texts, self.max_tokens), stacklevel=3)
        if self.n_unknown:
            warnings.warn(UnknownWordsWarning(self.n_unknown, self.n_texts), stacklevel=3)


def with_flaws(work: Callable[[], Result], n_texts: int) -> tuple[Result, Flaws]:
    """What some work on texts gives, and what it would have warned of."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in (TruncationWarning, UnknownWordsWarning):
            warnings.simplefilter("always", kind)
        result = work()
    told = [each.message for each in caught]
    cut = [each for each in told if isinstance(each, TruncationWarning)]
    return result, Flaws(
        n_texts,
        sum(each.n_truncated for each in cut),
        max((each.max_tokens for each in cut), default=0),
        sum(each.n_unknown for each in told if isinstance(each, UnknownWordsWarning)),
    )

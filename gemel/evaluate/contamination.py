"""Contamination: how much of what a model is measured on stood in what it was trained on.

Texts are the same if their letters, digits and marks are, after Unicode's NFKC and without case: punctuation
and blanks only separate. Pairs have no order. That finds copies, not paraphrases or translations.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from gemel.data.examples import Examples
from gemel.errors import InvalidInput

N_SHOWN = 3  # examples that a finding shows
_Pair = tuple[str, str]


@dataclass(frozen=True)
class Overlap:
    """What one evaluation set shares with the training data; rows count as often as the set repeats them."""

    name: str
    n_pairs: int
    n_shared_pairs: int
    n_texts: int  # distinct ones
    n_shared_texts: int
    shown: tuple[_Pair, ...]  # the first of the shared pairs, as the evaluation set has them

    @property
    def share_of_pairs(self) -> float:
        """Shared pairs as a fraction of all of the set."""
        return self.n_shared_pairs / self.n_pairs

    @property
    def share_of_texts(self) -> float:
        """Shared texts as a fraction of the distinct ones of the set."""
        return self.n_shared_texts / self.n_texts

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {**asdict(self), "share_of_pairs": self.share_of_pairs, "share_of_texts": self.share_of_texts}

    def describe(self) -> str:
        """One line for a person."""
        return (
            f"{self.name}: {self.n_shared_pairs:,} of {self.n_pairs:,} pairs ({self.share_of_pairs:.1%}) and "
            f"{self.n_shared_texts:,} of {self.n_texts:,} texts ({self.share_of_texts:.1%}) stand in the "
            "training data"
        )


def find_overlap(evaluation: Mapping[str, Examples], training: Iterable[Examples]) -> list[Overlap]:
    """What each evaluation set shares with any of the training data.

    Of examples with more than two columns every two texts that stand in one row are a pair.
    """
    sets = dict(evaluation)
    for name, examples in sets.items():
        if not len(examples):
            raise InvalidInput(f"the evaluation set {name} has no examples; expected at least one")
    asked = {
        name: [_pairs(map(canonical, row)) for row in _rows(examples)] for name, examples in sets.items()
    }
    wanted_pairs = {pair for rows in asked.values() for pairs in rows for pair in pairs}
    wanted_texts = {text for pair in wanted_pairs for text in pair}
    seen_pairs, seen_texts = set[_Pair](), set[str]()
    for examples in training:  # only what is asked about is kept: the training data may be large
        for row in _rows(examples):
            present = [key for key in map(canonical, row) if key in wanted_texts]
            seen_texts.update(present)
            if len(present) > 1:
                seen_pairs.update(pair for pair in _pairs(present) if pair in wanted_pairs)
    return [_overlap(name, sets[name], asked[name], seen_pairs, seen_texts) for name in sets]


def canonical(text: str) -> str:
    """The text by which copies are known: letters, digits and marks in NFKC, case folded, single blanks."""
    if text.isascii():  # ten times as quick, and most of English
        folded = text.lower()
        kept = folded.translate(_ASCII)
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        kept = "".join(map(_letter_or_blank, folded))
    # A text of nothing but signs is itself, lest all such texts be one.
    return " ".join(kept.split()) or " ".join(folded.split())


def _letter_or_blank(character: str) -> str:
    return character if unicodedata.category(character)[0] in "LMN" else " "


_ASCII = {code: _letter_or_blank(chr(code)) for code in range(128)}


def _rows(examples: Examples) -> Iterable[tuple[str, ...]]:
    return zip(*examples.columns.values(), strict=True)


def _pairs(texts: Iterable[str]) -> list[_Pair]:
    return [
        (first, second) if first <= second else (second, first) for first, second in combinations(texts, 2)
    ]


def _overlap(
    name: str, examples: Examples, rows: list[list[_Pair]], seen_pairs: set[_Pair], seen_texts: set[str]
) -> Overlap:
    texts = {text for pairs in rows for pair in pairs for text in pair}
    shared = [row for row, pairs in enumerate(rows) if any(pair in seen_pairs for pair in pairs)]
    columns = list(examples.columns.values())[:2]
    return Overlap(
        name=name,
        n_pairs=len(rows),
        n_shared_pairs=len(shared),
        n_texts=len(texts),
        n_shared_texts=len(texts & seen_texts),
        shown=tuple((columns[0][row], columns[1][row]) for row in shared[:N_SHOWN]),
    )

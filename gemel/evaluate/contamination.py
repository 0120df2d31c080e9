"""Contamination: how much of what a model is measured on stood in what it was trained on.

Texts are the same if their letters, digits and marks are, after Unicode's NFKC and without case: punctuation
and blanks only separate. Pairs have no order. That finds copies, not paraphrases or translations.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

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
    asked = {name: _pairs_by_row(examples) for name, examples in sets.items()}
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


def leave_out_overlap(training: Examples, evaluation: Mapping[str, Examples]) -> Examples:
    """The training data without the rows that hold a pair of an evaluation set, or alone one of its texts."""
    held_out = {pair for each in evaluation.values() for pairs in _pairs_by_row(each) for pair in pairs}
    if len(training.columns) == 1:
        of, texts = "texts", {text for pair in held_out for text in pair}
        rows = [n for n, (text,) in enumerate(_rows(training)) if canonical(text) not in texts]
    else:
        of = "pairs"
        rows = [n for n, pairs in enumerate(_pairs_by_row(training)) if held_out.isdisjoint(pairs)]
    left_out = {**training.left_out, f"{of} of test sets": len(training) - len(rows)}
    return replace(training.take(rows), left_out=left_out, unused=training.unused)


def describe_overlaps(overlaps: Sequence[Overlap], of: Literal["pairs", "texts"] = "pairs") -> str:
    """One line for a person: how much of which sets stands in the training data, and which do not."""
    counts = {
        each.name: (each.n_shared_pairs, each.n_pairs)
        if of == "pairs"
        else (each.n_shared_texts, each.n_texts)
        for each in overlaps
    }
    shared = [f"{n:,} of {n_all:,} of {name}" for name, (n, n_all) in counts.items() if n]
    none = [name for name, (n, _) in counts.items() if not n]
    parts = [", ".join(shared), f"none of {', '.join(none)}" if none else ""]
    return f"{of} of test sets in the training data: {'; '.join(filter(None, parts))}"


def canonical(text: str) -> str:
    """The text by which copies are known: letters, digits and marks in NFKC, case folded, single blanks."""
    if text.isascii():  # most of English, which needs no normalising
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = folded.translate(_LETTERS)
    # A text of nothing but signs is itself, lest all such texts be one.
    return " ".join(kept.split()) or " ".join(folded.split())


class _Letters(dict[int, str]):
    """Each character as it is, or a blank in place of what only separates; looked up once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = character if unicodedata.category(character)[0] in "LMN" else " "
        return self[code]


_LETTERS = _Letters()


def _rows(examples: Examples) -> Iterable[tuple[str, ...]]:
    return zip(*examples.columns.values(), strict=True)


def _pairs_by_row(examples: Examples) -> list[list[_Pair]]:
    return [_pairs(map(canonical, row)) for row in _rows(examples)]


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

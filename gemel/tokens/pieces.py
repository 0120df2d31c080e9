"""Token sequences, and what was lost on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

Ids = npt.NDArray[np.int32]
# The tokenizer library keeps some 50 bytes a character while it works, whatever is cut in the end.
CHARACTERS_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Pieces:
    """Token sequences ready for a model, laid end to end; a chunked text has several."""

    flat: Ids  # (tokens,) of all sequences, with their special tokens
    starts: npt.NDArray[np.int64]  # (pieces + 1,)
    n_texts: int
    cut: tuple[int, ...] = ()  # the texts that lost their end
    owners: npt.NDArray[np.int64] | None = None  # (pieces,) the text of each piece; None: one piece each
    weights: npt.NDArray[np.float32] | None = None  # (pieces,) its tokens, or 1 if it is alone

    @classmethod
    def of(cls, sequences: Sequence[Ids], n_texts: int, **others: Any) -> Pieces:
        """Sequences as pieces."""
        starts = np.zeros(len(sequences) + 1, np.int64)
        np.cumsum([len(sequence) for sequence in sequences], out=starts[1:])
        flat = np.concatenate(sequences) if sequences else np.zeros(0, np.int32)
        return cls(flat, starts, n_texts, **others)

    @property
    def ids(self) -> list[Ids]:
        """The sequences one by one."""
        bounds = self.starts.tolist()
        return [self.flat[start:end] for start, end in pairwise(bounds)]

    @property
    def n_truncated(self) -> int:
        """How many texts lost their end."""
        return len(self.cut)


@dataclass(frozen=True)
class Token:
    """One token of a text, and the characters it stands for; special tokens stand for none."""

    id: int
    text: str
    is_special: bool
    start: int
    stop: int


def windows_of(sizes: Sequence[int], most_items: int) -> Iterator[slice]:
    """Items by turns, in order: as many at a time as their characters allow, and at least one."""
    start, n_characters = 0, 0
    for position, size in enumerate(sizes):
        n_characters += size
        if position > start and (position - start == most_items or n_characters > CHARACTERS_AT_ONCE):
            yield slice(start, position)
            start, n_characters = position, size
    if len(sizes) > start:
        yield slice(start, len(sizes))


def checked_ids(sequences: Any, n_ids: int) -> list[Ids]:
    """Sequences of token ids as arrays, or a sentence that names the first that is none."""
    checked: list[Ids] = []
    for position, sequence in enumerate(sequences):
        try:
            ids = np.asarray(sequence)
        except ValueError:  # lists of several lengths
            ids = np.zeros((0, 0))
        is_whole = ids.ndim == 1 and (not len(ids) or ids.dtype.kind in "iu")
        if not is_whole or (len(ids) and not 0 <= ids.min() <= ids.max() < n_ids):
            raise InvalidInput(
                f"sequence {position} is {str(sequence)[:40]!r}, and token ids, which are whole numbers from "
                f"0 to {n_ids - 1}, were expected"
            )
        checked.append(ids.astype(np.int32))
    return checked


def not_unicode(
    texts: Sequence[str], start: int, named: Callable[[int], str] = "text {}".format
) -> InvalidInput:
    """Which text it was that the tokenizer library could not take, as the caller would name its place."""
    for position in range(start, len(texts)):
        try:
            texts[position].encode("utf-8")
        except UnicodeEncodeError as error:
            code = ord(texts[position][error.start])
            return InvalidInput(
                f"{named(position)} holds a lone surrogate (U+{code:04X} at character {error.start}), "
                "which is no Unicode text; repair it where it was decoded"
            )
    return InvalidInput("a text could not be tokenised")

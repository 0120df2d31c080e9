"""Token sequences, and what was lost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

Ids = npt.NDArray[np.int32]


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


def not_unicode(texts: Sequence[str], start: int) -> InvalidInput:
    """Which text it was that the tokenizer library could not take."""
    for position in range(start, len(texts)):
        try:
            texts[position].encode("utf-8")
        except UnicodeEncodeError as error:
            code = ord(texts[position][error.start])
            return InvalidInput(
                f"text {position} holds a lone surrogate (U+{code:04X} at character {error.start}), "
                "which is no Unicode text; repair it where it was decoded"
            )
    return InvalidInput("a text could not be tokenised")

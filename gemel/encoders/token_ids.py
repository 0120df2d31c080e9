"""Texts into the ids of their tokens, nothing added and nothing cut, for encoders that look rows up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gemel.threads import once
from gemel.tokens.pieces import Ids
from gemel.tokens.plain import plain_tokenizer, with_others

if TYPE_CHECKING:
    import tokenizers

NO_LIMIT = 2**31 - 1

Starts = npt.NDArray[np.int64]  # (texts + 1,)


class TokenIds:
    """A tokenizer without its special tokens; plain English goes through the native one."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._plain = plain_tokenizer(tokenizer)

    def __getstate__(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._plain = plain_tokenizer(self.tokenizer)

    @once
    def unknown(self) -> int | None:
        """The id that stands for what is not in the vocabulary."""
        model = self.tokenizer.model
        if not hasattr(model, "unk_token"):  # a unigram model has a number, which its JSON alone tells
            number: int | None = json.loads(self.tokenizer.to_str())["model"].get("unk_id")
            return number
        return None if model.unk_token is None else self.tokenizer.token_to_id(model.unk_token)

    def of(self, texts: list[str]) -> tuple[Ids, Starts]:
        """The ids of all texts end to end, and where each text's begin."""
        if self._plain is None:
            return _joined(self._by_library(texts))
        flat, starts, _, unread = self._plain.encode(texts, [], [], NO_LIMIT)
        if not len(unread):
            return flat, starts
        return with_others(flat, starts, unread, self._by_library([texts[row] for row in unread]))

    def _by_library(self, texts: list[str]) -> list[Ids]:
        for text in texts:
            text.encode()  # the library would say of a lone surrogate only that it is no text
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(encoding.ids, np.int32) for encoding in encodings]


def _joined(sequences: list[Ids]) -> tuple[Ids, Starts]:
    starts = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum([len(sequence) for sequence in sequences], out=starts[1:])
    return np.concatenate([np.zeros(0, np.int32), *sequences]), starts

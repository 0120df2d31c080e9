"""Text pairs into token ids, as a cross-encoder reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gemel.tokens.opening import open_tokenizer, settings_of
from gemel.tokens.pieces import Ids, not_unicode

MOST_CHARACTERS = 400_000  # far beyond any limit; the tokenizer library would take gigabytes for more


class PairTokenizer:
    """Turns text pairs into one sequence each, as a cross-encoder reads them."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, lowercase: bool, max_tokens: int) -> None:
        self._tokenizer = open_tokenizer(folder, config, lowercase=lowercase)
        side = settings_of(folder).get("truncation_side", "right")
        self._tokenizer.enable_truncation(max_tokens, strategy="longest_first", direction=side)
        self.max_tokens = max_tokens

    def pieces(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[Ids], list[Ids], int]:
        """Token ids and token types of each pair, and how many pairs were cut."""
        shortened = [(first[:MOST_CHARACTERS], second[:MOST_CHARACTERS]) for first, second in pairs]
        try:
            encodings = self._tokenizer.encode_batch(shortened)
        except TypeError:
            raise not_unicode([text for pair in pairs for text in pair], 0) from None
        ids = [np.array(encoding.ids, np.int32) for encoding in encodings]
        types = [np.array(encoding.type_ids, np.int32) for encoding in encodings]
        return ids, types, sum(bool(encoding.overflowing) for encoding in encodings)

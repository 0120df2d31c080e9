"""Text pairs into token ids, as a cross-encoder reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gemel.errors import InvalidModel
from gemel.tokens.opening import open_tokenizer, truncation_side
from gemel.tokens.pieces import Ids, not_unicode, windows_of

MOST_CHARACTERS = 400_000  # far beyond any limit; the tokenizer library would take gigabytes for more
PAIRS_AT_ONCE = 8_192
SIDES = ("first", "second")


class PairTokenizer:
    """Turns text pairs into one sequence each, as a cross-encoder reads them."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, lowercase: bool, max_tokens: int) -> None:
        self._tokenizer = open_tokenizer(folder, config, lowercase=lowercase)
        side = truncation_side(folder)
        if max_tokens - self._tokenizer.num_special_tokens_to_add(is_pair=True) < len(SIDES):
            raise InvalidModel(
                f"{folder} reads at most {max_tokens} tokens, which leaves no room for two texts beside its "
                "special ones"
            )
        self._tokenizer.enable_truncation(max_tokens, strategy="longest_first", direction=side)
        self.max_tokens = max_tokens

    def windows(self, pairs: Sequence[tuple[str, str]]) -> list[slice]:
        """Pairs by turns, in order: as many at a time as take little memory while they are tokenised."""
        sizes = [sum(min(len(text), MOST_CHARACTERS) for text in pair) for pair in pairs]
        return list(windows_of(sizes, PAIRS_AT_ONCE))

    def pieces(self, pairs: Sequence[tuple[str, str]], n_before: int = 0) -> tuple[list[Ids], list[Ids], int]:
        """Token ids and token types of each pair, and how many pairs were cut.

        `n_before` pairs stand before these where an error names one by its place.
        """
        ids: list[Ids] = []
        types: list[Ids] = []
        n_cut = 0
        for window in self.windows(pairs):
            for encoding in self._encodings(pairs[window], n_before + window.start):
                ids.append(np.array(encoding.ids, np.int32))
                types.append(np.array(encoding.type_ids, np.int32))
                n_cut += bool(encoding.overflowing)
        return ids, types, n_cut

    def _encodings(self, pairs: Sequence[tuple[str, str]], n_before: int) -> list[Any]:
        shortened = [(first[:MOST_CHARACTERS], second[:MOST_CHARACTERS]) for first, second in pairs]
        try:
            encodings: list[Any] = self._tokenizer.encode_batch(shortened)
        except TypeError:
            texts = [text for pair in pairs for text in pair]
            raise not_unicode(
                texts, 0, lambda place: f"the {SIDES[place % 2]} text of pair {n_before + place // 2}"
            ) from None
        return encodings

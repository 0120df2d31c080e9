"""The native tokenizer for plain English, where a model's tokenizer is BERT's WordPiece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gemel import _native
from gemel.tokens.pieces import Ids

if TYPE_CHECKING:
    import tokenizers


def plain_tokenizer(tokenizer: tokenizers.Tokenizer) -> _native.WordPiece | None:
    """A tokenizer that gives the same ids for plain texts, or None where the model has another kind."""
    from tokenizers import models, normalizers, pre_tokenizers

    normalizer, lowercase = tokenizer.normalizer, False
    if isinstance(normalizer, normalizers.Sequence) and len(normalizer) == 2:
        first, normalizer = normalizer[0], normalizer[1]
        lowercase = isinstance(first, normalizers.Lowercase)
        normalizer = normalizer if lowercase else None
    model = tokenizer.model
    if not (
        isinstance(normalizer, normalizers.BertNormalizer)
        and isinstance(tokenizer.pre_tokenizer, pre_tokenizers.BertPreTokenizer)
        and isinstance(model, models.WordPiece)
        and normalizer.clean_text
        and model.continuing_subword_prefix == "##"
    ):
        return None
    words = tokenizer.get_vocab(with_added_tokens=False)
    unknown = words.get(model.unk_token)
    if unknown is None or not words:
        return None
    vocabulary = [""] * (max(words.values()) + 1)
    for word, number in words.items():
        vocabulary[number] = word
    starts = {token.content[:1] for token in tokenizer.get_added_tokens_decoder().values()}
    if not all(start.isascii() for start in starts):
        return None
    stops = "".join(sorted({case for start in starts for case in (start.lower(), start.upper())}))
    try:
        return _native.WordPiece(
            vocabulary, unknown, lowercase or normalizer.lowercase, stops, model.max_input_chars_per_word
        )
    except ValueError:  # a vocabulary too large for its numbers: word vectors of several million words
        return None


def with_others(
    flat: Ids, starts: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], others: list[Ids]
) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Sequences laid end to end, with others put where the rows of these were left empty."""
    parts: list[Ids] = []
    at = 0
    for row, other in zip(rows.tolist(), others, strict=True):
        parts += [flat[at : starts[row]], other]
        at = starts[row]
    lengths = np.diff(starts)
    lengths[rows] = [len(other) for other in others]
    return np.concatenate([*parts, flat[at:]]), np.concatenate([[0], np.cumsum(lengths)])

"""Static tables: a row for every token, and a text is the mean of its tokens' rows.

model2vec's folders, Sentence-Transformers' StaticEmbedding and averaged word vectors are all this; they
differ in the tokenizer, in whether unknown tokens count, and in whether the mean is scaled to unit length.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import read_static_folder, save_static_folder
from gemel.contracts import Vectors
from gemel.encoders.baseline import Baseline, unit_rows
from gemel.encoders.token_ids import Starts, TokenIds
from gemel.errors import InvalidModel
from gemel.threads import once
from gemel.tokens.opening import check_unknown_token
from gemel.tokens.pieces import Ids

if TYPE_CHECKING:
    import tokenizers

LONG_TEXT = 512  # tokens; a longer text is summed by itself, in blocks
BLOCK_TOKENS = 4_096
TEXTS_AT_ONCE = 256
FEW_TEXTS = 8  # up to these, one sum a text is quicker than one a position


@dataclass(frozen=True, eq=False)
class TokenTable:
    """The rows of a static encoder and how they are used."""

    rows: Vectors  # (rows, dim)
    mapping: npt.NDArray[np.int64] | None = None  # (tokens,) the row of each token, where several share one
    weights: npt.NDArray[np.float32] | None = None  # (tokens,) the factor of each token
    drops_unknown: bool = True
    normalises: bool = False

    @property
    def n_tokens(self) -> int:
        """How many tokens have a row."""
        return len(self.rows if self.mapping is None else self.mapping)

    def of(self, ids: Ids) -> Vectors:
        """The rows of tokens (ids, dim)."""
        rows = self.rows[ids if self.mapping is None else self.mapping[ids]]
        if self.weights is not None:
            rows *= self.weights[ids, None]
        return rows


class StaticEncoder(Baseline):
    """Texts into the means of their tokens' rows: no context, and tens of thousands of texts a second."""

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, table: TokenTable, *, tokenizer_json: str | None = None
    ) -> None:
        self.table = table
        self._ids = TokenIds(tokenizer)
        self._tokenizer_json = tokenizer_json

    @property
    def full_dim(self) -> int:
        """The length of a row of the table."""
        return int(self.table.rows.shape[1])

    @once
    def full_fingerprint(self) -> str:
        """128 bits of sha256 over the rows, the tokenizer and how they are used."""
        table = self.table
        tokenizer = json.loads(self._tokenizer_json or self._ids.tokenizer.to_str())
        kept = {key: value for key, value in tokenizer.items() if key not in ("truncation", "padding")}
        digest = hashlib.sha256(
            json.dumps([kept, table.drops_unknown, table.normalises], sort_keys=True).encode()
        )
        for array in (table.rows, table.mapping, table.weights):
            if array is not None:
                digest.update(f"{array.dtype}:{array.shape};".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:32]

    def save(self, target: str | Path, *, card: str | None = None, overwrite: bool = False) -> None:
        """Write a folder that gemel, model2vec and Sentence-Transformers open, without reading it whole."""
        table = self.table
        rows = "embeddings" if table.drops_unknown else "embedding.weight"
        tensors = {rows: table.rows, "mapping": table.mapping, "weights": table.weights}
        save_static_folder(
            target,
            {name: array for name, array in tensors.items() if array is not None},
            self._tokenizer_json or self._ids.tokenizer.to_str(),
            normalises=table.normalises,
            card=card,
            overwrite=overwrite,
        )

    def _encode_window(self, texts: list[str], vectors: Vectors) -> list[int]:
        flat, starts = self._ids.of(texts)
        if self.table.drops_unknown and self._ids.unknown is not None:
            flat, starts = without_token(self._ids.unknown, flat, starts)
        lengths = np.diff(starts)
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            some = slice(first, first + TEXTS_AT_ONCE)
            _sum_rows(self.table, flat, starts[:-1][some], lengths[some], vectors[some])
        for row in np.flatnonzero(lengths > LONG_TEXT):
            vectors[row] = _long_sum(self.table, flat[starts[row] : starts[row + 1]])
        vectors /= np.maximum(lengths, 1)[:, None].astype(np.float32)
        if self.table.normalises:
            unit_rows(vectors)
        empty: list[int] = np.flatnonzero(lengths == 0).tolist()
        return empty


def open_static(folder: str | Path) -> StaticEncoder:
    """The static encoder in a folder of model2vec's or Sentence-Transformers' layout."""
    import tokenizers

    found = read_static_folder(folder)
    text = found.tokenizer_file.read_text(encoding="utf-8")
    try:
        tokenizer = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare Exception
        raise InvalidModel(f"{found.tokenizer_file} is not a tokenizer ({error}): get it again") from None
    check_unknown_token(tokenizer, found.path)
    mapping, weights = found.extra("mapping"), found.extra("weights")
    table = TokenTable(
        rows=found.rows(),
        mapping=None if mapping is None else mapping.astype(np.int64),
        weights=None if weights is None else weights.astype(np.float32),
        drops_unknown=found.drops_unknown,
        normalises=found.normalises,
    )
    _check_fit(table, tokenizer.get_vocab_size(), found.path)
    encoder = StaticEncoder(tokenizer, table, tokenizer_json=text)
    return encoder if found.truncate_dim is None else encoder.with_dim(found.truncate_dim)


def _check_fit(table: TokenTable, n_tokens: int, folder: Path) -> None:
    """Refuse a table that lacks the row of a token."""
    n_weights = table.n_tokens if table.weights is None else len(table.weights)
    last = -1 if table.mapping is None else int(table.mapping.max(initial=-1))
    first = 0 if table.mapping is None else int(table.mapping.min(initial=0))
    if min(table.n_tokens, n_weights) < n_tokens or last >= len(table.rows) or first < 0:
        raise InvalidModel(
            f"{folder}: the tokenizer has {n_tokens:,} tokens, and the table {len(table.rows):,} rows for "
            f"{min(table.n_tokens, n_weights):,} of them; tokenizer and table are from different models"
        )


def without_token(token: int, flat: Ids, starts: Starts) -> tuple[Ids, Starts]:
    """The sequences without one token."""
    is_kept = flat != token
    if is_kept.all():
        return flat, starts
    n_kept_before = np.concatenate([[0], np.cumsum(is_kept)])
    return flat[is_kept], n_kept_before[starts]


def _sum_rows(table: TokenTable, flat: Ids, starts: Starts, lengths: Any, sums: Vectors) -> None:
    """Add up the rows of each text, the first tokens of all texts, then the second, and so on.

    Six times as fast as `np.add.reduceat`; and every sum is made in the order of its own tokens, so that it
    does not depend on the other texts.
    """
    if len(starts) <= FEW_TEXTS and sums.shape[1] > 1:
        # numpy adds whole rows, one after the other, as the loop below does: the same bits. (Of a single
        # column it would add neighbours first.)
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            if length <= LONG_TEXT:
                table.of(flat[start : start + length]).sum(axis=0, initial=0, out=sums[row])
        return
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] <= LONG_TEXT]
    if not len(order):
        return
    longest_first, begins = lengths[order], starts[order]
    n_reaching = np.searchsorted(-longest_first, -np.arange(1, longest_first[0] + 1), side="right")
    sorted_sums = np.zeros((len(order), sums.shape[1]), np.float32)
    for position, n_texts in enumerate(n_reaching.tolist()):
        sorted_sums[:n_texts] += table.of(flat[begins[:n_texts] + position])
    sums[order] = sorted_sums


def _long_sum(table: TokenTable, ids: Ids) -> npt.NDArray[np.float32]:
    """The sum of the rows of one text, in blocks so that a book takes no more memory than a page."""
    total = np.zeros(table.rows.shape[1], np.float64)
    for start in range(0, len(ids), BLOCK_TOKENS):
        total += table.of(ids[start : start + BLOCK_TOKENS]).sum(axis=0, dtype=np.float64)
    return total.astype(np.float32)

"""Single texts into token ids: cut, split or whole."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel import _native
from gemel.contracts import OnTruncate
from gemel.errors import InvalidInput, InvalidModel
from gemel.tokens.opening import lone_id, open_tokenizer, special_ids, truncation_side
from gemel.tokens.pieces import Ids, Pieces, Token, not_unicode, windows_of
from gemel.tokens.plain import plain_tokenizer, with_others

PART_CHARACTERS = 100_000  # longer texts go through the tokenizer library in parts
TEXTS_AT_ONCE = 4_096
WINDOW_OVERLAP = 1 / 8  # of neighbouring windows, when a long text is read in chunks


class TextTokenizer:
    """Turns texts into token ids with the model's special tokens around them."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, lowercase: bool, max_tokens: int) -> None:
        self._tokenizer = open_tokenizer(folder, config, lowercase=lowercase)
        self._keeps_the_end = truncation_side(folder) == "left"
        self._lone_id = lone_id(config)
        self.max_tokens = max_tokens
        self.prefix, self.suffix = special_ids(self._tokenizer, folder)
        self._plain = self._plain_one()
        self.room = max_tokens - len(self.prefix) - len(self.suffix)
        if self.room < 1:
            raise InvalidModel(
                f"{folder} reads at most {max_tokens} tokens, which leaves no room beside its special ones"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_plain"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._plain = self._plain_one()

    def _plain_one(self) -> _native.WordPiece | None:
        """The native tokenizer, where it can stand in: it cuts the end, and a text needs special tokens."""
        has_specials = len(self.prefix) + len(self.suffix) > 0
        return plain_tokenizer(self._tokenizer) if has_specials and not self._keeps_the_end else None

    @property
    def n_tokens(self) -> int:
        """How many token ids there are, special ones included."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    def to_json(self) -> str:
        """The tokenizer as a tokenizer.json holds it, with all that the folder's other files say of it."""
        text: str = self._tokenizer.to_str()
        return text

    def contents(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of each text, whole and without special tokens."""
        return self._contents(texts, None)

    def wrapped(self, contents: Sequence[Ids], prompt: str = "") -> Pieces:
        """Sequences of token ids with prompt and special tokens around them, as the model reads texts."""
        head = self._contents([prompt], None)[0] if prompt else np.zeros(0, np.int32)
        return Pieces.of([self._wrap(np.concatenate([head, ids])) for ids in contents], len(contents))

    def pieces(self, texts: Sequence[str], prompt: str = "", on_truncate: OnTruncate = "warn") -> Pieces:
        """The texts as sequences of at most `max_tokens`; texts that are too long are cut or split."""
        texts = [prompt + text for text in texts] if prompt else texts
        quick = self._quick_pieces(texts)
        if quick is not None and (on_truncate in ("warn", "ignore") or not quick.cut):
            return quick
        at_most = None if on_truncate == "chunk" or self._keeps_the_end else self.room
        contents = self._contents(texts, at_most)
        too_long = [row for row, content in enumerate(contents) if len(content) > self.room]
        if on_truncate == "error" and too_long:
            raise InvalidInput(
                f"text {too_long[0]} is longer than the {self.max_tokens} tokens that this model reads "
                f"({len(too_long):,} of {len(texts):,} texts are); shorten it, or pass on_truncate='chunk'"
            )
        if on_truncate == "chunk" and too_long:
            return self._windowed(contents, prompt)
        wrapped = [self._wrap(self._cut(content)) for content in contents]
        return Pieces.of(wrapped, len(texts), cut=tuple(too_long))

    def _quick_pieces(self, texts: Sequence[str]) -> Pieces | None:
        """The pieces by the native tokenizer, with the texts that it cannot read by the full one."""
        if self._plain is None:
            return None
        flat, starts, cut, unread = self._plain.encode(
            list(texts), self.prefix.tolist(), self.suffix.tolist(), self.room
        )
        if not len(unread):
            return Pieces(flat, starts, len(texts), tuple(cut.tolist()))
        try:
            contents = self._contents([texts[row] for row in unread], self.room)
        except InvalidInput:
            return None  # so that the text is named by its place among all
        too_long = [row for row, content in zip(unread, contents, strict=True) if len(content) > self.room]
        others = [self._wrap(self._cut(content)) for content in contents]
        flat, starts = with_others(flat, starts, unread, others)
        return Pieces(flat, starts, len(texts), tuple(sorted([*cut.tolist(), *too_long])))

    def count(self, texts: Sequence[str], prompt: str = "") -> npt.NDArray[np.int64]:
        """How many tokens each text has, special ones included, whatever the model's limit."""
        contents = self._contents([prompt + text for text in texts] if prompt else texts, None)
        n_special = len(self.prefix) + len(self.suffix)
        return np.array([len(content) + n_special for content in contents], np.int64)

    def prompt_tokens(self, prompt: str) -> int:
        """How many tokens the prompt takes at the start of a text, special ones apart."""
        return len(self._contents([prompt], None)[0]) if prompt else 0

    @property
    def n_vocabulary(self) -> int:
        """How many different tokens there are."""
        return int(self._tokenizer.get_vocab_size())

    def keeping_the_end(self, keeps: bool) -> TextTokenizer:
        """The same tokenizer, which cuts the start of long texts, or their end."""
        other = copy.copy(self)
        other._keeps_the_end = keeps
        other._plain = other._plain_one()
        return other

    def pieces_of_ids(self, sequences: Sequence[Ids]) -> Pieces:
        """Token ids as pieces: special tokens put around those that come without, long ones cut."""
        contents = [self._unwrapped(sequence) for sequence in sequences]
        cut = tuple(row for row, content in enumerate(contents) if len(content) > self.room)
        return Pieces.of([self._wrap(self._cut(content)) for content in contents], len(contents), cut=cut)

    def explain(self, text: str, *, add_special_tokens: bool = True) -> list[Token]:
        """Every token of a text, whatever the model's limit, with the characters it stands for."""
        try:
            found = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        except TypeError:
            raise not_unicode([text], 0) from None
        marks = zip(found.ids, found.tokens, found.special_tokens_mask, found.offsets, strict=True)
        return [
            Token(number, token if special else text[start:stop], bool(special), start, stop)
            for number, token, special, (start, stop) in marks
        ]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text that token ids stand for."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)
        return text

    def _unwrapped(self, sequence: Ids) -> Ids:
        """The ids without the special tokens around them, if they have both."""
        first, last = len(self.prefix), len(sequence) - len(self.suffix)
        is_wrapped = (
            last >= first
            and np.array_equal(sequence[:first], self.prefix)
            and np.array_equal(sequence[last:], self.suffix)
        )
        return sequence[first:last] if is_wrapped else sequence

    def _windowed(self, contents: list[Ids], prompt: str) -> Pieces:
        """Overlapping windows; each starts with the prompt, since that is what the model was trained on."""
        prompt_ids = self._contents([prompt], None)[0][: self.room - 1]
        ids: list[Ids] = []
        owners: list[int] = []
        weights: list[int] = []
        for row, content in enumerate(contents):
            n_prompt = _n_common(prompt_ids, content)
            head, body = content[:n_prompt], content[n_prompt:]
            windows = list(_windows(len(body), self.room - n_prompt))
            for start, end in windows:
                ids.append(self._wrap(np.concatenate([head, body[start:end]])))
                owners.append(row)
                # A text of one window weighs 1, so that its mean has the bits that it has without long ones.
                weights.append(max(end - start, 1) if len(windows) > 1 else 1)
        return Pieces.of(ids, len(contents), owners=np.array(owners), weights=np.array(weights, np.float32))

    def _cut(self, content: Ids) -> Ids:
        return content[-self.room :] if self._keeps_the_end else content[: self.room]

    def _wrap(self, content: Ids) -> Ids:
        """The special tokens around a text; an empty text of a model without such gets one token."""
        wrapped = np.concatenate([self.prefix, content, self.suffix])
        return wrapped if len(wrapped) else self._lone_id

    def _contents(self, texts: Sequence[str], at_most: int | None) -> list[Ids]:
        """Token ids without the special ones; beyond `at_most` only one more, to tell that there is more."""
        contents: list[Ids] = []
        sizes = [len(text) if len(text) <= PART_CHARACTERS else 0 for text in texts]
        for window in windows_of(sizes, TEXTS_AT_ONCE):
            start = window.start
            short = [text if len(text) <= PART_CHARACTERS else "" for text in texts[window]]
            try:
                encodings = self._tokenizer.encode_batch_fast(short, add_special_tokens=False)
            except TypeError:  # what the tokenizer library says of text that is not Unicode
                raise not_unicode(texts, start) from None
            for position, encoding in enumerate(encodings, start):
                if len(texts[position]) <= PART_CHARACTERS:
                    ids = np.array(encoding.ids, np.int32)
                else:
                    ids = self._long_content(texts, position, at_most)
                contents.append(ids if at_most is None else ids[: at_most + 1])
        return contents

    def _long_content(self, texts: Sequence[str], position: int, at_most: int | None) -> Ids:
        found: list[Ids] = []
        n_found = 0
        for part in _parts(texts[position]):
            try:
                found.append(np.array(self._tokenizer.encode(part, add_special_tokens=False).ids, np.int32))
            except TypeError:
                raise not_unicode(texts, position) from None
            n_found += len(found[-1])
            if at_most is not None and n_found > at_most:
                break
        return np.concatenate(found)


def _windows(n_tokens: int, size: int) -> Iterator[tuple[int, int]]:
    """Overlapping windows that together cover all tokens; the last may be shorter."""
    step = max(1, size - int(size * WINDOW_OVERLAP))
    start, end = 0, min(size, n_tokens)
    yield start, end
    while end < n_tokens:
        start, end = start + step, min(start + step + size, n_tokens)
        yield start, end


def _n_common(prompt: Ids, content: Ids) -> int:
    """How many tokens of the prompt a text begins with: its last may have become one with the first word."""
    n = min(len(prompt), len(content))
    differing = np.flatnonzero(prompt[:n] != content[:n])
    return int(differing[0]) if len(differing) else n


def _parts(text: str) -> Iterator[str]:
    """Parts that end where white space begins: no tokenizer joins what stands on both sides of that."""
    start = 0
    while start < len(text):
        end = start + PART_CHARACTERS
        while end < len(text) and (text[end - 1].isspace() or not text[end].isspace()):
            end += 1
        yield text[start:end]
        start = end

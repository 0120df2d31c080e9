"""Texts into token ids, the same way for every engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import WORDPIECE_FAMILIES
from gemel.contracts import OnTruncate
from gemel.errors import InvalidInput, InvalidModel

if TYPE_CHECKING:
    import tokenizers

Ids = npt.NDArray[np.int32]

# The tokenizer library keeps some 500 bytes a token while it works: long texts go through it in parts.
PART_CHARACTERS = 100_000
TEXTS_AT_ONCE = 4_096
WINDOW_OVERLAP = 1 / 8  # of neighbouring windows, when a long text is read in chunks
BERT_TOKENIZERS = tuple(
    f"{family}Tokenizer{kind}"
    for family in ("Bert", "DistilBert", "Electra", "MPNet")
    for kind in ("", "Fast")
)


@dataclass(frozen=True)
class Pieces:
    """Token sequences ready for a model; a chunked text has several."""

    ids: list[Ids]  # each with its special tokens
    owners: npt.NDArray[np.int64]  # (pieces,) the text that each piece belongs to
    weights: npt.NDArray[np.float32]  # (pieces,) its tokens, special ones apart; at least 1
    n_texts: int
    n_truncated: int

    @property
    def one_each(self) -> bool:
        """Whether no text was split."""
        return len(self.ids) == self.n_texts


class TextTokenizer:
    """Turns texts into token ids with the model's special tokens around them."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, lowercase: bool, max_tokens: int) -> None:
        self._tokenizer = open_tokenizer(folder, config, lowercase=lowercase)
        self._keeps_the_end = _settings(folder).get("truncation_side") == "left"
        self._lone_id = _lone_id(config)
        self.max_tokens = max_tokens
        self.prefix, self.suffix = _special_ids(self._tokenizer, folder)
        self.room = max_tokens - len(self.prefix) - len(self.suffix)
        if self.room < 1:
            raise InvalidModel(
                f"{folder} reads at most {max_tokens} tokens, which leaves no room beside its special ones"
            )

    def pieces(self, texts: Sequence[str], prompt: str = "", on_truncate: OnTruncate = "warn") -> Pieces:
        """The texts as sequences of at most `max_tokens`; texts that are too long are cut or split."""
        at_most = None if on_truncate == "chunk" or self._keeps_the_end else self.room
        contents = self._contents([prompt + text for text in texts] if prompt else texts, at_most)
        too_long = [row for row, content in enumerate(contents) if len(content) > self.room]
        if on_truncate == "error" and too_long:
            raise InvalidInput(
                f"text {too_long[0]} is longer than the {self.max_tokens} tokens that this model reads "
                f"({len(too_long):,} of {len(texts):,} texts are); shorten it, or pass on_truncate='chunk'"
            )
        if on_truncate == "chunk" and too_long:
            return self._windowed(contents, prompt)
        return Pieces(
            ids=[self._wrap(self._cut(content)) for content in contents],
            owners=np.arange(len(texts)),
            weights=np.ones(len(texts), np.float32),
            n_texts=len(texts),
            n_truncated=len(too_long),
        )

    def count(self, texts: Sequence[str], prompt: str = "") -> npt.NDArray[np.int64]:
        """How many tokens each text has, special ones included, whatever the model's limit."""
        contents = self._contents([prompt + text for text in texts] if prompt else texts, None)
        n_special = len(self.prefix) + len(self.suffix)
        return np.array([len(content) + n_special for content in contents], np.int64)

    def prompt_tokens(self, prompt: str) -> int:
        """How many tokens the prompt takes at the start of a text, special ones apart."""
        return len(self._contents([prompt], None)[0]) if prompt else 0

    def _windowed(self, contents: list[Ids], prompt: str) -> Pieces:
        """Overlapping windows; each starts with the prompt, since that is what the model was trained on."""
        n_prompt = min(self.prompt_tokens(prompt), self.room - 1)
        ids: list[Ids] = []
        owners: list[int] = []
        weights: list[int] = []
        for row, content in enumerate(contents):
            head, body = content[:n_prompt], content[n_prompt:]
            for start, end in _windows(len(body), self.room - n_prompt):
                ids.append(self._wrap(np.concatenate([head, body[start:end]])))
                owners.append(row)
                weights.append(max(end - start, 1))
        return Pieces(ids, np.array(owners), np.array(weights, np.float32), len(contents), n_truncated=0)

    def _cut(self, content: Ids) -> Ids:
        return content[-self.room :] if self._keeps_the_end else content[: self.room]

    def _wrap(self, content: Ids) -> Ids:
        """The special tokens around a text; an empty text of a model without such gets one token."""
        wrapped = np.concatenate([self.prefix, content, self.suffix])
        return wrapped if len(wrapped) else self._lone_id

    def _contents(self, texts: Sequence[str], at_most: int | None) -> list[Ids]:
        """Token ids without the special ones; beyond `at_most` only one more, to tell that there is more."""
        contents: list[Ids] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            batch = texts[start : start + TEXTS_AT_ONCE]
            short = [text if len(text) <= PART_CHARACTERS else "" for text in batch]
            try:
                encodings = self._tokenizer.encode_batch_fast(short, add_special_tokens=False)
            except TypeError:  # what the tokenizer library says of text that is not Unicode
                raise _not_unicode(texts, start) from None
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
                raise _not_unicode(texts, position) from None
            n_found += len(found[-1])
            if at_most is not None and n_found > at_most:
                break
        return np.concatenate(found)


class PairTokenizer:
    """Turns text pairs into one sequence each, as a cross-encoder reads them."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, lowercase: bool, max_tokens: int) -> None:
        self._tokenizer = open_tokenizer(folder, config, lowercase=lowercase)
        side = _settings(folder).get("truncation_side", "right")
        self._tokenizer.enable_truncation(max_tokens, strategy="longest_first", direction=side)
        self.max_tokens = max_tokens

    def pieces(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[Ids], list[Ids], int]:
        """Token ids and token types of each pair, and how many pairs were cut."""
        n_shown = 4 * PART_CHARACTERS  # far beyond any limit; the library would take gigabytes for more
        shortened = [(first[:n_shown], second[:n_shown]) for first, second in pairs]
        try:
            encodings = self._tokenizer.encode_batch(shortened)
        except TypeError:
            raise _not_unicode([text for pair in pairs for text in pair], 0) from None
        ids = [np.array(encoding.ids, np.int32) for encoding in encodings]
        types = [np.array(encoding.type_ids, np.int32) for encoding in encodings]
        return ids, types, sum(bool(encoding.overflowing) for encoding in encodings)


def open_tokenizer(folder: Path, config: Mapping[str, Any], *, lowercase: bool) -> tokenizers.Tokenizer:
    """The folder's tokenizer, with neither truncation nor padding of its own."""
    import tokenizers
    from tokenizers import normalizers

    file = folder / "tokenizer.json"
    if file.is_file():
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception
            raise InvalidModel(f"{file} is not a tokenizer ({error}): get the folder again") from None
    elif (folder / "vocab.txt").is_file() and config.get("model_type") in WORDPIECE_FAMILIES:
        tokenizer = _wordpiece_tokenizer(folder)
    else:
        raise InvalidModel(
            f"{folder} has no tokenizer.json; make one with: gemel convert {folder} NEW_FOLDER"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    _apply_settings(tokenizer, _settings(folder))
    if lowercase:
        present = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *present])
    return tokenizer


def _settings(folder: Path) -> dict[str, Any]:
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return settings if isinstance(settings, dict) else {}


def _apply_settings(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """What tokenizer_config.json says goes before what tokenizer.json says, as in transformers."""
    from tokenizers import normalizers, pre_tokenizers

    normalizer, splitter = tokenizer.normalizer, tokenizer.pre_tokenizer
    if settings.get("tokenizer_class") in BERT_TOKENIZERS and isinstance(
        normalizer, normalizers.BertNormalizer
    ):
        tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=normalizer.clean_text,
            handle_chinese_chars=settings.get("tokenize_chinese_chars", normalizer.handle_chinese_chars),
            strip_accents=settings.get("strip_accents", normalizer.strip_accents),
            lowercase=settings.get("do_lower_case", normalizer.lowercase),
        )
    if isinstance(splitter, pre_tokenizers.ByteLevel) and "add_prefix_space" in settings:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
            add_prefix_space=bool(settings["add_prefix_space"]), use_regex=splitter.use_regex
        )


def _lone_id(config: Mapping[str, Any]) -> Ids:
    """A token to stand for an empty text where the tokenizer adds none."""
    named = (config.get(key) for key in ("eos_token_id", "bos_token_id", "pad_token_id"))
    return np.array([next((token for token in named if isinstance(token, int)), 0)], np.int32)


def _wordpiece_tokenizer(folder: Path) -> tokenizers.Tokenizer:
    from tokenizers import BertWordPieceTokenizer

    settings = _settings(folder)
    wrapped = BertWordPieceTokenizer(
        str(folder / "vocab.txt"),
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    tokenizer: tokenizers.Tokenizer = wrapped._tokenizer
    return tokenizer


def _special_ids(tokenizer: tokenizers.Tokenizer, folder: Path) -> tuple[Ids, Ids]:
    """What the tokenizer puts before and after a text, found by looking at one."""
    for word in ("a", "the", "0", ".", "하"):
        mask = tokenizer.encode(word).special_tokens_mask
        if 0 in mask:
            ids = np.array(tokenizer.encode(word).ids, np.int32)
            first, last = mask.index(0), len(mask) - mask[::-1].index(0)
            return ids[:first], ids[last:]
    raise InvalidModel(f"the tokenizer in {folder} finds no token in ordinary words")


def _windows(n_tokens: int, size: int) -> Iterator[tuple[int, int]]:
    """Overlapping windows that together cover all tokens; the last may be shorter."""
    step = max(1, size - int(size * WINDOW_OVERLAP))
    start, end = 0, min(size, n_tokens)
    yield start, end
    while end < n_tokens:
        start, end = start + step, min(start + step + size, n_tokens)
        yield start, end


def _parts(text: str) -> Iterator[str]:
    """Parts that end where white space begins: no tokenizer joins what stands on both sides of that."""
    start = 0
    while start < len(text):
        end = start + PART_CHARACTERS
        while end < len(text) and (text[end - 1].isspace() or not text[end].isspace()):
            end += 1
        yield text[start:end]
        start = end


def _not_unicode(texts: Sequence[str], start: int) -> InvalidInput:
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

"""The native tokenizer gives the ids of the full one, or leaves the text to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stand_ins import read_json, sentences, write_json

from gemel import _native
from gemel.checkpoint import read_encoder_folder
from gemel.errors import InvalidInput
from gemel.tokens import TextTokenizer

PLAIN = (
    "The dog DOGS playing unbelievably e-mail can't [CLS] [MASK] [ ##ing U.S. 3.14 $5 C++ “quoted” it’s — …"
)
OTHERS = "café naïve 東京 İ ß ﬁ 😀"
ODD = ["a" * 100, "a" * 101, "x" * 400, *"\x00\x7f\t\n\r\x0b\u00a0\u2028\ufffd\u200b", ""]
WORDS = st.sampled_from([*PLAIN.split(), *OTHERS.split(), *ODD])
TEXTS = st.lists(
    st.text(st.characters(codec="utf-8"), max_size=30)
    | st.text(st.characters(min_codepoint=0, max_codepoint=127), max_size=60)
    | st.lists(WORDS, max_size=12).map(" ".join)
    | st.lists(WORDS, max_size=12).map("".join),
    max_size=8,
)


def tokenizer_of(folder: Path, lowercase: bool = False, max_tokens: int = 40) -> TextTokenizer:
    config = read_encoder_folder(folder).config
    return TextTokenizer(folder, config, lowercase=lowercase, max_tokens=max_tokens)


def full(tokenizer: TextTokenizer) -> TextTokenizer:
    """The same without the native tokenizer."""
    import copy

    other = copy.copy(tokenizer)
    other._plain = None
    return other


def assert_same(tokenizer: TextTokenizer, texts: list[str]) -> None:
    assert tokenizer._plain is not None
    ours, theirs = tokenizer.pieces(texts), full(tokenizer).pieces(texts)
    assert ours.flat.tolist() == theirs.flat.tolist()
    assert ours.starts.tolist() == theirs.starts.tolist()
    assert ours.cut == theirs.cut


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS)
def test_any_texts_have_the_ids_of_the_real_vocabulary(default_weights: Path, texts: list[str]) -> None:
    assert_same(_real(default_weights), texts)


_cached: dict[Path, TextTokenizer] = {}


def _real(folder: Path) -> TextTokenizer:
    if folder not in _cached:
        _cached[folder] = tokenizer_of(folder, max_tokens=20)
    return _cached[folder]


def test_real_sentences_have_the_same_ids(default_weights: Path, real_data: Path) -> None:
    import gzip

    with gzip.open(real_data / "sentences_en" / "sentences_open.tsv.gz", "rt", encoding="utf-8") as lines:
        texts = [line.split("\t")[0] for _, line in zip(range(20_000), lines, strict=False)]
    tokenizer = tokenizer_of(default_weights, max_tokens=64)
    assert_same(tokenizer, texts)
    *_, unread = tokenizer._plain.encode(texts, [], [], 62)  # type: ignore[union-attr]
    assert len(unread) < len(texts) / 50


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("architecture", ["bert", "distilbert", "electra", "mpnet"])
def test_every_wordpiece_family(
    tiny_model: Callable[[str], Path], architecture: str, lowercase: bool
) -> None:
    tokenizer = tokenizer_of(tiny_model(architecture), lowercase)
    assert_same(tokenizer, ["", "The MAN", *sentences(200, 3, 60), "dog" * 40, "é", "<s> the </s>", "[SEP]"])


@pytest.mark.parametrize("architecture", ["roberta", "xlm-roberta"])
def test_other_tokenizers_are_left_alone(tiny_model: Callable[[str], Path], architecture: str) -> None:
    assert tokenizer_of(tiny_model(architecture))._plain is None


def test_a_cased_vocabulary_keeps_its_case(tiny_bert: Path, tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(tiny_bert, tmp_path / "cased"))
    made = read_json(folder / "tokenizer.json")
    made["normalizer"]["lowercase"] = False
    write_json(folder / "tokenizer.json", made)
    assert_same(tokenizer_of(folder), ["The man", "the MAN", "the man"])


def test_a_text_that_is_not_unicode_is_named_by_its_place(tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match="text 2 holds a lone surrogate"):
        tokenizer_of(tiny_bert).pieces(["the", "é", "\ud800 man", "a"])


def test_a_long_text_is_read_no_further_than_needed(tiny_bert: Path) -> None:
    pieces = tokenizer_of(tiny_bert).pieces(["the man " * 2_000_000])
    assert (len(pieces.flat), pieces.cut) == (40, (0,))


def test_the_native_side_takes_any_vocabulary() -> None:
    made = _native.WordPiece(["", "a", "##b", "a" * 500, "é"], 1, True, "", 100)
    ids, starts, cut, unread = made.encode(["ab abb", "é", ""], [7], [8], 3)
    assert ids.tolist() == [7, 1, 2, 1, 8, 7, 8]
    assert (starts.tolist(), cut.tolist(), unread.tolist()) == ([0, 5, 5, 7], [0], [1])
    assert ids.dtype == np.int32
    with pytest.raises(ValueError, match="room"):
        made.encode(["a"], [], [], 0)
    with pytest.raises(TypeError, match="list of str"):
        made.encode([b"a"], [], [], 3)  # type: ignore[list-item]


def test_words_that_it_never_reads_take_no_room() -> None:
    syllables = [chr(0xAC00 + number) for number in range(200)]
    korean = [first + second + third for first in syllables for second in syllables for third in "가나다"]
    native = _native.WordPiece(["[UNK]", *korean, "dog", "“"], 0, True, "", 100)
    flat, _, _, unread = native.encode(["dog “", "강강가"], [], [], 10)
    assert flat.tolist() == [len(korean) + 1, len(korean) + 2]
    assert unread.tolist() == [1]

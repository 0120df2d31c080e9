"""InferSent (Conneau et al., 2017): a bidirectional LSTM over word vectors, the maximum over the words.

Words are what averaged word vectors take for words (`word_vectors`): punctuation is none. A word without a
vector is left out, as the authors' program does; a text without any known word has a vector of zeros. In
numpy: no torch is needed to use such an encoder, only to train one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemel.checkpoint.infersent import DIRECTIONS, WORDS, read_infersent_folder
from gemel.contracts import Vectors
from gemel.encoders.baseline import Baseline
from gemel.encoders.static import without_token
from gemel.encoders.token_ids import Starts, TokenIds
from gemel.encoders.word_files import read_word_file
from gemel.encoders.word_vectors import installed_glove, word_tokenizer
from gemel.threads import once
from gemel.tokens.pieces import Ids, Pieces, not_unicode

Array = npt.NDArray[np.float32]

TEXTS_AT_ONCE = 128  # of like length: enough rows for a matrix product, few enough for the cache
FREQUENT_WORDS = 100_000


class WordReader:
    """Texts into the rows of the words that have a vector, in the order of the text."""

    def __init__(self, words: Sequence[str], lowercase: bool) -> None:
        self.words, self.lowercase = tuple(words), lowercase
        self._ids = TokenIds(word_tokenizer(list(words), lowercase))

    def read(self, texts: list[str]) -> tuple[Ids, Starts]:
        """The rows of all texts end to end, and where each text's begin."""
        flat, starts = self._ids.of(texts)
        assert self._ids.unknown is not None
        return without_token(self._ids.unknown, flat, starts)

    def pieces(self, texts: list[str], prompt: str = "", on_truncate: str = "ignore") -> Pieces:
        """The same as the trainer asks every encoder for; there are neither prompts nor cuts."""
        try:
            flat, starts = self.read(texts)
        except UnicodeEncodeError:
            raise not_unicode(texts, 0) from None
        return Pieces(flat, starts, len(texts))


class InferSentEncoder(Baseline):
    """Texts into the maxima, over their words, of an LSTM that reads both ways."""

    def __init__(self, reader: WordReader, tensors: Mapping[str, Array]) -> None:
        self.reader, self.tensors = reader, dict(tensors)
        self.hidden_size = int(tensors["lstm.weight_hh_l0"].shape[1])
        self._weights = [_joined(tensors, direction) for direction in DIRECTIONS]

    @property
    def full_dim(self) -> int:
        """Both directions side by side."""
        return 2 * self.hidden_size

    @once
    def full_fingerprint(self) -> str:
        """128 bits of sha256 over the words and all weights."""
        digest = hashlib.sha256(f"infersent:{self.reader.lowercase}\n".encode())
        digest.update("\n".join(self.reader.words).encode())
        for name in sorted(self.tensors):
            digest.update(f"{name}:{self.tensors[name].shape};".encode())
            digest.update(np.ascontiguousarray(self.tensors[name]).data)
        return digest.hexdigest()[:32]

    def _encode_window(self, texts: list[str], vectors: Vectors) -> list[int]:
        flat, starts = self.reader.read(texts)
        lengths = np.diff(starts)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 0]
        for first in range(0, len(order), TEXTS_AT_ONCE):
            rows = order[first : first + TEXTS_AT_ONCE]
            begins, counts = starts[rows], lengths[rows]
            for half, weights in enumerate(self._weights):
                # Read from behind, the words are the same and so is their maximum: only the order changes.
                ends, step = (begins, 1) if half == 0 else (begins + counts - 1, -1)
                found = _maxima(self.tensors[WORDS], weights, flat, ends, counts, step)
                vectors[rows, half * self.hidden_size : (half + 1) * self.hidden_size] = found
        empty: list[int] = np.flatnonzero(lengths == 0).tolist()
        return empty


def open_infersent(folder: str | Path) -> InferSentEncoder:
    """The InferSent encoder in a folder that gemel has written."""
    found = read_infersent_folder(folder)
    return InferSentEncoder(WordReader(found.words, found.lowercase), found.tensors())


def choose_words(
    texts: Iterable[str], path: str | Path | None = None, *, n_frequent: int = FREQUENT_WORDS
) -> tuple[list[str], Array]:
    """The words to know and their vectors (words, dim): those of the texts, and the file's most frequent.

    `path` is a file of word vectors, GloVe's or word2vec's; without one, the GloVe that pip has installed.
    """
    # Whatever tokenizer the chosen words will have, it splits as this one does.
    split = word_tokenizer([], lowercase=False)
    assert split.normalizer is not None
    assert split.pre_tokenizer is not None
    seen: set[str] = set()
    for text in texts:
        for word, _ in split.pre_tokenizer.pre_tokenize_str(split.normalizer.normalize_str(text)):
            seen.update((word, word.lower()))
    file = installed_glove() if path is None else Path(path)
    words, rows = read_word_file(file, max_words=n_frequent, also=seen)
    return words, rows[:-1]


def knows_no_capitals(words: Sequence[str]) -> bool:
    """Whether texts have to be put into lower case for their words to be found."""
    return all(word == word.lower() for word in words)


def _joined(tensors: Mapping[str, Array], direction: str) -> tuple[Array, Array]:
    """One matrix (words + hidden, gates) for a word and the state before it, and the bias of the gates.

    The sigmoid of a gate is (1 + tanh(x / 2)) / 2: with the halves in the weights, all four are one tanh.
    """
    both = [tensors[f"lstm.weight_{part}_l0{direction}"] for part in ("ih", "hh")]
    bias = tensors[f"lstm.bias_ih_l0{direction}"] + tensors[f"lstm.bias_hh_l0{direction}"]
    n = len(bias) // 4
    halves = np.full(4 * n, 0.5, np.float32)
    halves[2 * n : 3 * n] = 1  # the third is what enters the cell, a tanh of its own
    return np.ascontiguousarray(np.concatenate(both, axis=1).T * halves), bias * halves


def _maxima(
    words: Array, weights: tuple[Array, Array], flat: Ids, places: Starts, counts: Starts, step: int
) -> Array:
    """The maximum of each state over the words of each text (texts, hidden); the longest text comes first."""
    matrix, bias = weights
    n, word_dim = len(bias) // 4, words.shape[1]
    inputs = np.zeros((len(counts), word_dim + n), np.float32)
    cells = np.zeros((len(counts), n), np.float32)
    maxima = np.full((len(counts), n), -np.inf, np.float32)
    n_reaching = np.searchsorted(-counts, -np.arange(1, counts[0] + 1), side="right")
    for position, n_texts in enumerate(n_reaching.tolist()):
        inputs[:n_texts, :word_dim] = words[flat[places[:n_texts] + step * position]]
        gates = np.tanh(inputs[:n_texts] @ matrix + bias)
        enters, forgets, leaves = (
            gates[:, start : start + n] * 0.5 + np.float32(0.5) for start in (0, n, 3 * n)
        )
        cells[:n_texts] = forgets * cells[:n_texts] + enters * gates[:, 2 * n : 3 * n]
        states = leaves * np.tanh(cells[:n_texts])
        inputs[:n_texts, word_dim:] = states
        np.maximum(maxima[:n_texts], states, out=maxima[:n_texts])
    return maxima

"""InferSent with torch, to be trained: the LSTM moves, the word vectors stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gemel.checkpoint import Head
from gemel.checkpoint.infersent import DIRECTIONS, WORDS, read_infersent_folder, save_infersent_folder
from gemel.contracts import OnTruncate, Vectors, checked_on_truncate
from gemel.encoders.infersent import (
    FREQUENT_WORDS,
    Array,
    InferSentEncoder,
    WordReader,
    choose_words,
    knows_no_capitals,
)
from gemel.errors import InvalidInput
from gemel.model.backbone import arrays_of, choose_device
from gemel.model.lstm import max_over_states
from gemel.text_encoder import TextEncoder
from gemel.tokens import Ids

NAME = "infersent"


@dataclass(frozen=True)
class InferSentSettings:
    """The size of a new encoder; the authors' has 2,048 numbers each way."""

    hidden_size: int = 512  # of each direction: vectors are twice as long
    n_frequent_words: int = FREQUENT_WORDS  # that are known besides those of the training data

    def __post_init__(self) -> None:
        for name in ("hidden_size", "n_frequent_words"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InvalidInput(f"{name} is {value!r}; expected a whole number, at least 1")


@dataclass(frozen=True)
class WordBatch:
    """Texts packed step by step, the longest first: all first words, then all second ones, and so on."""

    forwards: Tensor  # (words, word_dim)
    backwards: Tensor  # the same with every text read from its end
    sizes: list[int]  # how many texts reach each step
    restore: Tensor  # (texts,) the place of each text, as they were given
    is_empty: Tensor  # (texts, 1) which texts, as they were given, have no known word


class InferSent(nn.Module, TextEncoder):
    """Texts into the maxima over an LSTM's states both ways; `encode` computes in numpy, as after loading."""

    engine = "numpy"
    precision = "float32"
    prompt = ""
    _n_kept: int | None = None

    def __init__(
        self, words: Sequence[str], vectors: Array, hidden_size: int, *, device: str | None = None
    ) -> None:
        super().__init__()
        self.tokenizer = WordReader(words, knows_no_capitals(words))
        self.lstm = nn.LSTM(vectors.shape[1], hidden_size, batch_first=True, bidirectional=True)
        self.words: Tensor
        self.register_buffer(WORDS, torch.tensor(vectors))
        self.to(choose_device(device))
        self.eval()

    @classmethod
    def new(
        cls,
        name: str,
        texts: Iterable[str],
        settings: InferSentSettings | None = None,
        *,
        device: str | None = None,
    ) -> InferSent:
        """An untrained encoder that knows the words of the texts and the most frequent ones of a file.

        `infersent:FILE` names the file of word vectors; `infersent` alone is the installed GloVe.
        """
        settings = settings or InferSentSettings()
        file = name.partition(":")[2] or None
        words, vectors = choose_words(texts, file, n_frequent=settings.n_frequent_words)
        return cls(words, vectors, settings.hidden_size, device=device)

    @classmethod
    def open(cls, folder: str | Path, *, device: str | None = None) -> InferSent:
        """The encoder of a folder, ready to be trained further."""
        found = read_infersent_folder(folder)
        tensors = {name: torch.tensor(array) for name, array in found.tensors().items()}
        model = cls(found.words, tensors[WORDS].numpy(), found.hidden_size, device=device)
        model.tokenizer = WordReader(found.words, found.lowercase)
        model.load_state_dict(tensors)
        return model

    def __repr__(self) -> str:
        n_words = len(self.tokenizer.words)
        return f"InferSent(dim={self.dim}, n_words={n_words}, device={str(self.device)!r})"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.words.device

    @property
    def full_dim(self) -> int:
        """Both directions side by side."""
        return 2 * self.lstm.hidden_size

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.full_dim if self._n_kept is None else self._n_kept

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the weights as they are now."""
        return self.frozen().fingerprint

    @property
    def settings(self) -> str:
        """What moves a vector besides the model."""
        return f"{self.engine} {self.precision}, {self.dim} of {self.full_dim} numbers"

    def forward(self, batch: WordBatch) -> Tensor:
        """Sentence vectors (texts, dim), with gradients; zeros for a text without a known word."""
        halves = [
            max_over_states(words, batch.sizes, self.lstm, direction)
            for words, direction in zip((batch.forwards, batch.backwards), DIRECTIONS, strict=True)
        ]
        maxima = torch.cat(halves, dim=1)[batch.restore]
        return maxima.masked_fill(batch.is_empty, 0)[:, : self.dim]

    def batch(self, sequences: Sequence[Ids]) -> WordBatch:
        """Rows of words as one batch on this encoder's device."""
        lengths = np.array([len(ids) for ids in sequences])
        # A text without a known word is read as one word, and its vector put to zero.
        flat = np.concatenate([ids if len(ids) else np.zeros(1, np.int32) for ids in sequences])
        counts = np.maximum(lengths, 1)
        starts = np.cumsum(counts) - counts
        order = np.argsort(-counts, kind="stable")
        sizes = np.searchsorted(-counts[order], -np.arange(1, counts.max() + 1), side="right").tolist()
        steps = np.repeat(np.arange(len(sizes)), sizes)
        texts = np.concatenate([order[:size] for size in sizes])
        forwards = flat[starts[texts] + steps]
        backwards = flat[starts[texts] + counts[texts] - 1 - steps]
        return WordBatch(
            self.words[self._placed(forwards.astype(np.int64))],
            self.words[self._placed(backwards.astype(np.int64))],
            sizes,
            self._placed(np.argsort(order)),
            self._placed(lengths == 0)[:, None],
        )

    def frozen(self) -> InferSentEncoder:
        """The encoder with the weights as they are now, in numpy."""
        encoder = InferSentEncoder(self.tokenizer, arrays_of(self))
        return encoder if self._n_kept is None else encoder.with_dim(self._n_kept)

    def save(self, target: str | Path, *, head: Head | None = None, overwrite: bool = False) -> None:
        """Write a folder that `load_encoder` opens; `checkpoint.infersent` tells its layout."""
        reader = self.tokenizer
        save_infersent_folder(
            target,
            arrays_of(self),
            reader.words,
            lowercase=reader.lowercase,
            head=head,
            overwrite=overwrite,
        )

    def with_prompt(self, name: str) -> InferSent:
        """Refused: there are no prompts."""
        raise InvalidInput(f"this model has no prompt {name!r}; it has none")

    def with_on_truncate(self, policy: OnTruncate) -> InferSent:
        """The same encoder: every policy is kept by one that never cuts a text."""
        checked_on_truncate(policy)
        return self

    def with_dim(self, dim: int) -> InferSent:
        """The same encoder with its vectors cut to the first `dim` numbers."""
        self.frozen().with_dim(dim)
        return self._copy(_n_kept=dim)

    def _placed(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def _encode_texts(self, texts: list[str], vectors: Vectors, show_progress: bool | None) -> int:
        return self.frozen()._encode_texts(texts, vectors, show_progress)

    def _warning(self, n_flawed: int, n_texts: int) -> Warning | None:
        return self.frozen()._warning(n_flawed, n_texts)


def asks_for_new(name: str | Path) -> bool:
    """Whether a name is `infersent` or `infersent:FILE`, which begins a new encoder; folders go before."""
    return isinstance(name, str) and name.partition(":")[0] == NAME and not Path(name).is_dir()

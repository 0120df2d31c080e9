"""What every sentence encoder does around its engine: checks, prompts, cutting, streams."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import EncoderSpec, ModelFolder, read_encoder_folder
from gemel.contracts import (
    OnTruncate,
    Vector,
    Vectors,
    check_holds_texts,
    checked_on_truncate,
    checked_texts,
)
from gemel.errors import InvalidInput, InvalidModel, TruncationWarning
from gemel.tokens import Ids, Pieces, TextTokenizer
from gemel.tokens.pieces import checked_ids

STREAM_WINDOW = 8_192  # texts that a stream holds at once

Self = TypeVar("Self", bound="TextEncoder")
Folder = TypeVar("Folder", bound="FolderEncoder")


class TextEncoder(ABC):
    """Texts into vectors, whatever computes them."""

    engine: str
    precision: str

    @property
    @abstractmethod
    def dim(self) -> int:
        """The length of every vector."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all that was learnt or chosen: equal fingerprints give comparable vectors."""

    @property
    @abstractmethod
    def settings(self) -> str:
        """What moves a vector besides the model."""

    @abstractmethod
    def with_prompt(self: Self, name: str) -> Self:
        """The same encoder with one of the model's prompts before every text."""

    @abstractmethod
    def with_on_truncate(self: Self, policy: OnTruncate) -> Self:
        """The same encoder with another way to treat texts that are too long."""

    @abstractmethod
    def with_dim(self: Self, dim: int) -> Self:
        """The same encoder with its vectors cut to the first `dim` numbers."""

    def encode(
        self, texts: Sequence[str], *, out: Vectors | None = None, show_progress: bool | None = None
    ) -> Vectors:
        """One vector a text, in the order given: float32 (n, dim), also for n = 0.

        `out` takes the vectors where it is given: an array of that shape, such as a memory map.
        """
        texts = checked_texts(texts)
        vectors = np.zeros((len(texts), self.dim), np.float32) if out is None else self._checked(out, texts)
        n_flawed = self._encode_texts(texts, vectors, show_progress) if texts else 0
        warning = self._warning(n_flawed, len(texts)) if n_flawed else None
        if warning is not None:
            warnings.warn(warning, stacklevel=2)
        return vectors

    def encode_one(self, text: str) -> Vector:
        """The vector of one text: float32 (dim,)."""
        if not isinstance(text, str):
            raise InvalidInput(f"encode_one takes one str and a {type(text).__name__} was given; use encode")
        vector: Vector = self.encode([text])[0]
        return vector

    def encode_iter(self, texts: Iterable[str]) -> Iterator[Vector]:
        """One vector a text, as a stream: the texts may come from a generator of any length."""
        check_holds_texts(texts, "use encode_one(text)")
        remaining, n_before = iter(texts), 0
        while window := list(islice(remaining, STREAM_WINDOW)):
            try:
                vectors = self.encode(window, show_progress=False)
            except InvalidInput as error:
                raise InvalidInput(f"{error} (text 0 is text {n_before} of the stream)") from None
            yield from vectors
            n_before += len(window)

    def _checked(self, out: Any, texts: list[str]) -> Vectors:
        expected = (len(texts), self.dim)
        if not isinstance(out, np.ndarray) or out.dtype != np.float32 or out.shape != expected:
            given = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise InvalidInput(f"out is {given}, and a float32 array of shape {expected} was expected")
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise InvalidInput("out must be a writeable array whose rows follow each other in memory")
        return out

    @abstractmethod
    def _encode_texts(self, texts: list[str], vectors: Vectors, show_progress: bool | None) -> int:
        """Fill in the vectors; how many texts could not be read as they stand."""

    @abstractmethod
    def _warning(self, n_flawed: int, n_texts: int) -> Warning | None:
        """What to say of such texts."""

    def _copy(self: Self, **changes: Any) -> Self:
        other = self._twin()
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def _twin(self: Self) -> Self:
        """Another encoder on the same weights."""
        return copy.copy(self)


class FolderEncoder(TextEncoder):
    """An encoder whose transformer, tokenizer and settings come from a model folder."""

    folder: ModelFolder
    on_truncate: OnTruncate
    tokenizer: TextTokenizer
    _prompt_name: str | None = None

    def _open_texts(self, folder: ModelFolder, on_truncate: OnTruncate) -> None:
        self.folder = folder
        self.on_truncate = checked_on_truncate(on_truncate)
        self.tokenizer = TextTokenizer(
            folder.transformer,
            folder.config,
            lowercase=folder.spec.lowercase,
            max_tokens=folder.spec.max_tokens,
        )

    @property
    def spec(self) -> EncoderSpec:
        """Everything about this encoder that is not a weight."""
        return self.folder.spec

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.spec.dim

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the folder that the weights came from."""
        return self.folder.fingerprint

    @property
    def settings(self) -> str:
        """What moves a vector besides the model: engine, prompt, and whether long texts are read whole."""
        long_texts = "whole" if self.on_truncate == "chunk" else "cut"
        return f"{self.engine} {self.precision}, prompt {self.prompt!r}, long texts {long_texts}"

    @property
    def prompt(self) -> str:
        """The text that stands before every input; often none."""
        return self.spec.prompt_text(self._prompt_name)

    @property
    def prompt_name(self) -> str | None:
        """Which of the model's prompts was chosen; None is the model's own choice."""
        return self._prompt_name

    def with_prompt(self: Folder, name: str) -> Folder:
        """The same encoder with one of the model's prompts before every text."""
        self.spec.prompt_text(name)
        return self._copy(_prompt_name=name)

    def with_on_truncate(self: Folder, policy: OnTruncate) -> Folder:
        """The same encoder with another way to treat texts that are too long."""
        return self._copy(on_truncate=checked_on_truncate(policy))

    def with_dim(self: Folder, dim: int) -> Folder:
        """The same encoder with its vectors cut to the first `dim` numbers."""
        return self._copy(folder=self.folder.with_spec(self.spec.truncated_to(dim)))

    def with_prompts(self: Folder, prompts: Mapping[str, str], default: str | None = None) -> Folder:
        """The same encoder with other prompts to choose from, of which one may be before every text."""
        try:
            spec = replace(self.spec, prompts=dict(prompts), default_prompt=default)
        except InvalidModel as error:
            raise InvalidInput(str(error)) from None
        return self._copy(folder=self.folder.with_spec(spec), _prompt_name=None)

    def with_similarity(self: Folder, measure: str) -> Folder:
        """The same encoder, whose folder says that its vectors are compared by this measure."""
        return self._copy(folder=self.folder.with_spec(replace(self.spec, similarity=measure)))

    def note_saved(self, target: str | Path) -> None:
        """Go on with the new files where this very model was just saved into its own folder."""
        if Path(target).resolve() == self.folder.path.resolve():
            self.folder = read_encoder_folder(target).with_spec(self.spec)

    def encode_ids(self, sequences: Sequence[Ids]) -> Vectors:
        """One vector a sequence of token ids, given without special tokens: float32 (n, dim)."""
        sequences = checked_ids(sequences, self._n_ids)
        pieces = self.tokenizer.wrapped(sequences, self.prompt)
        longest = int(np.diff(pieces.starts).max(initial=0))
        if longest > self.spec.max_tokens:
            raise InvalidInput(
                f"a sequence of {longest:,} tokens was given, special ones and prompt included; "
                f"expected at most {self.spec.max_tokens}: cut it"
            )
        vectors = np.zeros((len(sequences), self.dim), np.float32)
        if sequences:
            self._encode_pieces(pieces, vectors, show_progress=False)
        return vectors

    @property
    def _n_ids(self) -> int:
        n_rows = self.folder.config.get("vocab_size")
        return n_rows if isinstance(n_rows, int) else self.tokenizer.n_tokens

    @abstractmethod
    def _encode_pieces(self, pieces: Pieces, vectors: Vectors, show_progress: bool | None) -> None:
        """Fill in the vectors of texts that are token ids already."""

    def count_tokens(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """How many tokens each text has, special ones and prompt included, before any cut."""
        return self.tokenizer.count(checked_texts(texts), self.prompt)

    def tokenise(self, texts: Sequence[str]) -> Pieces:
        """The texts as this encoder reads them: prompt and special tokens added, cut or split."""
        return self.tokenizer.pieces(checked_texts(texts), self.prompt, self.on_truncate)

    @abstractmethod
    def encode_pieces(self, pieces: Pieces) -> Vectors:
        """One vector a text (n, dim), from its tokens: the same as `encode` gives for the text."""

    @abstractmethod
    def encode_tokens(self, pieces: Pieces) -> Vectors:
        """One vector a token (tokens, hidden_size), special ones included, before pooling."""

    def _skipped_tokens(self) -> tuple[int, int, int]:
        """Tokens that the pooling leaves out: the prompt for all modes, the special ones for the means."""
        pooling, tokenizer = self.spec.pooling, self.tokenizer
        n_prompt = n_first = n_last = 0
        if not pooling.include_prompt and self.prompt:
            n_prompt = len(tokenizer.prefix) + tokenizer.prompt_tokens(self.prompt)
        if not pooling.include_special_tokens:
            n_first, n_last = len(tokenizer.prefix), len(tokenizer.suffix)
        return n_prompt, n_first, n_last

    def _check_vocabulary(self, largest: int) -> None:
        """Refuse token ids that the weights have no row for."""
        vocabulary = self.folder.config.get("vocab_size")
        if isinstance(vocabulary, int) and largest >= vocabulary:
            raise InvalidModel(
                f"{self.folder.path}: the tokenizer gives token {largest}, but config.json has a vocabulary "
                f"of {vocabulary}; tokenizer and weights are from different models"
            )

    def _warning(self, n_flawed: int, n_texts: int) -> Warning | None:
        if self.on_truncate != "warn":
            return None
        return TruncationWarning(n_flawed, n_texts, self.spec.max_tokens)


class Repeats:
    """Which texts are the first of their kind, so that only these are encoded, right where they belong."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self._origins: npt.NDArray[np.int64] | None = None  # (texts,) the row where each occurs first
        if len(set(texts)) < len(texts):
            firsts: dict[str, int] = {}
            origins = [firsts.setdefault(text, row) for row, text in enumerate(texts)]
            self.texts, self._origins = list(firsts), np.array(origins, np.int64)
            self._rows = np.fromiter(firsts.values(), np.int64, len(firsts))

    @contextmanager
    def place(self, vectors: Vectors, start: int, stop: int) -> Iterator[Vectors]:
        """Where to write the vectors of the distinct texts from `start` to `stop`."""
        rows = slice(start, stop) if self._origins is None else self._rows[start:stop]
        if isinstance(rows, slice):
            yield vectors[rows]
        elif rows[-1] - rows[0] + 1 == len(rows):
            yield vectors[rows[0] : rows[-1] + 1]
        else:
            scattered = np.zeros((len(rows), vectors.shape[1]), np.float32)
            yield scattered
            vectors[rows] = scattered

    def fill_in(self, vectors: Vectors) -> None:
        """Copy the vectors of first occurrences to the others, by turns: the output may be a memory map."""
        if self._origins is None:
            return
        repeated = np.flatnonzero(self._origins != np.arange(len(self._origins)))
        for start in range(0, len(repeated), STREAM_WINDOW):
            rows = repeated[start : start + STREAM_WINDOW]
            vectors[rows] = vectors[self._origins[rows]]

    def count(self, places: list[int]) -> int:
        """How many of the texts given are those at these places among the distinct ones."""
        if self._origins is None or not places:
            return len(places)
        return int(np.isin(self._origins, self._rows[places]).sum())
